"""Allocations in a report: the peak, who held it, and what grows."""
import os
import shutil
import subprocess

import pytest
from conftest import KYMO, ROOT


@pytest.fixture(scope="module")
def seen(pages):
    program, recording, report = (pages.folder / name for name in ("data.py", "memory-run", "memory.html"))
    shutil.copy(ROOT / "tests/progs/memory_grows.py", program)
    subprocess.run([KYMO, "run", "-q", "-o", recording, "--memory", "--", ROOT / ".venv/bin/python", program], check=True,
                   env={**os.environ, **pages.env, "PYTHONPATH": os.fspath(KYMO.parent / "python")})
    done = pages.kymo("report", recording, report)
    assert done.returncode == 0, done.stderr
    return pages.look("allocations", report)


def test_what_grows_is_said(seen):
    assert seen["said"].startswith("Peak, allocated: 9")
    assert ". Grows: 3.1" in seen["said"] and seen["said"].endswith(" MB a step since step 12, at data.py:5")
    assert seen["errors"] == [] and seen["requests"] == []


def test_the_largest_site_at_the_peak_is_the_first(seen):
    assert seen["sites"][0][0] == "data.py:5"


def test_no_figure_is_cut_and_the_five_largest_sites_are_on_the_first_screen(seen):
    assert len(seen["figures"]) == 8 and seen["cut"] == []
    assert "% estimated, malloc, sampled, from the start" in " ".join(seen["figures"][5].split())
    assert seen["fifth"] < 720 - 26  # the footer


def test_the_peak_is_marked_on_the_chart_of_what_is_allocated_alone(seen):
    resident, allocated = seen["red"]
    assert resident == 0 and allocated > 50
