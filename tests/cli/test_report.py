"""kymo report: what is said, in which order."""
import json
import re
import subprocess
import sys

import pytest

from conftest import KYMO, PROGS
from made import Made
from test_query import on_a_terminal, plain_text


def test_the_report_says_where_the_time_goes_first(shared):
    out = shared("report").out
    lines = out.splitlines()
    assert re.match(r"cli_fixture  (ended|exit 0)  [\d.]+ m?s  40 steps  clock ", lines[0])
    assert lines[1] == ""
    assert lines[2].startswith("  Data loading holds up training: it takes ")
    assert any(line.startswith("  evidence  median wait ") for line in lines)
    assert any(line.startswith("  try       use more loader workers, or prefetch;") for line in lines)


def test_sections_come_in_order(shared):
    out = shared("report").out
    headings = ["Steps", "Step time by phase", "Slowest steps", "Regions", "Threads", "Memory", "Losses and overhead"]
    places = [re.search(rf"^{heading}", out, re.M) for heading in headings]
    assert all(places), out
    assert [p.start() for p in places] == sorted(p.start() for p in places)
    assert "  losses: none of " in out


def test_the_slowest_step_names_what_held_it_up(shared):
    out = shared("report").out
    first = out.split("Slowest steps")[1].splitlines()[1]
    # It sleeps for 20 ms, or longer on a busy machine.
    assert float(re.search(r"data\.next ([\d.]+) ms$", first)[1]) >= 19, first


def test_regions_are_ranked_by_self_time(shared):
    out = shared("report").out.split("\nRegions\n")[1].splitlines()
    assert out[0].split() == ["self", "%", "run", "region", "source", "count", "p50", "p99"]
    assert [line.split()[3] for line in out[1:4]] == ["data.next", "forward", "train_step"]
    assert all(" c " in line and " 40 " in line for line in out[1:4])


@pytest.mark.parametrize("columns", [80, 132])
def test_the_terminal_is_not_overrun(shared, hostile, columns):
    for kymo in (shared, hostile):
        status, out = on_a_terminal(kymo, "report", columns=columns)
        assert status == 0 and "\x1b[1m" in out
        for line in plain_text(out).splitlines():
            assert len(line) <= columns, line


def test_without_utf8_there_is_none(shared):
    out = shared("report", env={"LC_ALL": "C"}).out
    assert out.isascii() and "us" in out and "#" in out


def test_a_dead_program_says_what_it_was_in(kymo):
    path = kymo.record("killed")
    out = kymo("report", path).out
    assert "\nOpen at the end\n" in out
    # Nobody saw it end: for how long is not known, and not made up.
    assert re.search(r"\(tid \d+\) was in outer > inner\n", out)
    assert out.splitlines()[2] == "  cli_fixture was in outer > inner, and no zone has ended."
    assert "No zones recorded" not in out


def test_a_program_that_hangs_is_told_where_and_what_to_ask_next(kymo):
    with subprocess.Popen([PROGS / "cli_fixture", "open"], env={**kymo.env, "KYMO": "on"}, cwd=kymo.cwd,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        out = " ".join(kymo("report", str(child.pid)).out.split())
        child.communicate(b"")
    # By when it is asked: a run of less than a second is not said to hang.
    said = r" cli_fixture is in outer > inner, and no zone has ended\. | No progress for "
    assert re.search(said, out), out
    assert f"kymo backtrace --why {child.pid} shows what it waits for" in out


def test_what_was_not_recorded_is_one_line_each(kymo):
    kymo.record("empty")
    out = kymo("report").out
    for word in ("Steps: ", "Regions: ", "Memory: "):
        [line] = [line for line in out.splitlines() if line.startswith(word)]
        assert "kymo" in line.lower()
    assert "No zones recorded" in out


def test_a_packed_recording_reports_the_same_regions(kymo):
    kymo.record("plain")
    assert kymo("pack", "latest", "a.kymo").status == 0
    live = kymo("report", "latest").out.split("\nRegions\n")[1].split("\n\n")[0]
    packed = kymo("report", "a.kymo").out.split("\nRegions\n")[1].split("\n\n")[0]
    assert packed == live


def test_a_reader_that_goes_away_ends_it_quietly(shared):
    done = subprocess.run(["sh", "-c", f"'{KYMO}' report | head -n 1"], cwd=shared.cwd, env=shared.env,
                          capture_output=True)
    assert done.stderr == b"" and done.stdout.startswith(b"cli_fixture")


def test_the_recorders_own_cost_is_taken_off_on_request_and_said(kymo):
    kymo.record("plain")
    sql = "SELECT sum(own_cost_ns) AS cost, sum(count) AS n FROM trace.regions WHERE count > 0"
    row, = json.loads(kymo("query", "-f", "json", "latest", sql).out)
    plain, without = kymo("report").out, kymo("report", "--subtract-overhead").out
    assert "cost of recording" not in plain
    said = re.search(r"Self times exclude the cost of recording: ([\d.]+) ns per zone, \S+ \S+ in total\.", without)
    assert float(said[1]) == pytest.approx(row["cost"] / row["n"], abs=0.06)


def test_what_was_not_measured_is_not_taken_off(kymo):
    kymo.record("empty")
    assert "cost of recording" not in kymo("report", "--subtract-overhead").out


def grown(kymo, live):
    """The lines on memory of a loop of 400 steps of 100 ms, with that resident memory, in MB, at the ends of its steps."""
    template = kymo.home / "template.kymo"
    if not template.exists():
        assert kymo("pack", kymo.record("plain"), template).status == 0
    with Made(template, kymo.home / "made.kymo") as rows:
        rows.loop(("work", [100_000_000] * 400))
        rows.db.execute("DELETE FROM host.process")
        rows.db.executemany("INSERT INTO host.process (ts_ns, pid, rss_bytes, peak_bytes, host) VALUES (?, ?, ?, 700000000, 'box')",
                            [[i * 100_000_000, rows.pid, int(1e6 * live(i))] for i in range(0, 400, 5)])
    return kymo("report", kymo.home / "made.kymo").out.split("\nMemory\n")[1].split("\n\n")[0].splitlines()


def test_growth_per_step_is_one_number_and_imports_and_jumps_do_not_count(kymo):
    lines = grown(kymo, lambda i: 150 + 0.29 * i + (100 if i >= 60 else 0) + (40 if i >= 300 else 0))
    said = [line for line in lines if "per step" in line]
    assert len(said) == 1 and said[0].startswith("  grows 290 kB per step since step "), lines
    assert not [line for line in grown(kymo, lambda i: 150 + (100 if i >= 60 else 0)) if "per step" in line]
    assert not [line for line in grown(kymo, lambda i: 150 + (100 if i >= 300 else 0)) if "per step" in line]


MANY = """
import sys
def user(n):
    return n * n
for i in range(300):
    exec(f"def early_{i}(): return {i}\\nearly_{i}()")
for i in range(20000):
    user(i)
"""


def test_a_function_called_after_256_others_has_quantiles_if_all_rows_are_kept(kymo):
    (kymo.cwd / "many.py").write_text(MANY)
    assert kymo("run", "-q", "--python", "-o", "rec", "--", sys.executable, "many.py").status == 0
    assert json.loads(kymo("query", "-f", "json", "rec", "SELECT p50_ns FROM trace.regions WHERE name = 'user'").out) == \
        [{"p50_ns": None}]
    p50, p99 = kymo("query", "-f", "csv", "rec", "SELECT quantile_disc(duration_ns, 0.5), quantile_disc(duration_ns, 0.99) "
                    "FROM trace.zones WHERE name = 'user'").out.splitlines()[1].split(",")
    regions = kymo("report", "rec").out.split("\nRegions\n")[1].split("\n\n")[0]
    line, = [line for line in regions.splitlines() if " user " in line + " "]
    assert f" {p50} ns" in line and " - " not in line, (line, p50, p99)
    assert "p50 and p99 are - where" not in regions


def test_the_tiny_operation_that_is_named_has_its_own_number_of_calls(kymo):
    template = kymo.home / "template.kymo"
    assert kymo("pack", kymo.record("plain"), template).status == 0
    with Made(template, kymo.home / "made.kymo") as made:
        for name, count, total in (("often", 4_377_000, 9_000_000_000), ("costly", 121_100, 1_100_000_000)):
            made.db.execute("INSERT INTO trace.regions (source, name, count, total_ns, self_ns, host) VALUES ('c', ?, ?, ?, ?, 'box')",
                            [name, count, total, total])
    verdicts = json.loads(kymo("report", kymo.home / "made.kymo", "-f", "json").out)["verdicts"]
    tiny, = [one for one in verdicts if one["name"] == "tiny"]
    assert "4,498,100 calls" in tiny["sentence"] and "mostly often (4,377,000 calls)" in tiny["evidence"], tiny
