"""The sources pass tools/lint. clang-tidy takes minutes the first time and keeps what passed under build/lint."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECKS = ["names", "foreign", "width", "prose", "format", "shell", "python", "types", "js", "tidy"]


@pytest.mark.parametrize("check", CHECKS)
def test_sources_pass(check):
    done = subprocess.run([ROOT / "tools/lint", check], capture_output=True, text=True, check=False, timeout=1800,
                          env={**os.environ, "KYMO_TIDY_LOOPS": "2"})
    if " skipped: " in done.stdout.split("\n")[0]:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_check_that_does_not_exist_is_named():
    done = subprocess.run([ROOT / "tools/lint", "colour"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("lint: no check is named colour; there are: layers names ")
