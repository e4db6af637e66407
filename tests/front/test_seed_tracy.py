"""The code blocks of the document that `python -m tracy` has to serve, taken from it as they stand.

Supplied here, and nothing else: test files under the paths that it names, a body for its `def` line, the two child
functions, and the spelling of function_under_test.
"""
import os
import re
import subprocess
import sys
import textwrap

import pytest
from conftest import ROOT, SECONDS, Recording
from recorded import calls

FOLDER = ROOT.parent / "shared/seeds"
FOUND = sorted(FOLDER.glob("001_*.txt"))

pytestmark = pytest.mark.skipif(not FOUND, reason=f"the document is not in {FOLDER}")

NOT_HERE = {
    "make clean": "builds the tree anew; tested with the zones of C and C++",
    "brew install": "installs a viewer of its own with a package manager of macOS",
    "TRACY_DPI_SCALE": "opens the viewer, which is no part of tracing",
}
TEST = "test_split_fused_qkv_and_split_heads_with_program_cache"


def blocks():
    """(language, text) of each block of the document."""
    text = FOUND[0].read_text() if FOUND else ""
    for match in re.finditer(r"^\.\.  code-block:: (\w+)\n\n((?:    .*\n|\n)+)", text, re.M):
        yield match.group(1), textwrap.dedent(match.group(2)).strip() + "\n"


SHELL = [text for language, text in blocks() if language == "sh"]
PYTHON = [text for language, text in blocks() if language == "python"]


def why_not(text):
    return next((why for word, why in NOT_HERE.items() if word in text), None)


def supply_test(path):
    """The test file that the commands name; its `def` line is the document's."""
    (line,) = [text for text in PYTHON if text.startswith("def test_")]
    path.parent.mkdir(parents=True)
    path.write_text(f"""
import pytest

@pytest.fixture
def device():
    return set_up()

@pytest.fixture
def use_program_cache():
    set_up()

def set_up():
    pass

def work():
    return 1

{line}    x = work()
    assert x == 1
""")


def run(text, place, env):
    env = {**env, "PATH": f"{os.path.dirname(sys.executable)}:{env['PATH']}"}
    done = subprocess.run(["sh", "-ec", text], cwd=place, env=env, capture_output=True, text=True, check=False,
                          timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    (path,) = place.glob("kymo-*")
    return Recording(path, done)


@pytest.mark.parametrize("text", SHELL, ids=[text.splitlines()[-1][:50] for text in SHELL])
def test_a_command_of_the_document(text, tmp_path, home):
    if why_not(text):
        pytest.skip(why_not(text))
    named = re.search(r"(\S+\.py)(::\S+)?$", text.strip())
    path = tmp_path / named.group(1)
    if named.group(2):
        supply_test(path)
        recording = run(text, tmp_path, home)
        assert "1 passed" in recording.stdout
        assert calls(recording, "%heads.py") == ({TEST: 1, "work": 1} if " -p " in text else
                                                 {"<module>": 1, TEST: 1, "work": 1, "device": 1, "use_program_cache": 1,
                                                  "set_up": 2})
    else:
        path.write_text("def f():\n    pass\nf()\n")
        assert calls(run(text, tmp_path, home), f"%{path.name}") == {"<module>": 1, "f": 1}
    if " -l " in text:
        lines = Recording(next(tmp_path.glob("kymo-*")), recording).column(
            "SELECT line FROM trace.zones WHERE source = 'line' AND file LIKE '%heads.py' ORDER BY start_ns")
        assert len(lines) == 3 and lines[1] < lines[0] < lines[2]  # x = work(), its return 1, the assertion


def test_the_program_of_the_document(tmp_path, home):
    (text,) = [text for text in PYTHON if "Profiler" in text]
    children = "".join(f"def {name}():\n    pass\n" for name in ("child_function_1", "child_function_2"))
    spelled = text.replace("funtion_under_test", "function_under_test")
    (tmp_path / "program.py").write_text(children + spelled)
    recording = run("python -m tracy -p program.py", tmp_path, home)
    assert calls(recording, "%/program.py") == {"function_under_test": 1, "child_function_1": 1, "child_function_2": 1}


def test_every_block_is_accounted_for():
    assert len(SHELL) == 7 and len(PYTHON) == 2
    assert len([text for text in SHELL if why_not(text)]) == 3
