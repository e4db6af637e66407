"""One recording has one median: everything that states a quantile of a region states the same whole ns."""
import json
import re
import shutil
import subprocess

import pytest
from conftest import PYTHON, ROOT, Server, make_home, run_kymo

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
print(json.dumps(timer.all_times()["work"]))
"""


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
        (row,) = self.query("SELECT p50_ns, p90_ns, p99_ns FROM trace.regions WHERE name = 'work' AND source = 'python'")
        return {key: row[f"{key}_ns"] for key in SHARES}


def found(list_):
    (one,) = [region for region in list_ if region["name"] == "work"]
    return {key: one[f"{key}_ns"] for key in SHARES if f"{key}_ns" in one}


def table_row(text):
    """p50 and p99 as the table of regions prints them."""
    return re.search(r" work +python +200 +(\S+ \S+) +(\S+ \S+)$", text, re.M).groups()


@pytest.fixture(scope="module", params=["monotonic", ""], ids=["monotonic", "counter"])
def recorded(request, tmp_path_factory):
    return Recorded(make_home(tmp_path_factory.mktemp("quantiles")), request.param)


def test_the_summary_of_a_short_run_and_the_report_print_the_same(recorded):
    assert table_row(recorded.summary) == table_row(recorded.kymo("report", recorded.path))


def test_the_profiler_states_what_the_table_states(recorded, request):
    ours, table = json.loads(recorded.out), recorded.regions()
    if "monotonic" in request.node.callspec.id:
        assert {key: round(ours[key] * 1e6) for key in SHARES} == table
    else:  # the rate of the counter is known better at the end
        assert {key: ours[key] * 1e6 for key in SHARES} == pytest.approx(table, rel=1e-3, abs=2)


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


def test_the_script_of_a_page_states_what_the_table_states(recorded, request, tmp_path):
    if "monotonic" not in request.node.callspec.id:
        pytest.skip("a page has ns, and buckets are of ticks")
    node = shutil.which("node")
    if not node:
        pytest.skip("node is not here")
    durations = [row["d"] for row in recorded.query("SELECT duration_ns AS d FROM trace.zones WHERE name = 'work'")]
    # Node takes a .js file for CommonJS, older versions always.
    module = shutil.copy(ROOT / "web/src/hist.js", tmp_path / "hist.mjs")
    script = (f"import {{ quantiles }} from {json.dumps(str(module))};"
              f"console.log(JSON.stringify(quantiles({json.dumps(durations)}, {json.dumps(list(SHARES.values()))})));")
    done = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    assert dict(zip(SHARES, json.loads(done.stdout))) == recorded.regions()
