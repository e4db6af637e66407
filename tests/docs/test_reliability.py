"""docs/reliability.md: what tests/run keeps of its tests, and what the page says of them."""
import importlib.util
import json
import sys
from importlib.machinery import SourceFileLoader

import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "tools"))
import faults  # noqa: E402

sys.path.pop()
SOURCE = """# a comment
## Space

13 A disk that fills
	tests/unit/faults/fault_space.c: after_a_time_without_room_recording_goes_on
	fuzz/json.c
	not here: a disk of 1 TB
"""
UNIT = "tests/unit/faults/fault_space.c: after_a_time_without_room_recording_goes_on"
PASSED = {"last": "passed", "why": "", "passed": {"when": "2025-03-14 11:15", "commit": "abc"}}


@pytest.fixture
def runner(tmp_path):
    """tests/run as a module, whose results are elsewhere."""
    loader = SourceFileLoader("tests_run", str(ROOT / "tests/run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tests_run", loader))
    loader.exec_module(module)
    module.RESULTS = tmp_path / "results.json"
    return module


def test_a_page_says_when_each_test_last_passed():
    page = faults.page(faults.read_source(SOURCE), {UNIT: faults.words_of(PASSED, "")}, ["24 hours"])
    assert f"| `{UNIT}` | 2025-03-14 11:15 UTC, `abc` |\n| `fuzz/json.c` | not run yet |\n" in page
    assert "**1 faults, 2 tests; 1 have passed, 0 fail now.**" in page
    assert "| [13](#fault-13) | A disk that fills | 1 of 2 |" in page
    assert "\nCannot be tested here: a disk of 1 TB.\n" in page


def test_a_page_made_of_itself_is_the_same():
    sections = faults.read_source(SOURCE)
    page = faults.page(sections, {UNIT: faults.words_of(PASSED, ""), "fuzz/json.c": "fails"}, ["24 hours"])
    assert faults.page(sections, faults.results_of(page), faults.fuzzing_of(page)) == page


@pytest.mark.parametrize("result,before,words", [
    (PASSED, "not run yet", "2025-03-14 11:15 UTC, `abc`"),
    ({**PASSED, "last": "failed"}, "", "2025-03-14 11:15 UTC, `abc`; fails"),
    ({**PASSED, "last": "skipped", "why": "no root"}, "", "2025-03-14 11:15 UTC, `abc`; not run here: no root"),
    ({"last": "skipped", "why": "no | root", "passed": None}, "not run yet", "not run here: no / root"),
    ({"last": "skipped", "why": "no root", "passed": None}, "2024-01-01 00:00 UTC, `old`; fails",
     "2024-01-01 00:00 UTC, `old`; not run here: no root"),
    ({"last": "skipped", "why": f"no {ROOT}/x", "passed": None}, "", "not run here: no x"),
], ids=["passed", "failed", "skipped", "never", "the page remembers", "no path of a machine"])
def test_what_is_said_of_a_result(result, before, words):
    assert faults.words_of(result, before) == words


def test_a_source_that_lacks_something_is_told():
    wrong = faults.wrong_in(faults.read_source("## A\n\n1 one\n1 one again\n\ttests/unit/nothing.c: x\n"))
    assert "fault 2 is missing" in wrong and "fault 1 occurs 2 times" in wrong
    assert "fault 1 has neither a test nor a reason (not here: …, not yet: …)" in wrong
    assert "fault 1: tests/unit/nothing.c: x: no such file" in wrong
    with pytest.raises(ValueError, match="line 2 is not a fault"):
        faults.read_source("# a comment\n\tnobody's test\n")


def test_a_case_that_fails_fails_its_test_and_one_that_passes_shows_it(runner):
    result = runner.Result()
    for did in ("skipped", "passed", "skipped"):
        result.see("a", did, "why")
    for did in ("passed", "failed", "passed"):
        result.see("b", did)
    assert result.seen == {"a": ("passed", "why"), "b": ("failed", "")}


def test_results_outlive_runs_in_which_a_test_did_not_pass(runner):
    runner.keep({"a": ("passed", ""), "b": ("passed", "")}, "abc")
    first = json.loads(runner.RESULTS.read_text())
    assert first["a"]["passed"]["commit"] == "abc"
    runner.keep({"a": ("skipped", "no root"), "c": ("failed", "")}, "def+")
    second = json.loads(runner.RESULTS.read_text())
    assert second == {"a": {"last": "skipped", "why": "no root", "passed": first["a"]["passed"]}, "b": first["b"],
                      "c": {"last": "failed", "why": "", "passed": None}}


def test_names_of_pytest_become_files_and_functions(runner, tmp_path):
    report = tmp_path / "report.xml"
    report.write_text('<testsuites><testsuite><testcase classname="tests.cli.test_x" name="test_y[a-1]"/>'
                      '<testcase classname="tests.cli.test_x" name="test_z"><skipped message="no z"/></testcase>'
                      "</testsuite></testsuites>")
    result = runner.Result()
    runner.read_junit(report, result)
    assert result.seen == {"tests/cli/test_x.py: test_y": ("passed", ""), "tests/cli/test_x.py: test_z": ("skipped", "no z")}
