"""GET /metrics, as Prometheus itself reads it, and the files of packaging/monitoring."""
import contextlib
import json
import re
import subprocess
import urllib.parse
import urllib.request

import pytest

from conftest import KYMO, PYTHON, ROOT, SECONDS, Server, free_port, make_home, program, until

RULES = ROOT / "packaging/monitoring/kymo-alerts.yml"
DASHBOARD = ROOT / "packaging/monitoring/kymo-grafana.json"

LOOP = """
import select, sys, time, kymo
print("begun", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    kymo.step()
    kymo.record("loss", 0.25)
    with kymo.region('quoted " \\\\ and\\nbroken'):
        time.sleep(0.01)
"""

SAMPLE = re.compile(r'^([a-z_:]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[n"\\])*",?)*)\})? (\S+)$')


def samples(text):
    """(name, labels) -> value; every line has the form of OpenMetrics."""
    found, head = {}, None
    assert text.endswith("# EOF\n")
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE "):
            head = line.split()[2]
            continue
        if line.startswith("#"):
            assert line.split()[2] == head
            continue
        match = SAMPLE.match(line)
        assert match and match[1].startswith(head), line
        labels = tuple(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
        assert (match[1], labels) not in found, line
        found[match[1], labels] = float(match[3])
    return found


def value(found, name, **labels):
    """The sum of those that have these labels; None: there is none."""
    chosen = [v for (n, has), v in found.items() if n == name and set(labels.items()) <= set(has)]
    return sum(chosen) if chosen else None


@pytest.fixture(scope="module")
def looping(tmp_path_factory):
    home = make_home(tmp_path_factory.mktemp("metrics"))
    (home / "work/loop.py").write_text(LOOP)
    return home


@contextlib.contextmanager
def serving(home, *words, **options):
    server = Server(home, *words, **options)
    try:
        yield server
    finally:
        assert server.stop() == 0


def recorded(home, name):
    return program(home, KYMO, "run", "-q", "-n", name, "-o", home / "recorded" / name, "--", PYTHON, "loop.py")


def test_a_running_program_has_steps_regions_memory_and_findings(looping):
    with recorded(looping, "first"), serving(looping) as server:
        def scraped():
            answer = server.ask("/metrics")
            assert answer.status == 200 and answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
            return samples(answer.body.decode())

        def complete(f):
            """Queries answer in turn, and the collector measures itself every second."""
            wanted = ("counter_value", "overhead_ratio", "finding_gain_ratio", "steps_total", "region_zones_total")
            return all(value(f, "kymo_" + name) is not None for name in wanted) and value(f, "kymo_overhead_ratio", source="collector")

        found = until(lambda: (f := scraped()) and complete(f) and f)
        assert value(found, "kymo_runs") == 1 and value(found, "kymo_run_state", run="first", state="running") == 1
        assert value(found, "kymo_counter_value", counter="loss", run="first") == 0.25
        assert value(found, "kymo_memory_bytes", run="first") > 1 << 20
        assert value(found, "kymo_overhead_ratio", source="collector") > 0
        assert value(found, "kymo_finding_gain_ratio") is not None
        assert value(found, "kymo_region_zones_total", region='quoted \\" \\\\ and\\nbroken') > 0
        assert value(found, "kymo_rows_lost_total", table="trace.steps", cause="dropped") == 0
        later = until(lambda: (f := scraped()) and value(f, "kymo_steps_total") > value(found, "kymo_steps_total") and f)
        for name in ("kymo_step_duration_seconds_count", "kymo_step_duration_seconds_sum", "kymo_region_seconds_total"):
            assert value(later, name) > value(found, name)
        buckets = [v for (n, _), v in later.items() if n == "kymo_step_duration_seconds_bucket"]
        assert buckets == sorted(buckets) and buckets[-1] == value(later, "kymo_step_duration_seconds_count")
        # A step takes 10 ms or more.
        assert value(later, "kymo_step_duration_seconds_bucket", le="0.005") == 0
        assert value(later, "kymo_step_duration_seconds_sum") >= 0.01 * value(later, "kymo_step_duration_seconds_count")


def test_a_program_that_was_killed_is_shown_so(looping):
    with serving(looping) as server:
        with recorded(looping, "killed") as running:
            child = until(lambda: next((t["pid"] for t in server.targets() if t["name"] == "killed" and t["pid"]), None))
            until(lambda: value(samples(server.ask("/metrics").body.decode()), "kymo_steps_total", run="killed"))
            subprocess.run(["kill", "-KILL", str(child)], check=True)
            running.wait(SECONDS)
        until(lambda: value(samples(server.ask("/metrics").body.decode()), "kymo_run_state", run="killed", state="killed") == 1)


def test_a_scrape_is_a_copy(looping):
    """No request waits for a recording to be read once there is a document."""
    with recorded(looping, "copied"), serving(looping) as server:
        until(lambda: value(samples(server.ask("/metrics").body.decode()), "kymo_steps_total", run="copied"))
        for _ in range(50):
            assert server.ask("/metrics").status == 200
        # The same document or the next few: it is not made for each request.
        assert len({server.ask("/metrics").body for _ in range(50)}) < 50


def test_metrics_need_the_token_where_the_api_does(looping):
    with serving(looping, "--require-token", env={"KYMO_TOKEN": "wombat"}) as server:
        assert server.ask("/metrics").status == 401
        assert server.ask("/metrics", headers={"Authorization": "Bearer wombat"}).status == 200
        assert server.ask("/metrics", {}, headers={"Authorization": "Bearer wombat"}).status == 405


# ---- Prometheus --------------------------------------------------------------------------------


class Prometheus:
    def __init__(self, home, target, token):
        self.port = free_port()
        (home / "token").write_text(token)
        (home / "prometheus.yml").write_text(f"""
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{RULES}]
scrape_configs:
  - job_name: kymo
    authorization: {{credentials_file: {home}/token}}
    static_configs: [{{targets: ["127.0.0.1:{target}"]}}]
""")
        self.log = home / "prometheus.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/tsdb",
                                             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log, cwd=home)

    def get(self, path, **parameters):
        try:
            address = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(parameters)}"
            with urllib.request.urlopen(address, timeout=SECONDS) as answer:
                return json.load(answer)["data"]
        except OSError:
            assert self.process.poll() is None, self.log.read_text()
            return None

    def query(self, expr):
        data = self.get("/api/v1/query", query=expr)
        return data and data["result"]


@pytest.fixture(scope="module")
def prometheus(looping, tmp_path_factory):
    home = tmp_path_factory.mktemp("prometheus")
    with recorded(looping, "scraped"), serving(looping, "--require-token", env={"KYMO_TOKEN": "wombat"}) as server:
        prometheus = Prometheus(home, server.port, "wombat")
        try:
            yield prometheus
        finally:
            prometheus.process.terminate()
            prometheus.process.wait(SECONDS)


def test_prometheus_takes_every_sample(prometheus):
    until(lambda: prometheus.query('rate(kymo_steps_total{run="scraped"}[10s]) > 0'))
    until(lambda: prometheus.query('kymo_counter_value{run="scraped", counter="loss"} == 0.25'))
    until(lambda: prometheus.query('kymo_finding_gain_ratio{run="scraped"}'))
    middle = until(lambda: prometheus.query("histogram_quantile(0.5, rate(kymo_step_duration_seconds_bucket[10s]))"))
    assert 0.005 < float(middle[0]["value"][1]) < 10
    assert prometheus.query("up") and prometheus.query("up == 0") == []
    target = prometheus.get("/api/v1/targets")["activeTargets"][0]
    assert (target["health"], target["lastError"]) == ("up", "")
    known = prometheus.get("/api/v1/metadata")
    assert known["kymo_step_duration_seconds"][0]["type"] == "histogram" and known["kymo_steps"][0]["type"] == "counter"
    assert "duplicate" not in prometheus.log.read_text().lower()


def test_prometheus_takes_the_alert_rules_and_the_queries_of_the_dashboard(prometheus):
    until(lambda: prometheus.query('kymo_counter_value{run="scraped"}'))
    rules = prometheus.get("/api/v1/rules")["groups"][0]["rules"]
    assert len(rules) == 10 and not [rule for rule in rules if rule.get("lastError")]
    expressions = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]
    assert len(expressions) > 15
    empty = []
    for expression in expressions:
        filled = expression.replace("$__rate_interval", "10s").replace("$run", "scraped")
        found = prometheus.query(filled)
        assert found is not None, filled
        if not found:
            empty.append(expression)
    # There is no device, no phase and no trigger here.
    assert not [e for e in empty if not re.search("gpu|device|phase|trigger", e)], empty


def test_the_alert_rules_are_right_and_fire(tmp_path):
    checked = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True)
    assert checked.returncode == 0 and "10 rules found" in checked.stdout, checked.stdout + checked.stderr
    run = 'run="r", program="train.py", pid="7"'
    (tmp_path / "tests.yml").write_text(f"""
rule_files: [{RULES}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'kymo_run_state{{{run}, state="running"}}'
        values: '1x40'
      - series: 'kymo_steps_total{{{run}}}'
        values: '0+60x9 600x30'
      - series: 'kymo_rows_lost_total{{{run}, table="trace.zones", cause="dropped"}}'
        values: '0x20 5x20'
      - series: 'kymo_rows_lost_total{{{run}, table="trace.zones", cause="overwritten"}}'
        values: '0+1000x40'
    alert_rule_test:
      - {{eval_time: 9m, alertname: KymoNoSteps, exp_alerts: []}}
      - eval_time: 25m
        alertname: KymoNoSteps
        exp_alerts:
          - exp_labels: {{severity: critical, run: r, program: train.py, pid: "7"}}
            exp_annotations:
              summary: train.py (r) has made no step for 5 minutes
              description: kymo backtrace --why 7 shows what it waits for.
      - {{eval_time: 19m, alertname: KymoRowsDropped, exp_alerts: []}}
      - eval_time: 22m
        alertname: KymoRowsDropped
        exp_alerts:
          - exp_labels: {{severity: warning, run: r, program: train.py, pid: "7", table: trace.zones}}
            exp_annotations: {{summary: train.py (r) dropped rows of trace.zones}}
      - {{eval_time: 30m, alertname: KymoRunFailed, exp_alerts: []}}
  - interval: 1m
    input_series:
      - series: 'kymo_run_state{{{run}, state="killed"}}'
        values: '1x5'
    alert_rule_test:
      - eval_time: 2m
        alertname: KymoRunFailed
        exp_alerts:
          - exp_labels: {{severity: critical, run: r, program: train.py, pid: "7", state: killed}}
            exp_annotations:
              summary: train.py (r) was killed
              description: kymo report r shows its last zones and stacks.
""")
    tested = subprocess.run(["promtool", "test", "rules", tmp_path / "tests.yml"], capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr
