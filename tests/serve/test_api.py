"""What docs/api.md promises of recordings."""
import csv
import io
import json
import pathlib

import pyarrow.ipc
import pyarrow.parquet
import pytest

from conftest import PROGS, Server, alike, make_home, run_kymo, until

HOSTILE = "</script><img src=x onerror=alert(1)>\n\x01\u2028=cmd()"


def test_the_list_names_program_state_and_exit(server, recording):
    listed = server.get("/api/targets")
    first = next(t for t in listed["targets"] if t["path"] == str(recording))
    assert (first["program"], first["state"], first["exit_code"], first["signal"]) == ("trained.py", "ended", 0, None)
    assert first["command"].endswith("python trained.py") and first["steps"] == 300
    assert listed["default"] == first["id"] and listed["address"] == f"127.0.0.1:{server.port}"


def test_the_first_that_was_named_is_opened_and_names_of_runs_are_listed(tmp_path):
    """The second is younger."""
    home = make_home(tmp_path)
    for words in (["-o", home / "first"], ["-n", "second", "-o", home / "named"]):
        status, _, err = run_kymo(home, "run", "-q", *words, "--", PROGS / "probe_loop")
        assert status == 0, err
    server = Server(home, home / "first", home / "named/second")
    try:
        listed = server.get("/api/targets")
        one = {target["name"]: target for target in listed["targets"]}
        assert (one[None]["path"], one["second"]["path"]) == (str(home / "first"), str(home / "named/second"))
        assert listed["default"] == listed["named"] == one[None]["id"]
    finally:
        assert server.stop() == 0


def test_what_the_command_line_names_is_read_before_anybody_asks(home, recording):
    server = Server(home, recording)
    try:
        zones = 300 * 2 + sum(step % 7 for step in range(300)) + 3
        until(lambda: next(t for t in server.targets() if t["path"] == str(recording))["zones"] == zones)
    finally:
        assert server.stop() == 0


def test_what_may_take_long_gives_way_to_pictures(server):
    tasks = pathlib.Path(f"/proc/{server.process.pid}/task").glob("*/stat")
    nice = [int(task.read_text().rpartition(")")[2].split()[16]) for task in tasks]
    assert sum(one > min(nice) for one in nice) >= 3 or min(nice) == 19  # nobody can give way any more


def test_the_run_is_the_reports_document(server):
    run = server.get("/api/run")
    assert run["state"] == "ended" and run["run"][0]["program"] == "trained.py"
    assert run["step_facts"][0]["count"] == 300
    assert {"verdicts", "figures", "losses", "regions", "series", "modules"} <= run.keys()
    again = server.ask("/api/run")
    assert server.ask("/api/run", headers={"If-None-Match": again.headers["ETag"]}).status == 304


def test_the_slowest_steps_say_what_was_longest_inside(server):
    zones = server.query("SELECT start_ns, duration_ns, name, depth FROM trace.zones").json()["rows"]
    slowest = server.get("/api/run")["slowest"]
    assert len(slowest) == 20
    for step in slowest:
        begin, took = step["start_ns"], step["duration_ns"]
        inside = [z for z in zones if z[0] >= begin and z[0] + z[1] <= begin + took]
        # The innermost of those that take half of it, else the longest.
        best = max(inside, key=lambda z: took + z[3] if z[1] >= took / 2 else z[1])
        assert (step["inside"], step["inside_ns"]) == (best[2], best[1])


def test_zones_without_merging_are_the_rows_of_sql(server):
    rows = server.query("SELECT start_ns, duration_ns, name, depth FROM trace.zones").json()["rows"]
    zones = server.zones(level=0)
    assert alike(zones.rows(), sorted(map(tuple, rows)))
    assert zones.head["count"] == len(rows) == 300 * 2 + sum(step % 7 for step in range(300)) + 3
    assert (zones.head["live"], zones.head["hidden"], zones.head["open"]) == (False, 0, [])
    assert [lane["kind"] for lane in zones.head["lanes"]] == ["thread"] * 4
    assert sorted(lane["order"] for lane in zones.head["lanes"]) == [0, 1, 2, 3]


def merged(rows, level):
    """The rule, done slowly: what is shorter than a bucket joins what begins in the same one."""
    pieces = []
    for start, duration, name in rows:
        small, last = duration < 1 << level, pieces[-1] if pieces else None
        if small and last and last["open"] and last["start"] >> level == start >> level:
            last["end"], last["busy"], last["n"] = start + duration, last["busy"] + duration, last["n"] + 1
            if duration > last["longest"]:
                last["longest"], last["name"] = duration, name
        else:
            pieces.append({"start": start, "end": start + duration, "busy": duration, "n": 1, "name": name, "longest": duration,
                           "open": small})
    return pieces


@pytest.mark.parametrize("level", [10, 14, 18, 24, 30])
def test_what_is_shorter_than_a_pixel_is_merged_by_the_rule(server, level):
    whole, told = server.zones(level=0), server.zones(level=level)
    assert told.tracks.keys() == whole.tracks.keys()
    for track, zones in whole.tracks.items():
        wanted = merged([(start, duration, name) for start, duration, name, _, _ in zones], level)
        assert [(p["start"], p["end"] - p["start"], p["name"], p["n"]) for p in wanted] == [piece[:4] for piece in told.tracks[track]]
        # Busy time is summed in ticks of the clock: a nanosecond for each zone may be lost by telling it.
        assert all(abs(p["busy"] - piece[4]) <= p["n"] for p, piece in zip(wanted, told.tracks[track]))


def test_a_stretch_of_time_has_what_reaches_into_it_whole(server):
    whole = server.zones(level=0)
    starts = [row[0] for row in whole.rows()]
    begin, end = starts[len(starts) // 3], starts[len(starts) // 2]
    part = server.zones(level=0, **{"from": begin, "to": end})
    assert part.rows() == [row for row in whole.rows() if row[0] < end and row[0] + row[1] > begin]
    only = server.zones(level=0, lanes="1")
    assert {lane for lane, _ in only.tracks} == {1}


def test_a_stretch_of_time_has_regions_of_its_own(server):
    zones = server.query("SELECT start_ns, start_ns + duration_ns, name, depth, tid FROM trace.zones").json()["rows"]
    edges = sorted({edge for z in zones for edge in z[:2]})

    def between(at):
        """A moment that is no zone's edge, however both sides round."""
        return next((a + b) // 2 for a, b in zip(edges[at:], edges[at + 1:]) if b - a > 10)

    begin, end = between(len(edges) // 4), between(len(edges) // 2)
    told = server.get("/api/range", **{"from": begin, "to": end})
    inside = [(max(s, begin), min(e, end), e - s, *rest) for s, e, *rest in zones if s < end and e > begin]
    assert (told["zones"], told["threads"]) == (len(inside), len({z[5] for z in inside}))
    assert (told["from_ns"], told["to_ns"], told["region_count"]) == (begin, end, len({z[3] for z in inside}))
    for region in told["regions"]:
        mine = [z for z in inside if z[3] == region["name"]]
        lengths = sorted(z[2] for z in mine)
        children = sum(z[1] - z[0] for z in inside for m in mine if z[4:] == (m[4] + 1, m[5]) and m[0] <= z[0] and z[1] <= m[1])
        total = sum(z[1] - z[0] for z in mine)
        assert region["count"] == len(mine)
        # The clock is told in whole nanoseconds, twice for each zone.
        assert abs(region["total_ns"] - total) <= 2 * len(inside) and abs(region["self_ns"] - (total - children)) <= 4 * len(inside)
        assert (region["min_ns"], region["max_ns"]) == (pytest.approx(lengths[0], abs=2), pytest.approx(lengths[-1], abs=2))
        assert region["p50_ns"] == pytest.approx(lengths[-(-len(lengths) // 2) - 1], rel=0.14)
    selves = [region["self_ns"] for region in told["regions"]]
    assert selves == sorted(selves, reverse=True)
    steps = server.query(f"SELECT count(*) FROM trace.steps WHERE start_ns >= {begin} AND start_ns < {end}").json()["rows"][0][0]
    assert told["step_facts"][0]["count"] == steps and len(told["slowest"]) == min(20, steps) and told["modules"] == []
    assert all(begin <= step["start_ns"] < end for step in told["slowest"])
    within = f"SELECT name, count(*), min(value), max(value) FROM trace.counters WHERE ts_ns >= {begin} AND ts_ns < {end} GROUP BY 1"
    assert [[c["name"], c["count"], c["min"], c["max"]] for c in told["counters"]] == server.query(within).json()["rows"] != []


def test_all_of_the_time_has_the_regions_of_the_run(server):
    whole = {(r["name"], r["source"]): (r["count"], r["total_ns"]) for r in server.get("/api/run")["regions"]}
    told = server.get("/api/range", **{"from": 0, "to": 1 << 60})
    assert {(r["name"], r["source"]): r["count"] for r in told["regions"]} == {key: count for key, (count, _) in whole.items()}
    for region in told["regions"]:
        assert region["total_ns"] == pytest.approx(whole[region["name"], region["source"]][1], abs=region["count"] + 1)


def test_names_that_are_known_need_not_be_sent_again(server):
    names = server.zones().head["names"]
    rest = server.zones(names_from=names["count"] - 1).head["names"]
    assert (rest["from"], rest["name"]) == (names["count"] - 1, names["name"][-1:])
    assert HOSTILE in names["name"]


def test_zones_that_have_not_changed_are_not_sent_again(server):
    first = server.ask("/api/zones")
    assert server.ask("/api/zones", headers={"If-None-Match": first.headers["ETag"]}).status == 304


def test_one_name_has_its_distribution(server):
    durations = sorted(r[0] for r in server.query("SELECT duration_ns FROM trace.zones WHERE name = 'inner'").json()["rows"])
    inner = server.get("/api/name", name="inner")
    assert (inner["count"], inner["min_ns"], inner["max_ns"]) == (len(durations), durations[0], durations[-1])
    assert inner["p50_ns"] == durations[-(-len(durations) // 2) - 1] and inner["total_ns"] == sum(durations)
    edges, counts = inner["histogram"]["edges_ns"], inner["histogram"]["counts"]
    assert len(edges) == len(counts) + 1 and sum(counts) == len(durations) and edges[0] <= durations[0] < edges[-1]
    assert [s["duration_ns"] for s in inner["slowest"]] == durations[::-1][:20]
    starts = sorted(zone[0] for pieces in server.zones(level=0).tracks.values() for zone in pieces)
    middle = starts[len(starts) // 2]
    near = server.get("/api/name", name="inner", at=middle)
    assert near["previous"]["start_ns"] < middle < near["next"]["start_ns"]
    assert server.ask("/api/name", name="nobody").status == 404


def test_the_flame_graph_adds_up(server):
    flame = server.get("/api/flame")
    names, nodes = flame["names"]["name"], flame["nodes"]
    path = [(names[name], names[nodes[parent][0]] if nodes[parent][0] >= 0 else "") for name, parent, _ in nodes if name >= 0]
    assert ("outer", "") in path and ("inner", "outer") in path
    total = server.query("SELECT sum(duration_ns) FROM trace.zones WHERE depth = 0").json()["rows"][0][0]
    assert flame["total"] == total
    one = server.get("/api/flame", thread=next(lane["id"] for lane in flame["lanes"] if lane["name"] != "MainThread"))
    assert {one["names"]["name"][name] for name, _, _ in one["nodes"] if name >= 0} <= {"worker", *names}
    samples = server.get("/api/flame", of="samples")
    assert samples["unit"] in ("ns", "samples") and sum(n[2] for n in samples["nodes"] if n[1] < 0) == samples["total"]


def test_hostile_names_stay_text(server):
    answer = server.query("SELECT DISTINCT name FROM trace.zones WHERE name LIKE '%img%'")
    assert answer.json()["rows"] == [[HOSTILE]] and answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    rows = server.query("SELECT '=cmd()' AS a", format="csv").body
    assert list(csv.reader(io.StringIO(rows.decode())))[1] == ["'=cmd()"]


def test_queries_come_in_every_format(server):
    sql = "SELECT name, count(*) AS n FROM trace.zones WHERE name IN ('inner', 'outer') GROUP BY 1 ORDER BY 1"
    answer = server.query(sql, id="mine").json()
    assert answer["columns"] == [{"name": "name", "type": "VARCHAR"}, {"name": "n", "type": "BIGINT"}]
    wanted = [["inner", sum(step % 7 for step in range(300))], ["outer", 300]]
    assert (answer["rows"], answer["truncated"], answer["row_count"], answer["id"]) == (wanted, False, 2, "mine")
    arrow = server.query(sql, format="arrow")
    assert arrow.headers["Content-Type"] == "application/vnd.apache.arrow.stream"
    assert pyarrow.ipc.open_stream(arrow.body).read_all().to_pylist() == [{"name": a, "n": b} for a, b in wanted]
    parquet = server.query(sql, format="parquet")
    assert pyarrow.parquet.read_table(io.BytesIO(parquet.body)).num_rows == 2
    assert parquet.headers["Content-Disposition"] == 'attachment; filename="query.parquet"'
    assert server.query("FROM range(50)", limit=7).json()["truncated"] is True
    assert len(pyarrow.ipc.open_stream(server.query("FROM range(50)", limit=7, format="arrow").body).read_all()) == 7


def test_the_schema_explains_tables_and_columns(server):
    tables = {f"{t['schema']}.{t['name']}": t for t in server.get("/api/schema")["tables"]}
    zones = tables["trace.zones"]
    assert zones["about"] == "Zones that have ended, one row each."
    assert {"name": "start_ns", "type": "BIGINT"}.items() <= next(c for c in zones["columns"] if c["name"] == "start_ns").items()
    assert all(c["about"] for c in zones["columns"])


def test_reports_exports_and_comparisons_are_the_commands_own(server, home, recording):
    mine, own = server.ask("/api/report", format="csv").body.decode(), run_kymo(home, "report", "-f", "csv", recording)[1]
    assert [line.split(",")[:4] for line in mine.splitlines()] == [line.split(",")[:4] for line in own.splitlines()]
    assert server.get("/api/report", format="json")["made_by"] == "kymo report"
    assert server.ask("/api/report", format="html").headers["Content-Disposition"] == 'attachment; filename="report.html"'
    assert json.loads(server.ask("/api/export", format="chrome").body)["traceEvents"]
    mine = next(t["id"] for t in server.targets() if t["path"] == str(recording))
    assert json.loads(server.ask("/api/compare", a=mine, b=mine).body)
    assert server.ask("/api/compare", a=mine).status == 400
    assert server.ask("/api/export", format="exe").status == 400


def test_packed_files_and_snapshots_are_the_same_zones(home, recording, server):
    for words, name in ((["pack", recording, home / "t.kymo"], "t.kymo"), (["snapshot", recording, home / "t.kymosnap"], "t.kymosnap")):
        status, _, err = run_kymo(home, *words)
        assert status == 0, err
        other = Server(home, home / name)
        try:
            packed = other.zones(level=0)
            assert alike(packed.rows(), server.zones(level=0).rows())
            assert other.get("/api/run")["step_facts"][0]["count"] == 300
            assert other.query("SELECT count(*) FROM trace.steps").json()["rows"] == [[300]]
        finally:
            assert other.stop() == 0


@pytest.mark.parametrize("path, status", [
    ("/api/zones?from=x", 400), ("/api/zones?from=5&to=1", 400), ("/api/zones?level=99", 400), ("/api/zones?width=0", 400),
    ("/api/range?from=5&to=5", 400), ("/api/range?from=-1&to=5", 400), ("/api/range", 400),
    ("/api/zones?target=nobody", 404), ("/api/run?target=../../etc", 404), ("/api/nothing", 404), ("/assets/../live.js", 404),
    ("/assets/%2e%2e/%2e%2e/etc/passwd", 404), ("/../../etc/passwd", 404), ("//etc/passwd", 404), ("/api/query", 405),
    ("/api/flame?of=cats", 400), ("/api/report?format=--force", 400), ("/api/zones?target=" + "x" * 8000, 404)])
def test_what_cannot_be_answered_is_a_sentence(server, path, status):
    answer = server.ask(path)
    assert answer.status == status and answer.json()["error"]


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"null", b'{"sql":1e999999}', b'{"sql":"\\ud800"}', b'{"sql":"a\\u0000b"}',
                                  b"{" * 9999, b'{"sql":"SELECT 1","limit":-1}', b'{"sql":"SELECT 1","timeout_s":"x"}',
                                  b'{"sql":" ; "}',
                                  b'{"sql":"SELECT 1","format":"xml"}', b'{"sql":"SELECT 1","id":"' + b"x" * 99 + b'"}'])
def test_bodies_that_cannot_be_understood_are_refused(server, body):
    answer = server.ask("/api/query", body)
    assert answer.status == 400 and answer.json()["error"]
