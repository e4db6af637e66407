"""Python stacks over time: kymo run takes them from outside, and SQL answers with them."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import KYMO, PYTHONS, clean, each_python, kymo, until


@pytest.fixture
def place(tmp_path):
    """An environment whose recordings are below tmp_path."""
    live = tmp_path / "live"
    live.mkdir(mode=0o700)
    return {**clean(os.environ), "KYMO_DIR": str(live), "XDG_STATE_HOME": str(tmp_path / "state"),
            "KYMO_SYSTEM_RATE": "0"}


@pytest.fixture
def record(place, tmp_path):
    """record(python, code): under kymo run, to its end; the recording's path."""
    def go(python, code, env=None, words=()):
        script, out = tmp_path / "program.py", tmp_path / "run"
        script.write_text(textwrap.dedent(code))
        done = subprocess.run([KYMO, "run", "-q", *words, "-o", out, "--", python, script], env={**place, **(env or {})},
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return out
    return go


def query(target, sql, env=None):
    done = subprocess.run([KYMO, "query", str(target), "-f", "json", sql], env=env or clean(os.environ),
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


SLEEPER = """
    import time
    def outer(): inner()
    def inner(): time.sleep(1)
    outer()
"""


@each_python
def test_a_set_rate_is_kept(record, python):
    recording = record(python, SLEEPER, {"KYMO_SAMPLE_RATE": "0.1"})
    rows = query(recording, "FROM python.samples WHERE stack[1] LIKE 'inner %'")
    assert rows, "no sample in a second"
    file = recording.parent / "program.py"
    assert {tuple(row["stack"]) for row in rows} == {
        (f"inner ({file}:4)", f"outer ({file}:3)", f"<module> ({file}:5)")}
    assert {(row["thread"], row["gil"], row["cause"]) for row in rows} == {("MainThread", False, "period")}
    states = [row["state"] for row in rows]
    assert set(states) <= {"S", "R"} and "S" in states  # R: as it falls asleep, or wakes
    gaps = query(recording, "SELECT median(ts_ns - before) AS gap FROM (SELECT ts_ns, lag(ts_ns) OVER (ORDER BY ts_ns) "
                            "AS before FROM python.samples)")
    assert gaps[0]["gap"] > 90e6
    assert query(recording, "FROM kymo.config") == []


CHANGES = """
    import time
    def idle(): time.sleep(2.5)
    def one(): sum(range(9000))
    def two(): sum(range(9000))
    def spin(until):
        while time.monotonic() < until:
            one()
            two()
    spin(time.monotonic() + 2)
    idle()
    spin(time.monotonic() + 1)
"""


def test_the_rate_follows_the_program_where_nobody_has_set_one(record):
    """Every ms at first, then every 10 ms, and slower while it sleeps. The shortest gaps count: a loaded machine only
    makes them longer."""
    recording = record(sys.executable, CHANGES)
    (gaps,) = query(recording, """
        SELECT
            min(gap) FILTER (ts_ns - first < 9e8) AS early,
            min(gap) FILTER (ts_ns - first BETWEEN 11e8 AND 19e8) AS late,
            max(gap) FILTER (place LIKE 'idle %') AS idle,
            min(gap) FILTER (ts_ns - first > 30e8 AND place NOT LIKE 'idle %') AS again
        FROM (SELECT *, ts_ns - lag(ts_ns) OVER (ORDER BY ts_ns) AS gap, min(ts_ns) OVER () AS first FROM python.samples)
    """)
    assert gaps["early"] < 5e6 < gaps["late"] and gaps["idle"] >= 75e6 and 5e6 < gaps["again"] < 75e6, gaps
    assert query(recording, "SELECT key, new FROM kymo.config")[0] == {"key": "sampling", "new": "adaptive"}
    # The weights are the time that passed.
    (whole,) = query(recording, "SELECT sum(weight_ns) AS w, max(ts_ns) - min(ts_ns) AS t FROM python.samples WHERE tid = pid")
    assert 0.9 * whole["t"] < whole["w"] < 1.1 * whole["t"], whole


def test_streams_without_rows_are_not_on_disk(record):
    recording = record(sys.executable, "pass")
    heads = list(recording.glob("p*/s*.head"))
    assert len(heads) >= 5  # of the collector
    for head in heads:
        assert int.from_bytes(head.read_bytes()[4096:4104], "little") > 0, head  # head: rows published
    assert not list(recording.glob("p*/s*.totals"))
    assert not query(recording, "FROM kymo.problems")


def test_samples_of_a_slow_zone_have_no_weight(record):
    recording = record(sys.executable, '''
        import kymo, time
        with kymo.region("slow"):
            time.sleep(1)
    ''', words=["--slow", "0.1"])
    weights = query(recording, "SELECT cause = 'period' AS p, min(weight_ns) AS low, max(weight_ns) AS high "
                               "FROM python.samples GROUP BY 1 ORDER BY 1")
    assert weights[0]["p"] is False and weights[0]["high"] == 0 and weights[1]["low"] > 0, weights


def test_a_rate_that_is_set_while_it_runs_fixes_the_period(place, tmp_path):
    (tmp_path / "program.py").write_text("import time\nuntil = time.monotonic() + 60\nwhile time.monotonic() < until: len('x')\n")
    out = tmp_path / "run"
    program = subprocess.Popen([KYMO, "run", "-q", "-o", out, "--", sys.executable, tmp_path / "program.py"], env=place)
    try:
        until(lambda: not subprocess.run([KYMO, "query", out, "FROM python.samples LIMIT 1"], env=place, capture_output=True,
                                         check=False).returncode)
        shown = subprocess.run([KYMO, "config", out, "sample_rate"], env=place, capture_output=True, text=True, check=False)
        assert shown.stdout == "adaptive\n", shown
        done = subprocess.run([KYMO, "config", out, "sample_rate=0.1"], env=place, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "sample_rate=0.1 (was adaptive)\n"), done
        time.sleep(2)
    finally:
        program.terminate()
        program.wait()
    (row,) = query(out, "SELECT median(gap) AS gap FROM (SELECT ts_ns, ts_ns - lag(ts_ns) OVER (ORDER BY ts_ns) AS gap, "
                        "max(ts_ns) OVER () AS last FROM python.samples) WHERE ts_ns > last - 1e9", place)
    assert row["gap"] > 80e6, row


def test_the_rate_can_be_changed_and_sampling_be_switched_off(record):
    recording = record(sys.executable, SLEEPER, {"KYMO_SAMPLE_RATE": "0.005"})
    assert len(query(recording, "FROM python.samples")) > 30
    assert query(recording, "SELECT count(DISTINCT node) AS n FROM kymo_scan('python.frames')")[0]["n"] < 200


DEEP = """
    import sys, time
    sys.setrecursionlimit(10**6)
    def down(n):
        if n: return down(n - 1)
        time.sleep(1)
    down(10000)
"""


def test_a_recursion_of_ten_thousand_is_whole(record, tmp_path):
    recording = record(sys.executable, DEEP)
    file = recording.parent / "program.py"
    deepest = f"stack[1] = 'down ({file}:6)'"
    rows = query(recording, f"SELECT DISTINCT stack FROM python.samples WHERE {deepest} AND cause = 'period'")
    assert [row["stack"] for row in rows] == [
        [f"down ({file}:6)"] + [f"down ({file}:5)"] * 10000 + [f"<module> ({file}:7)"]]
    (folded,) = query(recording, "SELECT stack FROM python.folded WHERE len(stack) > 50000")
    assert folded["stack"] == ";".join(["<module>"] + ["down"] * 10001)
    # Functions of DuckDB that look into lists, and files, take them as they take its own.
    (row,) = query(recording, "SELECT DISTINCT len(stack) AS n, list_reverse(stack)[1] AS outermost, list_distinct(stack)"
                              ".list_sort() AS places, len(list_filter(stack, f -> f LIKE '%:5)')) AS calls, "
                              f"(SELECT count(*) FROM unnest(stack)) AS unnested FROM python.samples WHERE {deepest}")
    assert row == {"n": 10002, "outermost": f"<module> ({file}:7)", "calls": 10000, "unnested": 10002,
                   "places": sorted([f"<module> ({file}:7)", f"down ({file}:5)", f"down ({file}:6)"])}
    kymo("query", recording, "-f", "parquet", "-o", tmp_path / "s.parquet", "FROM python.samples")
    kymo("pack", recording, tmp_path / "run.kymo")
    everything = "SELECT count(*) AS n, sum(len(stack))::BIGINT AS frames FROM "
    assert query(tmp_path / "run.kymo", everything + "python.samples") == query(recording, everything + "python.samples")


def test_a_ring_keeps_the_innermost_thousand(record):
    """The frames that a ring holds are as many as its rows: of a deeper stack its outer end would be lost unnoticed."""
    recording = record(sys.executable, DEEP, words=("--keep", "flight"))
    rows = query(recording, "SELECT DISTINCT len(stack) AS n, stack[-1] AS last FROM python.samples WHERE stack[1] LIKE 'down %:6)'")
    assert rows == [{"n": 1001, "last": "(outer frames)"}]


def test_off_means_no_rows(record):
    assert query(record(sys.executable, SLEEPER, {"KYMO_SAMPLE_RATE": "0"}), "FROM python.samples") == []


def test_a_rate_that_is_no_number_is_refused(place):
    done = subprocess.run([KYMO, "run", "--", "true"], env={**place, "KYMO_SAMPLE_RATE": "often"}, capture_output=True,
                          text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2, "kymo run: KYMO_SAMPLE_RATE=often: expected a number of seconds from 0 (off) to 86400, for example 0.1\n")


def test_folded_stacks_count_what_was_seen(record):
    recording = record(sys.executable, SLEEPER)
    (row,) = query(recording, "FROM python.folded WHERE stack LIKE '%inner'")
    assert row["stack"] == "<module>;outer;inner" and row["running"] == 0
    assert row["samples"] == len(query(recording, "FROM python.samples WHERE stack[1] LIKE 'inner %'"))


def test_places_sum_samples_by_function(record, tmp_path):
    recording = record(sys.executable, """
        import time
        def deep(n): deep(n - 1) if n else time.sleep(0.6)
        def spin():
            end = time.monotonic() + 0.6
            while time.monotonic() < end: pass
        def outer():
            deep(5)
            spin()
        outer()
    """)
    rows = {row["function"]: row for row in query(recording, "FROM trace.places")}
    (whole,) = query(recording, "SELECT sum(weight_ns)::BIGINT AS ns FROM python.samples WHERE cause = 'period'")
    file = str(recording.parent / "program.py")
    assert {row["file"] for row in rows.values()} == {file} and {row["source"] for row in rows.values()} == {"python"}
    assert rows["deep"]["line"] == 3 and rows["outer"]["line"] in (8, 9)
    assert rows["deep"]["waiting_ns"] > 0.9 * rows["deep"]["self_ns"] and rows["spin"]["running_ns"] > 0
    # Recursion counts once, a caller has the time of what it calls, and no sample is the self time of two functions.
    assert rows["deep"]["total_ns"] == rows["deep"]["self_ns"]
    assert rows["outer"]["total_ns"] >= rows["deep"]["total_ns"] + rows["spin"]["total_ns"]
    assert rows["<module>"]["total_ns"] == sum(row["self_ns"] for row in rows.values()) <= whole["ns"]
    for row in rows.values():
        assert row["share"] == pytest.approx(row["self_ns"] / whole["ns"]) and row["rank"] is None
    kymo("pack", recording, tmp_path / "run.kymo")
    everything = "FROM trace.places ORDER BY function"
    assert query(tmp_path / "run.kymo", everything) == query(recording, everything)


def test_samples_survive_packing(record, tmp_path):
    recording = record(sys.executable, SLEEPER)
    kymo("pack", recording, tmp_path / "run.kymo")
    sql = "SELECT pid, tid, thread, stack, state, gil, cause FROM python.samples"
    assert query(tmp_path / "run.kymo", sql) == query(recording, sql)


def test_flight_keeps_whole_stacks(record):
    recording = record(sys.executable, """
        import time
        end = time.time() + 3
        def make(n):
            exec(compile(chr(10) * n + f"def f{n}(): time.sleep(0.0005)", "made", "exec"), globals())
            return globals()[f"f{n}"]
        while time.time() < end:
            for n in range(3000):
                make(n)()
                if time.time() > end: break
    """, {"KYMO_SAMPLE_RATE": "0.001"}, ["--keep", "flight"])
    rows = query(recording, "FROM python.samples")
    assert len(rows) > 300
    made = [row["stack"] for row in rows if row["stack"] and " (made:" in row["stack"][0]]
    assert len(made) > 100
    assert {stack[-1].split(":")[0] for stack in made} == {f"<module> ({recording.parent / 'program.py'}"}


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_are_sampled_too(record, method):
    recording = record(sys.executable, f"""
        import multiprocessing, time
        def work(): time.sleep(1.2)
        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            some = [context.Process(target=work) for _ in range(3)]
            [p.start() for p in some]
            [p.join() for p in some]
    """)
    assert query(recording, "SELECT count(DISTINCT pid) AS n FROM python.samples WHERE stack[1] LIKE 'work %'") == [
        {"n": 3}]


def test_five_hundred_short_workers_one_after_another(record):
    recording = record(sys.executable, """
        import os, time
        def child():
            time.sleep(0.004)
            os._exit(0)
        for _ in range(500):
            pid = os.fork()
            child() if pid == 0 else os.waitpid(pid, 0)
    """, {"KYMO_SAMPLE_RATE": "0.01"})
    # While the program runs; before and after it Python calls functions of its own (encodings, the end of threads).
    (row,) = query(recording, "WITH own AS (SELECT min(ts_ns) AS a, max(ts_ns) AS b FROM python.samples WHERE stack[-1] LIKE "
                              "'<module> (%program.py:%') SELECT count(*) AS n, count(*) FILTER (stack[-1] NOT LIKE '<module>%') "
                              "AS wrong FROM python.samples, own WHERE ts_ns BETWEEN a AND b")
    assert row["n"] > 5 and row["wrong"] == 0


def test_a_slow_zone_and_a_mark_are_causes(record):
    recording = record(sys.executable, """
        import time, kymo
        def quick():
            with kymo.region("quick"): time.sleep(0.01)
        def stuck():
            with kymo.region("stuck"): time.sleep(1)
        for _ in range(10): quick()
        stuck()
        kymo.mark("one")
        kymo.mark("here")
        time.sleep(0.5)
    """, {"KYMO_SAMPLE_RATE": "0"}, ["--slow", "0.3"])
    rows = query(recording, "SELECT cause, stack FROM python.samples ORDER BY ts_ns")
    causes = [row["cause"] for row in rows]
    assert set(causes) == {"slow zone: stuck", "mark: here"}
    assert rows[0]["stack"][0].startswith("stuck (")


def test_a_slow_step_is_a_cause(record):
    recording = record(sys.executable, """
        import time, kymo
        for n in range(4):
            kymo.step()
            time.sleep(1.2 if n == 2 else 0.02)
    """, {"KYMO_SAMPLE_RATE": "0", "KYMO_SLOW_ZONE": "0.4"})
    causes = {row["cause"] for row in query(recording, "FROM python.samples")}
    assert any(cause.startswith("slow step: ") for cause in causes)


@each_python
def test_backtrace_in_sql_is_live_and_then_the_last_one(place, tmp_path, python):
    script, out = tmp_path / "program.py", tmp_path / "run"
    script.write_text("import sys\ndef here():\n    print('ready', flush=True)\n    sys.stdin.readline()\nhere()\n")
    child = subprocess.Popen([KYMO, "run", "-q", "-o", out, "--", python, script], env=place, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        sql = "SELECT thread, func, file, lineno, depth, frame_type, age_ns FROM python.backtrace"
        wanted = [("MainThread", "here", 4, 0, "Python"), ("MainThread", "<module>", 5, 1, "Python")]

        def ask():
            rows = query(out, sql, place)
            found = [(r["thread"], r["func"], r["lineno"], r["depth"], r["frame_type"]) for r in rows]
            return rows if found == wanted else None
        live = until(ask)
        assert live and all(row["age_ns"] < 10e9 for row in live)
        until(lambda: query(out, "FROM python.samples WHERE stack[1] LIKE 'here %:4)'", place))
        os.kill(query(out, "SELECT pid FROM kymo.runs", place)[0]["pid"], signal.SIGKILL)
    finally:
        child.stdin.close()
        child.wait(60)
        child.stdout.close()
    dead = ask()
    assert dead and all(row["age_ns"] >= 0 for row in dead)
    thread, = json.loads(kymo("backtrace", "--json", out).stdout)
    assert [(f["func"], f["lineno"]) for f in thread["frames"]] == [("here", 4), ("<module>", 5)]
    assert (thread["thread"], thread["state"]) == ("MainThread", None)
    assert abs(thread["age_ns"] - dead[0]["age_ns"]) < 1000  # rounded
    head, _, first, *_ = kymo("backtrace", out).stdout.splitlines()
    assert head.endswith(", 1 thread; the recording has ended, these are the last stacks taken")
    assert first.startswith("Thread ") and first.endswith(" before the end")


def test_a_program_that_has_ended_cannot_be_asked_more_than_was_taken(record, tmp_path):
    recording = record(sys.executable, SLEEPER)
    assert kymo("backtrace", "--why", recording, status=1).stderr == (
        f"kymo backtrace: --why needs a running program, and the program of {recording} has ended; omit it to see the last "
        "sampled stacks\n")
    kymo("pack", recording, tmp_path / "run.kymo")
    packed, plain = (json.loads(kymo("backtrace", "--json", path).stdout) for path in (tmp_path / "run.kymo", recording))
    assert packed[0]["frames"] == plain[0]["frames"] != []


def test_the_last_stack_of_a_program_is_not_hidden_by_its_way_out(record):
    """Python frees what a module held when no frame is left, and is sampled in that."""
    recording = record(sys.executable, """
        import time
        held = [[] for _ in range(10_000_000)]
        def here(): time.sleep(1)
        here()
    """, {"KYMO_SAMPLE_RATE": "0.005"})
    *_, last = query(recording, "FROM python.samples WHERE len(stack) > 0 ORDER BY ts_ns")
    thread, = json.loads(kymo("backtrace", "--json", recording).stdout)
    assert [f"{f['func']} ({f['file']}:{f['lineno']})" for f in thread["frames"]] == last["stack"]


def test_where_no_stack_was_taken_that_is_said(record):
    recording = record(sys.executable, "pass", {"KYMO_SAMPLE_RATE": "0"})
    assert kymo("backtrace", recording, status=1).stderr == (
        f"kymo backtrace: the recording {recording} has ended and has no Python stacks\n")


def test_killed_at_random_the_sampler_leaves_the_program_running(place, tmp_path):
    """The supervisor dies; the program was never held, so it goes on."""
    script = tmp_path / "program.py"
    script.write_text("import time\nprint('ready', flush=True)\nfor n in range(10**9):\n    time.sleep(0.001)\n")
    for pause in (0.05, 0.2, 0.35):
        child = subprocess.Popen([KYMO, "run", "-q", "-o", tmp_path / f"r{pause}", "--", sys.executable, script],
                                 env={**place, "KYMO_SAMPLE_RATE": "0.001"}, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        time.sleep(pause)
        (target,) = [int(p) for p in pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
                     if b"program.py" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes()]
        child.kill()
        child.wait()
        child.stdout.close()
        state = pathlib.Path(f"/proc/{target}/stat").read_text().rsplit(")", 1)[1].split()[0]
        os.kill(target, signal.SIGKILL)
        assert state in "RS"


def test_every_python_was_tried():
    assert PYTHONS, "there is no Python 3.11 or later to read"


HANGS = """
    import os, time
    def outer(): inner()
    def inner():
        print(os.getpid(), flush=True)
        time.sleep(1000)
    outer()
"""


@pytest.mark.parametrize("number, words", [(signal.SIGKILL, "was killed by SIGKILL"), (signal.SIGTERM, "was killed by SIGTERM")])
def test_the_summary_of_a_program_that_hung_shows_where(place, tmp_path, number, words):
    script, out = tmp_path / "program.py", tmp_path / "run"
    script.write_text(textwrap.dedent(HANGS))
    run = subprocess.Popen([KYMO, "run", "-o", out, "--", sys.executable, script], env=place, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    pid = int(run.stdout.readline())
    try:
        until(lambda: len(query(out, "FROM python.samples WHERE stack[1] LIKE 'inner %:6)'", place)) > 60)
    finally:
        os.kill(pid, number)
        said = run.communicate(timeout=60)[1].splitlines()
    if said[1] == f"  {out}":  # a path that does not fit the first line
        del said[1]
    assert words in said[0]
    assert re.fullmatch(r'  Last stack, .*s before the end, of thread "MainThread":', said[1])
    frames = [(line.split()[0], line.rsplit("/", 1)[-1]) for line in said[2:5]]  # a long path is cut in its middle
    assert frames == [("inner", "program.py:6"), ("outer", "program.py:3"), ("<module>", "program.py:7")]
    assert said[5].startswith("  All threads (1): kymo backtrace")
    # Below it the summary: the places of own code, and what to type next.
    assert re.search(r"^  [\d.]+ m?s +[\d.]+  [\d.]+ m?s +[0-9] %  inner \(program\.py:6\)$", "\n".join(said), re.M), said
    assert said[-1].startswith("  next: ") and len(said) <= 24 and all(len(line) <= 80 for line in said[6:])
    if number == signal.SIGKILL:
        assert "  evidence  MainThread was last seen in inner (program.py:6)\n" in kymo("report", out).stdout
