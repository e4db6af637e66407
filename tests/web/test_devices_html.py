"""Devices in a report: a tab of its own, and lanes for queues."""
import os
import subprocess

import pytest
from conftest import KYMO, ROOT


@pytest.fixture(scope="module")
def seen(pages):
    program = pages.folder / "gaps"
    subprocess.run(["cc", f"-I{ROOT}/include", "-o", program, ROOT / "tests/device/gaps.c", f"-L{ROOT}/build", "-lkymo",
                    f"-Wl,-rpath,{ROOT}/build"], check=True)
    recording, report = pages.folder / "gaps-run", pages.folder / "devices.html"
    subprocess.run([KYMO, "run", "-q", "-o", recording, "--device", "--", program], check=True, env={**os.environ, **pages.env})
    done = pages.kymo("report", recording, report)
    assert done.returncode == 0, done.stderr
    return pages.look("devices", report)


def test_queues_and_models_are_listed(seen):
    assert [row[:2] for row in seen["queues"]] == [["card", "queue 0"], ["card", "copies"]]
    assert [row[:4] for row in seen["models"]] == [["net", "card", "0", "2"]]
    assert seen["errors"] == [] and seen["requests"] == []


def test_operations_are_drawn(seen):
    assert seen["timeline"] > 4
