"""pytest --kymo: a recording of the tests, and their times beside a baseline."""
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

import kymo
from kymo._inside.pytest_baseline import KEPT_RUNS, TOTAL, Baseline, BaselineError, compare, total

SUITE = """
import time, pytest
@pytest.fixture
def data():
    return 1
@pytest.mark.parametrize("n", range(3))
def test_sleeps(n, data):
    time.sleep(0.01)
def test_quick():
    pass
"""


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "live").mkdir(mode=0o700)

    def go(*words, status=0):
        env = {key: value for key, value in os.environ.items() if not key.startswith(("KYMO", "PYTEST"))}
        env.update(KYMO_DIR=str(tmp_path / "live"), XDG_STATE_HOME=str(tmp_path / "state"))
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, *words],
                              cwd=tmp_path, env=env, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
        return done.stdout
    return go


def baseline_of(path, seconds, **more):
    names = [f"test_suite.py::test_sleeps[{n}]" for n in range(3)] + ["test_suite.py::test_quick"]
    one = Baseline(str(path))
    for factor in (1, 1.01, 0.99):
        one.add({name: seconds * factor for name in names} | more)
    one.write()
    return one


def test_kymo_records_each_test_and_fixture(suite, tmp_path):
    out = suite("--kymo")
    assert "recording: kymo-tests.kymosnap" in out
    rows = kymo.query("SELECT name, count FROM trace.regions", str(tmp_path / "kymo-tests.kymosnap"))
    counts = {row["name"]: row["count"] for row in rows}
    assert {name: count for name, count in counts.items() if name.startswith(("test_suite", "fixture data"))} == {
        **{f"test_suite.py::test_sleeps[{n}]": 1 for n in range(3)}, "test_suite.py::test_quick": 1, "fixture data": 3}


def test_without_an_option_nothing_is_registered_or_recorded(suite, tmp_path):
    (tmp_path / "test_suite.py").write_text("""
import sys, kymo
def test_it(pytestconfig):
    assert not pytestconfig.pluginmanager.has_plugin("kymo-recorder")
    assert "kymo._inside.pytest_baseline" not in sys.modules and not kymo.enabled()
""")
    assert "kymo" not in suite()
    assert list((tmp_path / "live").iterdir()) == [] and not (tmp_path / "kymo-baseline.json").exists()


def test_each_worker_of_xdist_has_a_recording_and_all_times_are_compared(suite, tmp_path):
    pytest.importorskip("xdist", reason="no pytest-xdist in this Python")
    baseline_of(tmp_path / "kymo-baseline.json", 1000.0)
    out = suite("--kymo", "--kymo-output", "r.kymosnap", "--kymo-fail-above", "5%", "-n", "2")
    assert "0 of 5 slower" in out and "r-gw0.kymosnap" in out
    found = [name for worker in ("gw0", "gw1") for name in kymo.query(
        "SELECT name FROM trace.regions WHERE name LIKE 'test_suite%'", str(tmp_path / f"r-{worker}.kymosnap"))]
    assert len(found) == 4


def test_a_slower_test_fails_the_run_and_is_named(suite, tmp_path):
    baseline_of(tmp_path / "kymo-baseline.json", 1e-6)
    out = suite("--kymo-fail-above", "5%", status=1)
    assert "test_suite.py::test_sleeps[1]  SLOWER" in out and f"{TOTAL}  SLOWER" in out


def test_faster_tests_pass_and_junit_has_the_times(suite, tmp_path):
    baseline_of(tmp_path / "kymo-baseline.json", 1000.0)
    assert "0 of 5 slower than the baseline by more than 5 %" in suite("--kymo-fail-above", "5%", "--junitxml", "junit.xml")
    case = next(one for one in ET.parse(tmp_path / "junit.xml").iter("testcase") if one.get("name") == "test_sleeps[1]")
    properties = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert float(properties["kymo_ms"]) >= 10 and properties["kymo_baseline_ms"] == "1000000.000 1010000.000 990000.000"


def test_runs_are_added_to_the_baseline_unless_a_test_fails(suite, tmp_path):
    for runs in (1, 2):
        assert f"has 4 tests, up to {runs} runs each" in suite("--kymo-update-baseline")
    (tmp_path / "test_suite.py").write_text(SUITE + "def test_fails():\n    assert 0\n")
    before = (tmp_path / "kymo-baseline.json").read_text()
    assert "the baseline is not updated" in suite("--kymo-update-baseline", status=1)
    assert (tmp_path / "kymo-baseline.json").read_text() == before
    assert "fewer than 3 runs in the baseline" in suite("--kymo-fail-above", "5%", "--deselect", "test_suite.py::test_fails")


def test_times_of_another_machine_are_not_compared(suite, tmp_path):
    path = tmp_path / "kymo-baseline.json"
    baseline_of(path, 1e-6)
    path.write_text(path.read_text().replace('"machine": "', '"machine": "another '))
    assert "not compared: the baseline is of another machine (another " in suite("--kymo-fail-above", "5%")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kymo_baseline": 9, "machine": "", "tests": {}}',
                                  '{"kymo_baseline": 1, "machine": "", "tests": {"a": ["x"]}}',
                                  '{"kymo_baseline": 1, "machine": "", "tests": []}'])
def test_a_damaged_baseline_is_an_error_with_its_name(tmp_path, text):
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(BaselineError, match=r"b\.json.*make it again with"):
        Baseline(str(tmp_path / "b.json"))


def test_wrong_options_are_refused(suite, tmp_path):
    (tmp_path / "kymo-baseline.json").write_text("no JSON")
    assert suite("--kymo-fail-above", "5%", status=4) == ""
    assert suite("--kymo-fail-above", "much", status=4) == ""


# --- the comparison -------------------------------------------------------------------------------------------------

def many(tests, runs, noise):
    one = Baseline(os.devnull + "/none")
    one.tests = {f"t{i}": [1 + noise * ((i * 7 + run * 13) % 11 - 5) / 5 for run in range(runs)] for i in range(tests)}
    return one


def test_noise_of_the_size_of_the_baseline_is_no_change():
    baseline = many(1000, 5, 0.05)
    again = {name: seconds[0] for name, seconds in baseline.tests.items()}
    assert [one.name for one in compare(baseline, again, 0.05) if one.is_slower] == []
    assert not total(baseline, again, 0.05).is_slower


def test_one_slower_test_among_a_thousand_is_found():
    baseline = many(1000, 5, 0.05)
    again = {name: seconds[0] for name, seconds in baseline.tests.items()} | {"t500": 1.6}
    assert [one.name for one in compare(baseline, again, 0.05) if one.is_slower] == ["t500"]


def test_a_small_change_of_all_tests_together_is_found():
    baseline = many(1000, 5, 0.05)
    again = {name: seconds[0] * 1.1 for name, seconds in baseline.tests.items()}
    assert total(baseline, again, 0.05).is_slower and not total(baseline, again, 0.15).is_slower


def test_equal_runs_of_one_test_are_not_certainty():
    baseline = many(20, 3, 0.05)
    baseline.tests["t0"] = [1.0, 1.0, 1.0]
    again = {name: seconds[0] for name, seconds in baseline.tests.items()} | {"t0": 1.06}
    assert not any(one.is_slower for one in compare(baseline, again, 0.05))


def test_the_file_keeps_the_last_runs_in_one_line_a_test(tmp_path):
    one = Baseline(str(tmp_path / "b.json"))
    for run in range(KEPT_RUNS + 5):
        one.add({"test_b": run + 1.0, "test_a": 0.0012345})
    one.write()
    text = (tmp_path / "b.json").read_text()
    assert json.loads(text)["tests"]["test_b"] == [float(run) for run in range(6, KEPT_RUNS + 6)]
    assert [line.split(":")[0].strip() for line in text.splitlines()[1:3]] == ['"test_a"', '"test_b"'] and "0.00123" in text
    assert Baseline(str(tmp_path / "b.json")).tests == json.loads(text)["tests"]
