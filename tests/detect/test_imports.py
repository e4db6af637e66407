"""What is said of imports where calls are recorded: the file that took most, and nothing of what the program's own file does."""
import json
import os
import re
import subprocess
import sys

import pytest

from conftest import KYMO, PROGS

RARELY = "30"  # seconds between two stacks: the calls alone are judged


@pytest.fixture
def verdicts(tmp_path):
    """verdicts(program, words…): by name, of a run with kymo run --python."""
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}, "LC_ALL": "C.UTF-8",
           "KYMO_DIR": str(tmp_path / "live"), "XDG_STATE_HOME": str(tmp_path / "state"), "KYMO_SAMPLE_RATE": RARELY}
    (tmp_path / "live").mkdir(mode=0o700)

    def go(*command):
        done = subprocess.run([KYMO, "run", "-q", "--python", "-o", tmp_path / "rec", "--", sys.executable, *command], env=env,
                              capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr
        report = subprocess.run([KYMO, "report", tmp_path / "rec", "-f", "json"], env=env, capture_output=True, check=True)
        return {one["name"]: one["sentence"] for one in json.loads(report.stdout)["verdicts"]}
    return go


def test_the_file_is_named_that_was_imported_longest(verdicts):
    said = verdicts(PROGS / "imports.py", "slow")
    assert re.fullmatch(r"Importing modules takes .* of the run \(.*s\); the costliest is [^ ]*/heavy\.py with .*s\.",
                        said["import"]), said


def test_what_the_programs_own_file_does_is_no_import(verdicts, tmp_path):
    (tmp_path / "own.py").write_text("import time\ntime.sleep(2.2)\n")
    assert "import" not in verdicts(tmp_path / "own.py")
