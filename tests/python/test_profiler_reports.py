"""Reports of kymo.profiler: their keys, their safety, their width; and comparisons."""
import csv
import json
import random
import re

import pytest

HOSTILE = ["</script><script>alert(1)</script>", "=cmd()", "+1", "-2", "@x", "nul\0byte", "line\nbreak", "\ud800", "ä" * 200]

REPORT = """
    import json, time
    from kymo.profiler import MetricsCollector, Reporter
    collector = MetricsCollector()
    for name in json.loads({names!r}):
        with collector.measure_time(name):
            pass
        collector.record(name, 1.5)
    for i in range(3):
        with collector.measure_time("iteration"):
            time.sleep(.001)
        collector.record("batch_size", 8)
    collector.record("bad", float("nan")); collector.record("large", float("inf"))
    reporter = Reporter(collector)
    reporter.save_json("r.json"); reporter.save_csv("r.csv"); reporter.save_html("r.html"); reporter.print_summary()
"""


@pytest.fixture
def reported(plain, tmp_path):
    done = plain(REPORT.format(names=json.dumps(HOSTILE)), {"PYTHONIOENCODING": "utf-8"})
    return done, tmp_path


def test_json_has_the_keys_that_are_promised_and_only_numbers(reported):
    done, folder = reported
    data = json.loads((folder / "r.json").read_text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert set(data) == {"schema_version", "timing", "memory", "throughput", "metrics", "time", "samples", "losses", "run"}
    assert {"mean", "std", "min", "max"} < set(data["timing"]["iteration"])
    assert data["timing"]["iteration"]["count"] == 3 and data["timing"]["iteration"]["min"] >= 1
    assert data["timing"]["=cmd()"]["std"] == 0  # of one sample
    assert isinstance(data["memory"]["peak_allocated"], int) and isinstance(data["memory"]["peak_reserved"], int)
    assert data["throughput"]["samples_per_sec"] == pytest.approx(24 / data["time"])
    assert data["throughput"]["iterations_per_sec"] == pytest.approx(3 / data["time"])
    assert {"count", "mean", "std", "min", "max", "last"} < set(data["metrics"]["batch_size"])
    assert data["metrics"]["bad"]["mean"] is None and data["metrics"]["large"]["max"] is None
    assert "</script><script>alert(1)</script>" in data["timing"]


def test_csv_is_safe_in_a_spreadsheet_and_numbers_stay_numbers(reported):
    done, folder = reported
    with open(folder / "r.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == "section,name,unit,count,mean,std,min,max,p50,p90,p99".split(",")
    assert all(len(row) == 11 for row in rows)
    names = {row[1] for row in rows}
    assert {"'=cmd()", "'+1", "'-2", "'@x", "nul\u2400byte", "line\nbreak", "\\ud800"} < names
    assert not [name for name in names if name[:1] in "=+-@"]
    (row,) = [row for row in rows if row[:2] == ["metrics", "batch_size"]]
    assert row[2:] == ["", "3", "8.0", "0.0", "8.0", "8.0", "8.0", "8.0", "8.0"]
    assert [row[:3] for row in rows if row[0] in ("memory", "throughput")] == [
        ["memory", "peak_allocated", "bytes"], ["memory", "peak_reserved", "bytes"],
        ["throughput", "samples_per_sec", "1/s"], ["throughput", "iterations_per_sec", "1/s"]]


def test_html_is_one_file_in_which_names_are_text(reported):
    done, folder = reported
    page = (folder / "r.html").read_text()
    assert "alert(1)</script>" not in page
    assert not re.search(r"<script[^>]+src=|<link[^>]+href=|@import|url\(", page)
    assert "iteration" in page


def test_the_summary_fits_80_columns(reported):
    done, folder = reported
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("iteration ") for line in lines)
    assert "line?break" in done.stdout


def test_a_file_is_replaced_in_one_step_or_stays_as_it_is(plain, tmp_path):
    plain("""
        import os, resource
        from kymo.profiler import MetricsCollector, Reporter
        collector = MetricsCollector()
        for i in range(2000): collector.record("loss", i / 7)
        reporter = Reporter(collector)
        os.chdir(os.path.dirname(os.path.abspath(__file__)))
        for name in ("r.json", "r.csv", "r.html"):
            open(name, "w").write("old")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))       # as a full disk
        for save, name in ((reporter.save_json, "r.json"), (reporter.save_csv, "r.csv"), (reporter.save_html, "r.html")):
            try:
                save(name)
            except OSError as error:
                assert error.filename == name, error
            else:
                raise SystemExit(f"{name} was written")
            assert open(name).read() == "old"
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert not [name for name in os.listdir(".") if name.endswith(".part")]
        reporter.save_json("r.json")
        assert open("r.json").read(1) == "{"
    """)


def test_the_bottleneck_is_by_self_time_with_what_to_try(plain):
    done = plain("""
        import time
        from kymo.profiler import MetricsCollector
        collector = MetricsCollector()
        print(collector.analyze_bottlenecks()["bottleneck"], collector["time"])
        for _ in range(3):
            with collector.measure_time("iteration"):
                with collector.measure_time("data_loading"): time.sleep(.01)
                with collector.measure_time("forward"): time.sleep(.001)
        analysis = collector.analyze_bottlenecks()
        print(analysis["bottleneck"], sorted(analysis), sorted(analysis["breakdown"]["forward"]))
        assert round(sum(row["pct"] for row in analysis["breakdown"].values()), 6) == 100
        assert analysis["bottleneck_time_ms"] >= 30 and analysis["bottleneck_pct"] > 50
        print("num_workers" in analysis["suggestions"][0])
    """)
    assert done.stdout == (
        "None 0.0\n"
        "data_loading ['bottleneck', 'bottleneck_pct', 'bottleneck_time_ms', 'breakdown', 'suggestions'] "
        "['count', 'mean_ms', 'pct', 'self_ms', 'total_ms']\nTrue\n")


# --- comparing --------------------------------------------------------------------------------------------------

def run_of(mean, spread, count, seed, name="iteration"):
    """A report as save_json() writes it, of made-up times."""
    made = random.Random(seed)
    times = [made.gauss(mean, spread) for _ in range(count)]
    average = sum(times) / count
    std = (sum((t - average) ** 2 for t in times) / (count - 1)) ** 0.5
    return {"timing": {name: {"mean": average, "std": std, "count": count, "total": sum(times)}},
            "samples": {"timing": {name: {"size": 1, "means": times}}}, "time": sum(times) / 1e3}


@pytest.fixture
def compare(tmp_path, monkeypatch):
    monkeypatch.setenv("KYMO", "off")
    from kymo.profiler import compare_runs

    return compare_runs


def test_times_alone_can_be_compared(compare):
    result = compare({"time": 10.0}, {"time": 5.0})
    assert set(result) == {"speedup", "ci", "significant", "per_metric", "memory_ratio", "throughput_ratio", "notes"}
    assert result["speedup"] == 2.0 and result["ci"] is None and not result["significant"] and len(result["notes"]) == 1


def test_a_real_change_is_found_with_its_interval(compare):
    result = compare(run_of(20, 1, 60, 1), run_of(10, 0.5, 60, 2))
    assert result["significant"] and result["ci"][0] < result["speedup"] < result["ci"][1]
    assert result["speedup"] == pytest.approx(2, rel=0.05)
    row = result["per_metric"]["iteration"]
    assert {"a", "b", "ratio", "ci", "p_value", "significant"} < set(row)
    assert row["ratio"] == pytest.approx(0.5, rel=0.05) and row["p_value"] < 0.001


def test_the_same_program_twice_is_no_change(compare):
    alarms = sum(compare(run_of(10, 0.5, 40, 2 * i), run_of(10, 0.5, 40, 2 * i + 1))["significant"] for i in range(100))
    assert alarms <= 10  # 5 are expected at most; 11 of 100 have a chance of 1 in 100


def test_means_and_deviations_are_enough(compare):
    a, b = run_of(20, 1, 60, 1), run_of(10, 0.5, 60, 2)
    full = compare(a, b)
    del a["samples"], b["samples"]
    short = compare(a, b)
    assert short["significant"] and short["ci"] == pytest.approx(full["ci"], rel=0.05)
    seed_like = {"timing": {"x": {"mean": 2.0, "std": 0.1, "min": 1.9, "max": 2.1}}}
    result = compare(seed_like, seed_like)
    assert result["speedup"] == 1 and result["per_metric"]["x"]["ci"] is None and result["notes"]


def test_what_shares_no_metric_is_refused_and_other_doubts_are_noted(compare, tmp_path):
    with pytest.raises(ValueError, match="no metric in common: a has iteration, b has epoch"):
        compare(run_of(1, 0.1, 20, 1), run_of(1, 0.1, 20, 1, "epoch"))
    with pytest.raises(TypeError, match="not int"):
        compare(3, {"time": 1.0})
    a, b = run_of(1, 0.1, 20, 1), run_of(1, 0.1, 20, 2)
    a["run"], b["run"] = {"host": "one", "torch": "2.1"}, {"host": "two", "torch": "2.2"}
    (tmp_path / "a.json").write_text(json.dumps(a))
    notes = compare(tmp_path / "a.json", b)["notes"]
    assert any("hosts: one and two" in note for note in notes) and any("torch: 2.1 and 2.2" in note for note in notes)


def test_collectors_paths_and_a_baseline(plain):
    done = plain("""
        import time
        from kymo.profiler import MetricsCollector, MemoryTracker, Reporter, compare_runs
        def run(ms):
            collector = MetricsCollector()
            for i in range(100):
                with collector.measure_time("iteration"):
                    time.sleep(ms / 1e3)
                collector.record("loss", 1 + i % 3)
            return collector
        slow, fast = run(6), run(0.3)  # so many, so far apart: a busy machine does not hide it
        Reporter(slow).save_json("slow.json")
        for a in (slow, "slow.json", Reporter(slow).report()):
            result = compare_runs(a, fast)
            assert result["speedup"] > 1.3 and result["significant"], result
            assert not result["per_metric"]["loss"]["significant"] and result["throughput_ratio"] > 1
            assert result["memory_ratio"] > 0
        reporter = Reporter(fast, baseline="slow.json")
        reporter.print_summary()
        reporter.save_json("fast.json"), reporter.save_html("fast.html"), reporter.save_csv("fast.csv")
        import json
        assert json.load(open("fast.json"))["comparison"]["significant"] and "<rect" in open("fast.html").read()
        assert "comparison,speedup,x,1," in open("fast.csv").read()
        print(slow["time"] / fast["time"] > 1.3)
    """)
    assert "Speedup against the baseline" in done.stdout and done.stdout.endswith("True\n")
    assert max(map(len, done.stdout.splitlines())) <= 80


RUN = """
    import time
    for i in range(20):
        kymo.step()
        with kymo.region("work"):
            time.sleep({ms} / 1e3)
    kymo.step_end()
"""


def test_recordings_are_compared_by_the_program(home, tmp_path):
    import subprocess
    import sys

    from conftest import KYMO, program_text, run

    if subprocess.run([KYMO, "compare", "--help"], capture_output=True, check=False).returncode:
        pytest.skip("this kymo has no command compare")
    for name, ms in (("a", 4), ("b", 1)):
        (tmp_path / "same.py").write_text(program_text(RUN.format(ms=ms)))
        run([KYMO, "run", "-o", tmp_path / name, "--", sys.executable, tmp_path / "same.py"], home, tmp_path)
    (tmp_path / "compare.py").write_text("""
from kymo.profiler import compare_runs
result = compare_runs("a", "b")
assert result["speedup"] > 1.3 and result["per_metric"]["work"]["ratio"] < 0.8, result
""")
    run([sys.executable, tmp_path / "compare.py"], home, tmp_path)
