"""kymo report as a file: JSON and CSV by their contract, what may be replaced, and what each detector finds."""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

from conftest import PROGS


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A recording whose every number is chosen; see tests/progs/made_run.c."""
    folder = tmp_path_factory.mktemp("made")

    def make(*words):
        path = folder / "-".join(words)
        if not path.exists():
            subprocess.run([PROGS / "made_run", path, *words], check=True)
        return path
    return make


def report(kymo, path, *words):
    done = kymo("report", path, "-f", "json", *words)
    assert done.status == 0, done.err
    return json.loads(done.out)


def test_json_has_the_keys_that_programs_rely_on(shared, made):
    data = report(shared, made("train", "100"))
    step = data["timing"]["train_step"]
    assert {"mean", "std", "min", "max", "count", "p50", "p90", "p99"} <= step.keys()
    assert step["count"] == 100 and 5 < step["min"] <= step["mean"] <= step["max"] < 60  # ms
    assert data["memory"]["peak_allocated"] > 2e9 and data["memory"]["peak_reserved"] > 2e9
    wall = data["run"]["duration_ns"] / 1e9
    assert data["throughput"]["iterations_per_sec"] == pytest.approx(100 / wall)
    assert data["throughput"]["samples_per_sec"] == pytest.approx(3200 / wall)
    assert data["metrics"]["batch_size"]["count"] == 100 and data["metrics"]["batch_size"]["last"] == 32
    assert data["metrics"]["batch_size"]["std"] == 0
    assert data["schema_version"] == 1 and data["losses"]["dropped"] == 0
    assert data["verdicts"][0]["name"] == "data"


def test_a_file_that_was_written_is_told_with_its_size(kymo, made):
    for name in ("it.json", "it.html"):
        done = kymo("report", made("train", "100"), name)
        assert (done.status, done.out) == (0, "")
        assert re.fullmatch(rf"kymo: {name}, [\d.]+ [kM]B\n", done.err)


def test_means_have_one_decimal(shared, made):
    """A tenth of a nanosecond is more than any clock tells."""
    for column, table in (("mean_ns", "trace.regions"), ("stddev_ns", "trace.regions"), ("cost_ns_per_event", "kymo.overhead")):
        out = shared("query", "-f", "csv", made("train", "100"), f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL").out
        values = out.split()[1:]
        assert values and all(re.fullmatch(r"\d+\.\d", value) for value in values), values


def test_json_says_the_same_as_sql(shared, made):
    path = made("train", "100")
    rows = json.loads(shared("query", "-f", "json", path, "SELECT avg(duration_ns) / 1e6 AS mean, "
                             "stddev_samp(duration_ns) / 1e6 AS std FROM trace.zones WHERE name = 'train_step'").out)
    step = report(shared, path)["timing"]["train_step"]
    assert step["mean"] == pytest.approx(rows[0]["mean"]) and step["std"] == pytest.approx(rows[0]["std"], rel=1e-6)


def test_what_is_not_known_is_null_and_memory_is_a_number(kymo):
    kymo.record("empty")
    data = report(kymo, "latest")
    assert data["timing"] == {} and data["metrics"] == {}
    assert data["throughput"] == {"samples_per_sec": None, "iterations_per_sec": None, "iterations_of": ""}
    assert data["memory"]["peak_allocated"] == 0 and data["memory"]["peak_reserved"] == 0


def test_csv_has_one_row_a_metric(shared, made):
    out = shared("report", made("train", "100"), "-f", "csv").raw.decode()
    rows = list(csv.DictReader(io.StringIO(out)))
    assert out.splitlines()[0] == "section,name,unit,count,mean,std,min,max,p50,p90,p99"
    by_name = {(row["section"], row["name"]): row for row in rows}
    assert by_name["timing", "train_step"]["unit"] == "ms" and by_name["timing", "train_step"]["count"] == "100"
    assert float(by_name["metrics", "batch_size"]["mean"]) == 32
    assert float(by_name["memory", "peak_allocated"]["max"]) > 2e9
    assert float(by_name["throughput", "iterations_per_sec"]["mean"]) > 0


def test_hostile_names_stay_names(hostile):
    data = report(hostile, hostile.path)
    assert any("</script>" in name for name in data["timing"])
    for row in csv.reader(io.StringIO(hostile("report", hostile.path, "-f", "csv").raw.decode())):
        assert len(row) == 11
        assert not row[1].startswith(("=", "+", "-", "@"))
    html = hostile("report", hostile.path, "-f", "html")
    if "built without HTML" in html.err:
        pytest.skip("this kymo was built without HTML reports")
    blocks = html.out.split('id="kymo-data">')[1].split("</script>")[0]
    assert "<" not in blocks
    assert any("</script>" in name for name in json.loads(blocks)["names"]["name"])


# --- files -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["a.html", "a.json", "a.csv"])
def test_a_report_of_ours_is_replaced_and_nothing_else_is(shared, made, name, tmp_path):
    path, file = made("region"), tmp_path / name
    first = shared("report", path, file)
    if "built without HTML" in first.err:
        pytest.skip("this kymo was built without HTML reports")
    assert first.status == 0 and file.stat().st_size > 100
    assert shared("report", path, file).status == 0
    file.write_text("<html>mine</html>\n")
    done = shared("report", path, file)
    assert (done.status, done.err) == (1, f"kymo report: {file} exists; --force overwrites it\n")
    assert file.read_text() == "<html>mine</html>\n"
    assert shared("report", "--force", path, file).status == 0
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("words, why", [
    (["-f", "pdf"], "unknown format pdf; use text, html, json or csv"),
    (["-o", "report"], "cannot infer the format of report from its name; use -f"),
    (["-f", "json", "--subtract-overhead"], "--subtract-overhead works with text only"),
])
def test_wrong_use_is_a_sentence(shared, words, why):
    done = shared("report", *words)
    assert (done.status, done.err) == (2, f"kymo report: {why}\n")


# --- detectors: a recording with the problem, and one without; tests/detect has programs ---------------------------

FINDS = {
    "region": "The costliest region is simulate: 17.1 s of self time, 86 % of the run, in 1,900 calls.",
    "tiny": "Many tiny operations take much of the time: 1,000,000 calls of 5.00 µs each take 25 % of the run.",
    "lock": "Threads wait for locks: 7.60 s in total, 38 % of the run, mostly in lock.acquire.",
    "gc": "Garbage collection takes 19 % of the run (3.80 s).",
    "import": "Importing modules takes 18 % of the run (3.60 s); the costliest is import torch with 3.60 s.",
    "io": "The program waits for storage: a thread was blocked in I/O for 50 % of the run (10.0 s).",
    "throttled": "The CPU limit slows the program: its cgroup was throttled for 19 % of the run (3.80 s).",
    "crowded": "Thread worker was ready to run but had no core for 57 % of the run: its own threads use the cores.",
    "swap": "Memory is read back from storage: 38,000 major page faults, about 7.60 s of waiting.",
    "growth": "Memory grows throughout the run: from 290 MB after start-up to 740 MB at the end.",
    "stuck": "No progress for 16.0 s, 80 % of the run; the innermost open zone is Session::run.",
    "waiting": "The program mostly waits: it used no CPU for 95 % of the run.",
    "spread": "Some steps take much longer than others: time above the median adds up to 39 % of step time "
              "(5.95 s of 15.4 s), mostly in save_checkpoint.",
    "warmup": "Warm-up is part of this measurement: the first steps take 3.48 s more than usual, 30 % of step time.",
    "rank": "Rank 1 is late: the other ranks wait for it for 27 % of the time (3.92 s of 14.8 s).",
}


@pytest.mark.parametrize("problem", FINDS)
def test_a_detector_finds_its_problem_and_only_where_it_is(shared, made, problem):
    first = report(shared, made(problem))["verdicts"][0]
    assert (first["name"], first["sentence"]) == (problem, FINDS[problem])
    assert first["try"] and first["evidence"] and first["gain_pct"] > 0
    assert problem not in [one["name"] for one in report(shared, made(f"{problem}-not"))["verdicts"]]


def test_a_program_that_others_keep_from_the_cores_does_not_wait(shared, made):
    verdicts = report(shared, made("starved"))["verdicts"]
    assert verdicts[0]["sentence"] == \
        "Thread worker was ready to run but had no core for 86 % of the run: other programs use the cores."
    assert "waiting" not in [one["name"] for one in verdicts]


def test_a_zone_around_everything_is_no_hang_while_the_program_works(shared, made):
    assert report(shared, made("alone"))["verdicts"][0]["sentence"] == \
        "No progress for 20.0 s, 100 % of the run; the innermost open zone is everything."
    assert "stuck" not in [one["name"] for one in report(shared, made("alone-not"))["verdicts"]]


def test_zones_that_are_open_explain_the_run_too(shared, made):
    assert "coverage" not in [one["name"] for one in report(shared, made("stuck"))["verdicts"]]


def test_the_terminal_says_the_first_verdict(shared, made):
    out = " ".join(shared("report", made("throttled")).out.split())
    assert FINDS["throttled"] in out and " more: kymo report" not in out


def test_the_terminal_prints_three_findings_in_their_order(shared, made):
    path = made("several")
    assert [one["name"] for one in report(shared, path)["verdicts"]] == ["waiting", "swap", "growth"]
    said = [" ".join(part.split()) for part in shared("report", path).out.split("\n\n")[1:4]]
    for finding, name in zip(said, ["waiting", "swap", "growth"]):
        assert finding.startswith(FINDS[name]) and " evidence " in finding and " numbers kymo query " in finding
    assert " more: kymo report -f json" not in " ".join(said)


@pytest.fixture
def desktop(tmp_path):
    """An environment with a desktop whose browser notes what it is asked to open."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/xdg-open").write_text(f'#!/bin/sh\ncd {tmp_path} && echo "$1" > opened.tmp && mv opened.tmp opened\n')
    (tmp_path / "bin/xdg-open").chmod(0o755)
    return {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "DISPLAY": ":0"}


def test_open_shows_the_page_in_a_browser(kymo, desktop, tmp_path):
    path = kymo.record("plain")
    done = kymo("report", path, "--open", env=desktop)
    if "built without HTML" in done.err:
        pytest.skip("this kymo was built without HTML reports")
    assert done.status == 0, done.err
    until = time.monotonic() + 20
    while not (tmp_path / "opened").exists() and time.monotonic() < until:
        time.sleep(0.05)
    page = pathlib.Path((tmp_path / "opened").read_text().strip())
    assert page.name == "report.html" and page.read_text().startswith("<!doctype html>")
    assert kymo("report", path, "--open", env=desktop).status == 0  # replaces it
    bare = kymo("report", path, "--open", env={"DISPLAY": "", "WAYLAND_DISPLAY": ""})
    assert bare.status == 0 and "open the file in a browser" in bare.err
    assert kymo("report", path, "--open", "-f", "json").status == 2
