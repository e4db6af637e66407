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
    assert [row[0] for row in seen["queues"]] == ["queue 0, card", "copies, card", "late, card"]
    assert [row[:4] for row in seen["models"]] == [["net", "card", "0", "2"]]
    assert seen["errors"] == [] and seen["requests"] == []


def test_a_queues_time_is_shown_with_what_held_it_up(seen):
    assert seen["spent"] == ["busy 53 %, host late 18 %, synchronisation 5.0 %, dependency 3.0 %, launch 1.0 %",
                             "busy 28 %, host late 0 %, synchronisation 0 %, dependency 0 %, launch 67 %",
                             "busy 4.0 %, host late 0 %, synchronisation 0 %, dependency 29 %, launch 10 %"]


def test_what_was_launched_is_listed_and_an_execution_is_no_launch(seen):
    assert [row[:5] for row in seen["launches"]] == [
        ["kernel", "–", "–", "–", "7"], ["copy", "–", "–", "–", "5"], ["marker", "–", "–", "–", "1"]]


def test_operations_are_drawn(seen):
    assert seen["timeline"] > 4
