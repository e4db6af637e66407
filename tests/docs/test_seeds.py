"""Every code block of the five documents is accounted for: a test runs it, or a reason says why it cannot run.

The blocks are told by their place, so that no text of the documents is in this tree.
"""
import re

import pytest
from conftest import ROOT

FOLDER = ROOT.parent / "shared/seeds"
FENCED = re.compile(r"^```(\w*)\n.*?^```", re.S | re.M)
DIRECTIVE = re.compile(r"^\.\.\s+code-block:: (\w+)$", re.M)

VACCEL, TRACY, NEURON = "tests/compat/test_vaccel.py", "tests/front/test_seed_tracy.py", "tests/compat/test_nrt.py"
KITSUNE, TORCH = "tests/python/test_profiler_document.py", "tests/torch/test_ways_in.py"
STEPS = f"{VACCEL}: test_the_documentations_steps_run_as_they_stand"
COMMAND = f"{TRACY}: test_a_command_of_the_document"
BLOCK = f"{KITSUNE}: test_a_block_of_the_document_runs"
PROTOTYPE = f"{NEURON}: test_the_documentations_declarations_are_the_headers_own"

# By document: its blocks in their order, (language, test or reason).
LEDGER = {
    "000": [("bash", f"{VACCEL}: test_words_that_turn_it_on"), *[("c", STEPS)] * 6,
            ("c", f"{VACCEL}: test_the_documentations_example_runs_as_it_stands"),
            ("", "tests/foreign/test_classifier.py: test_the_output_has_its_shape"),
            ("c", f"{VACCEL}: test_the_documentations_plugin_runs_as_it_stands_in_cxx")],
    "001": [("sh", "tests/foreign/test_enable_tracy.py: test_with_enable_tracy_it_records_by_itself"), ("sh", COMMAND), ("sh", COMMAND),
            ("python", f"{TRACY}: test_every_block_is_accounted_for"),
            ("sh", COMMAND), ("python", f"{TRACY}: test_the_program_of_the_document"), ("sh", COMMAND),
            ("sh", "reason: installs a viewer of its own with a package manager of macOS"),
            ("sh", "tests/serve/test_start.py: test_tracy_opens_the_viewer_as_large_as_asked")],
    "002": [("c", PROTOTYPE)] * 9,
    "003": [*[("python", BLOCK)] * 10, ("json", f"{KITSUNE}: test_the_files_are_there_and_json_has_the_documents_structure"),
            *[("python", BLOCK)] * 5],
    "004": [("mermaid", "reason: a picture of how that profiler is built"),
            ("python", f"{TORCH}: test_the_hooks_of_the_document_work_beside_ours"),
            ("bash", f"{TORCH}: test_both_ways_of_the_document_to_turn_it_on"),
            ("python", "reason: a row as an example; tests/collect/test_backtrace.py asks for these columns"),
            ("bash", "tests/cli/test_probing.py: test_the_documents_own_line_runs_as_it_stands"),
            ("sql", f"{TORCH}: test_the_statements_of_the_document_run_as_they_stand"),
            ("sql", f"{TORCH}: test_the_statements_of_the_document_run_as_they_stand")],
}


@pytest.mark.parametrize("document", LEDGER)
def test_every_block_of_a_document_is_in_the_ledger(document):
    found = sorted(FOLDER.glob(f"{document}_*.txt"))
    if not found:
        pytest.skip(f"there is no {FOLDER.name}/{document}_*.txt: the documents come with no clone")
    text = found[0].read_text()
    languages = [match.group(1) for match in FENCED.finditer(text)] or DIRECTIVE.findall(text)
    assert languages == [language for language, _ in LEDGER[document]]


@pytest.mark.parametrize("row", sorted({where for rows in LEDGER.values() for _, where in rows}))
def test_every_test_of_the_ledger_exists(row):
    path, name = row.split(": ", 1)
    if path != "reason":
        assert f"def {name}(" in (ROOT / path).read_text()
