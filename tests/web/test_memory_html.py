"""Allocations in a report: the peak, who held it, and what grows."""
import os
import subprocess

import pytest
from conftest import KYMO, ROOT

PROGRAM = """
import kymo
kept = []
def load(i):
    return bytearray(3_100_000) if i >= 12 else None
for i in range(40):
    kymo.step()
    kept.append(load(i))
    junk = bytearray(2_000_000)
kymo.step_end()
"""


@pytest.fixture(scope="module")
def seen(pages):
    program, recording, report = (pages.folder / name for name in ("data.py", "memory-run", "memory.html"))
    program.write_text(PROGRAM)
    subprocess.run([KYMO, "run", "-q", "-o", recording, "--memory", "--", ROOT / ".venv/bin/python", program], check=True,
                   env={**os.environ, **pages.env, "PYTHONPATH": os.fspath(KYMO.parent / "python")})
    done = pages.kymo("report", recording, report)
    assert done.returncode == 0, done.stderr
    return pages.look("allocations", report)


def test_what_grows_is_said(seen):
    figure, = [text.split("\n") for text in seen["figures"] if text.lower().startswith("grows")]
    assert " ".join(figure[1:]).endswith("since step 12, at data.py:5")
    assert seen["errors"] == [] and seen["requests"] == []


def test_the_largest_site_at_the_peak_is_the_first(seen):
    assert seen["sites"][0][0] == "data.py:5"
