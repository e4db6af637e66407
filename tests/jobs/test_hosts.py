"""Processes of two hosts that have the same pid do not mix, in tables, verdicts, reports and exports."""
import json
import subprocess
import sys

import pytest

from conftest import KYMO, make_job, namespaces

PROGRAM = """
import sys, time, threading
def hold():
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        sum(range(2000))
def rest():
    time.sleep(1.5)
hold() if sys.argv[1] == "0" else rest()
"""


@pytest.fixture
def two(place):
    """Rank 0 computes, rank 1 sleeps; their pids are equal."""
    prefix = namespaces()
    (place.path / "work.py").write_text(PROGRAM)
    begun = []
    for rank in range(2):
        words = [*prefix(rank), KYMO, "run", "-q", "-o", "jobs/", "--", sys.executable, "work.py", str(rank)]
        begun.append(subprocess.Popen([str(word) for word in words], cwd=place.path, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                      env={**place.env, "RANK": str(rank), "WORLD_SIZE": "2", "KYMO_JOB": "two"}))
    try:
        said = [one.communicate(timeout=60) for one in begun]
    finally:
        for one in begun:
            one.kill()
    assert [one.returncode for one in begun] == [0, 0], said
    return place


def test_samples_and_places_belong_to_their_host(two):
    assert two.ask("jobs/two", "SELECT count(DISTINCT pid)::INT AS n FROM python.samples") == [{"n": 1}]
    rows = two.ask("jobs/two", "SELECT host, rank, function FROM trace.places WHERE function IN ('hold', 'rest') ORDER BY host")
    assert rows == [{"host": "host0", "rank": 0, "function": "hold"}, {"host": "host1", "rank": 1, "function": "rest"}]
    folded = two.ask("jobs/two", "SELECT DISTINCT host, regexp_extract(stack, 'hold|rest') AS f FROM python.folded "
                                 "WHERE stack LIKE '%hold%' OR stack LIKE '%rest%' ORDER BY host")
    assert folded == [{"host": "host0", "f": "hold"}, {"host": "host1", "f": "rest"}]


def test_verdicts_and_reports_of_hosts_do_not_mix(two):
    done = two.kymo("report", "jobs/two", "-f", "json")
    report = json.loads(done.stdout)
    assert report["problems"] == []
    for verdict in report["verdicts"]:
        where = verdict.get("where") or {}
        if verdict["name"] == "waiting":
            assert where["function"] == "rest", verdict
        if verdict["name"] == "function":
            assert where["function"] == "hold", verdict


def test_threads_of_an_export_stay_apart(two):
    assert two.kymo("export", "jobs/two", "-o", "all.json", "--samples").returncode in (0, 2)
    two.kymo("export", "jobs/two", "-o", "zones.json")
    lanes = {(event["pid"], event["tid"]) for event in json.loads((two.path / "zones.json").read_text())["traceEvents"]
             if event["ph"] == "X"}
    zones = two.ask("jobs/two", "SELECT count(DISTINCT (host, pid, tid))::INT AS n FROM trace.zones")[0]["n"]
    assert len(lanes) >= zones


def test_steps_of_equal_pids_are_those_of_one_rank(place):
    """All ranks of the made job have pid 100; the steps that the report shows are of one."""
    job = make_job(place, "made", "ranks=4 steps=50 samples=1")
    assert place.ask(job, "SELECT count(DISTINCT pid)::INT AS pids, count(*)::INT AS n FROM trace.steps") == [{"pids": 1, "n": 200}]
    report = json.loads(place.kymo("report", job, "-f", "json").stdout)
    assert report["steps"]["count"] == 50, report["steps"]


def test_every_table_with_a_pid_joins_by_host_and_pid(two):
    """Both programs have the same pid. Rows of a table that are joined with its process stay as many as they are."""
    tables = two.ask("jobs/two", "SELECT table_schema || '.' || table_name AS name, list(column_name) AS columns "
                                 "FROM information_schema.columns WHERE table_schema IN "
                                 "('alloc', 'device', 'dist', 'host', 'kymo', 'native', 'python', 'trace') GROUP BY 1 ORDER BY 1")
    with_pid = [table for table in tables if "pid" in table["columns"]]
    assert len(with_pid) > 30
    assert [table["name"] for table in with_pid if "host" not in table["columns"]] == []
    counts = " UNION ALL ".join(
        f"SELECT '{name}' AS name, (SELECT count(*) FROM {name} WHERE pid IS NOT NULL)::INT AS n, (SELECT count(*) FROM {name} "
        f"JOIN (SELECT DISTINCT host, pid FROM kymo.processes) USING (host, pid))::INT AS joined" for name in
        (table["name"] for table in with_pid))
    rows = two.ask("jobs/two", counts)
    assert [row for row in rows if row["joined"] > row["n"]] == []
    known = {row["name"]: row for row in rows if row["n"] and row["joined"] == row["n"]}
    assert {"kymo.processes", "python.samples", "host.process", "trace.places"} <= set(known), [r for r in rows if r["n"]]
    ranks = two.ask("jobs/two", "SELECT DISTINCT s.rank, p.rank AS other FROM python.samples s JOIN kymo.processes p USING (host, pid)")
    assert all(row["rank"] == row["other"] for row in ranks) and len(ranks) == 2, ranks
