"""One recording has one median: everything that states a quantile of a region states the same whole ns.

Ticks become ns by the newest clock pair (docs/format.md, "Times"): what is asked while the program runs is compared with
the program's own answer of that moment, and what is asked after its end with the recording.
"""
import json
import math
import re
import shutil
import subprocess

import pytest
from conftest import KYMO, PYTHON, ROOT, Server, environment, make_home, run_kymo

SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
# Lengths that spread over buckets an eighth of a doubling wide; few enough for a summary without SQL.
PROGRAM = """
import json, time
from kymo.profiler import CUDATimer
timer = CUDATimer()
for i in range(200):
    with timer.measure("work"):
        end = time.perf_counter_ns() + 20_000 + 997 * i
        while time.perf_counter_ns() < end:
            pass
print(json.dumps(timer.all_times()["work"]), flush=True)
"""
# Long enough for a clock pair half a second after the first; then it records nothing.
WAITS = PROGRAM.replace("print", "time.sleep(1.2)\nprint") + "input()\n"
UNITS = {"ns": 1, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}


class Recorded:
    def __init__(self, home, clock):
        (home / "work/work.py").write_text(PROGRAM)
        env = {"KYMO_GC": "off", **({"KYMO_CLOCK": clock} if clock else {})}
        status, self.out, self.summary = run_kymo(home, "run", "-o", home / "run", "--", PYTHON, "work.py", env=env)
        assert status == 0, self.summary
        self.home, self.path = home, home / "run"

    def kymo(self, *words):
        status, out, err = run_kymo(self.home, *words)
        assert status == 0, err
        return out

    def query(self, sql):
        return json.loads(self.kymo("query", "-f", "json", self.path, sql))

    def regions(self):
        return self.row("p50", "p90", "p99")

    def row(self, *keys):
        columns = ", ".join(f"{key}_ns" for key in keys)
        (row,) = self.query(f"SELECT {columns} FROM trace.regions WHERE name = 'work' AND source = 'python'")
        return {key: row[f"{key}_ns"] for key in keys}


def found(list_):
    (one,) = [region for region in list_ if region["name"] == "work"]
    return {key: one[f"{key}_ns"] for key in SHARES if f"{key}_ns" in one}


def table_row(text):
    """p50 and p99 as the table of regions prints them."""
    return re.search(r" work +python +200 +(\S+ \S+) +(\S+ \S+)$", text, re.M).groups()


def means(printed, ns):
    """Whether a printed duration is this one: all its digits are right."""
    number, unit = printed.split()
    last = 10.0 ** -len(number.partition(".")[2]) * UNITS[unit]
    return abs(float(number) * UNITS[unit] - ns) <= last / 2 * (1 + 1e-9)


def is_counter(request):
    return "counter" in request.node.callspec.id


CLOCKS = pytest.mark.parametrize("clock", ["monotonic", ""], ids=["monotonic", "counter"])


@pytest.fixture(scope="module", params=["monotonic", ""], ids=["monotonic", "counter"])
def recorded(request, tmp_path_factory):
    return Recorded(make_home(tmp_path_factory.mktemp("quantiles")), request.param)


def test_the_summary_of_a_short_run_and_the_report_print_the_same(recorded):
    assert table_row(recorded.summary) == table_row(recorded.kymo("report", recorded.path))
    table = recorded.regions()
    assert all(means(text, table[key]) for text, key in zip(table_row(recorded.summary), ("p50", "p99")))


def test_the_profiler_of_a_short_run_states_what_the_table_states(recorded, request):
    ours, table = json.loads(recorded.out), recorded.regions()
    if is_counter(request):  # it answered within the first half second, when the rate is of the pair of that moment
        assert {key: ours[key] * 1e6 for key in SHARES} == pytest.approx(table, rel=1e-3, abs=2)
    else:
        assert {key: round(ours[key] * 1e6) for key in SHARES} == table


@CLOCKS
def test_a_program_that_runs_states_what_a_query_states_at_that_moment(tmp_path, clock):
    home, keys = make_home(tmp_path), ("min", "p50", "p90", "p99", "max", "total")
    (home / "work/work.py").write_text(WAITS)
    env = {**environment(home), "KYMO_GC": "off", **({"KYMO_CLOCK": clock} if clock else {})}
    with subprocess.Popen([KYMO, "run", "-q", "-o", home / "run", "--", PYTHON, "work.py"], cwd=home / "work", env=env,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        ours = json.loads(running.stdout.readline())
        ours = {key: round(ours[key] * 1e6) for key in keys}
        recording = Recorded.__new__(Recorded)
        recording.home, recording.path = home, home / "run"
        assert recording.row(*keys) == ours
        running.communicate(b"\n")
    # At the end another pair is taken; both pairs are read within microseconds, more than a second apart.
    assert recording.row(*keys) == (ours if clock else pytest.approx(ours, rel=1e-5, abs=1))


def test_reports_state_what_the_table_states(recorded):
    table = recorded.regions()
    timing = json.loads(recorded.kymo("report", "-f", "json", recorded.path))["timing"]["work"]
    assert {key: round(timing[key] * 1e6) for key in SHARES} == table
    page = recorded.home / "page.html"
    status, _, err = run_kymo(recorded.home, "report", "-f", "html", "-o", page, recorded.path)
    if "built without HTML" in err:
        pytest.skip("this kymo was built without HTML reports")
    assert status == 0, err
    data = json.loads(re.search(r'id="kymo-data">(.*?)</script>', page.read_text(), re.S)[1])
    assert found(data["regions"]) == {key: table[key] for key in found(data["regions"])} != {}


def test_the_server_states_what_the_table_states(recorded):
    table, server = recorded.regions(), Server(recorded.home, recorded.path)
    try:
        run = found(server.get("/api/run")["regions"])
        assert found(server.get("/api/range", **{"from": 0, "to": 1 << 60})["regions"]) == table
        assert run == {key: table[key] for key in run} != {}
    finally:
        assert server.stop() == 0


def test_the_script_of_a_page_states_what_the_table_states(recorded, tmp_path):
    node = shutil.which("node")
    if not node:
        pytest.skip("node is not here")
    page = tmp_path / "page.html"
    status, _, err = run_kymo(recorded.home, "report", "-f", "html", "-o", page, recorded.path)
    if "built without HTML" in err:
        pytest.skip("this kymo was built without HTML reports")
    assert status == 0, err
    zones = json.loads(re.search(r'id="kymo-data">(.*?)</script>', page.read_text(), re.S)[1])["zones"]
    assert zones["quantum_ns"] == 1
    durations = [row["d"] for row in recorded.query("SELECT duration_ns AS d FROM trace.zones WHERE name = 'work'")]
    # Node takes a .js file for CommonJS, older versions always.
    module = shutil.copy(ROOT / "web/src/hist.js", tmp_path / "hist.mjs")
    words = ", ".join(map(json.dumps, (durations, list(SHARES.values()), zones["tick_ns"])))
    script = f"import {{ quantiles }} from {json.dumps(str(module))}; console.log(JSON.stringify(quantiles({words})));"
    done = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    ours, table = dict(zip(SHARES, json.loads(done.stdout))), recorded.regions()
    if begins_a_bucket(durations, zones["tick_ns"]):  # a whole ns that two buckets share; once in some hundred runs
        assert ours == pytest.approx(table, rel=1 / 8)
    else:
        assert ours == table


def begins_a_bucket(durations, tick):
    starts = {math.floor((8 + b % 8) * 2 ** (b // 8 - 1) * tick) for b in range(8, 344)}
    return tick < 1 and not starts.isdisjoint(durations)
