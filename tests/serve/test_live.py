"""A program that runs, and one that is killed."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest
from conftest import KYMO, PROGS, PYTHON, SECONDS, Server, alike, environment, make_home, program, until

ENDLESS = "SELECT count(*) FROM range(1000000) a, range(1000000) b, range(1000000) c"


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A server, and the id of a program that runs."""
    home = make_home(tmp_path_factory.mktemp("live"))
    server = Server(home)
    try:
        with program(home, KYMO, "run", "-q", "--", PROGS / "probe_loop"):
            yield server, until(server.targets)[0]["id"]
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("delay", [0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5])
def test_a_query_of_a_running_program_is_cancelled_whenever_that_is_asked(live, delay):
    server, target = live
    answers = []
    asked = threading.Thread(target=lambda: answers.append(server.query(ENDLESS, target=target, id=f"after {delay}", timeout_s=300)))
    asked.start()
    time.sleep(delay)
    # Once it is known, one cancel is enough: while it waits, opens its tables, is prepared or runs.
    until(lambda: server.ask("/api/cancel", {"id": f"after {delay}"}).json()["cancelled"])
    asked.join(SECONDS)
    assert (answers[0].status, answers[0].json()["error"]) == (504, "the query was cancelled")


def test_a_query_that_waits_for_a_worker_is_cancelled_at_once(live):
    server, target = live
    answers = {}

    def ask(n):
        answers[n] = server.query(ENDLESS, target=target, id=f"one of many {n}", timeout_s=300)
    many = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    [t.start() for t in many]
    # The last first: whoever waits is not held up by those that run.
    for n in reversed(range(8)):
        until(lambda n=n: server.ask("/api/cancel", {"id": f"one of many {n}"}).json()["cancelled"])
        many[n].join(SECONDS)
        assert answers[n].status == 504


def test_queries_end_with_the_clients_that_asked(live):
    server, target = live
    body = json.dumps({"sql": ENDLESS, "target": target, "timeout_s": 300}).encode()
    # More than are answered at once.
    clients = [socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) for _ in range(5)]
    for client in clients:
        client.sendall(f"POST /api/query HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Type: application/json\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    time.sleep(0.5)
    [client.close() for client in clients]
    # All workers were taken for five minutes, and are free again.
    assert server.query("SELECT 1", target=target).json()["rows"] == [[1]]


def test_a_program_appears_draws_and_is_killed(tmp_path):
    home = make_home(tmp_path)
    server = Server(home)
    try:
        assert server.targets() == []
        with server.tail() as lists, program(home, KYMO, "run", "-q", "--", PROGS / "probe_loop") as supervised:
            # It is in the list without a question.
            target = until(lambda: next((t for name, data in lists if name == "targets" for t in data["targets"]), None))
            assert (target["program"], target["state"]) == ("probe_loop", "running")
            with server.tail(target=target["id"]) as events:
                first = until(lambda: next((data for name, data in events if name == "rows" and data["zones"]), None))
                assert first["from_ns"] <= first["zones"][0][2] and first["end_ns"] <= first["now_ns"]
                zones = until(lambda: (z := server.zones(target=target["id"], level=0)).head["count"] > 20 and z)
                assert zones.head["live"] and {row[2] for row in zones.rows()} == {"work"}
                assert zones.head["open"] == [] or zones.head["open"][0]["row"] == 0
                counts = [data["count"] for name, data in events if name == "rows"]
                assert counts == sorted(counts)
                settings = server.get("/api/config", target=target["id"])["settings"]
                assert "sample_rate" in {s["key"] for s in settings}
                changed = server.ask("/api/config", {"target": target["id"], "set": {"sample_rate": "0.5"}}).json()["settings"]
                assert next(s for s in changed if s["key"] == "sample_rate")["value"] == "0.5"
                refused = server.ask("/api/config", {"target": target["id"], "set": {"--output": "x"}})
                assert refused.status == 400
                stack = server.ask("/api/backtrace", target=target["id"])
                # Where the kernel lets nobody read a process that is no child, that is the answer.
                assert stack.json()[0]["pid"] == target["pid"] if stack.status == 200 else "ptrace_scope" in stack.json()["error"]
                os.kill(target["pid"], signal.SIGKILL)
                dead = until(lambda: next((data for name, data in events if name == "state" and data["state"] == "killed"), None))
                assert dead["signal"] == signal.SIGKILL
                until(lambda: any(t["state"] == "killed" for name, data in lists if name == "targets" for t in data["targets"]))
                supervised.wait(60)
                # And it still answers, for good.
                rows = server.query("SELECT count(*) FROM trace.zones", target=target["id"]).json()["rows"]
                assert rows == [[server.zones(target=target["id"], level=0).head["count"]]] and rows[0][0] >= zones.head["count"]
                assert server.get("/api/run", target=target["id"])["state"] == "killed"
    finally:
        assert server.process.poll() is None
        assert server.stop() == 0


def test_what_is_asked_while_rows_come_agrees_with_sql_afterwards(tmp_path):
    """The index is filled bit by bit; in the end it holds what a fresh look finds."""
    home = make_home(tmp_path)
    server = Server(home)
    try:
        with program(home, KYMO, "run", "-q", "--", PROGS / "probe_loop", "thread") as running:
            target = until(server.targets)[0]["id"]
            seen = []
            for _ in range(40):
                running.stdin.write("x\n")
                running.stdin.flush()
                seen.append(server.zones(target=target, level=0).head["count"])
            until(lambda: server.zones(target=target, level=0).head["count"] > seen[0])
        until(lambda: server.targets()[0]["state"] == "ended")
        until(lambda: not server.zones(target=target).head["live"])
        zones = server.zones(target=target, level=0)
        rows = server.query("SELECT start_ns, duration_ns, name, depth FROM trace.zones", target=target, limit=100000).json()["rows"]
        assert alike(zones.rows(), sorted(map(tuple, rows))) and {row[2] for row in rows} == {"work", "thread"}
        assert zones.head["hidden"] == 0
    finally:
        assert server.stop() == 0


def test_a_run_whose_program_has_not_begun_is_not_listed_yet(tmp_path):
    """It would be listed by its half in memory, which gets another name as soon as the program is known."""
    home = make_home(tmp_path)
    server = Server(home)
    try:
        with program(home, KYMO, "run", "-q", "--", PROGS / "probe_loop") as running:
            known = until(server.targets)[0]
            half = next(p for p in (home / "live").iterdir() if p.is_dir())  # beside the socket of the server
            young = half.with_name("young")
            shutil.copytree(half, young, ignore=lambda _, names: [n for n in names if n.startswith(f"p{known['pid']}-")])
            disk = os.fsencode(known["path"])
            alone = (young / "run").read_bytes().replace(disk, bytes(len(disk)))
            pids = struct.pack("=ii", running.pid, known["pid"])
            assert alone.count(pids) == 1
            (young / "run").write_bytes(alone.replace(pids, struct.pack("=ii", running.pid, 0)))
            time.sleep(0.3)  # longer than a list is kept
            assert [t["id"] for t in server.targets()] == [known["id"]]
            (young / "run").write_bytes(alone)
            until(lambda: len(server.targets()) == 2)
    finally:
        assert server.stop() == 0


def test_whoever_asks_while_a_run_ends_is_answered(tmp_path):
    """It leaves memory for the disk meanwhile, and has another path then."""
    home = make_home(tmp_path)
    server = Server(home)
    try:
        for _ in range(4):
            with program(home, KYMO, "run", "-q", "--", PROGS / "probe_loop") as running:
                target = until(lambda: [t for t in server.targets() if t["state"] == "running"])[0]["id"]
                assert server.query("FROM kymo.runs", target=target).status == 200
                running.stdin.close()
                while running.poll() is None:
                    answer = server.query("SELECT count(*) FROM trace.zones", target=target)
                    assert answer.status == 200, answer.json()
            assert server.query("FROM kymo.runs", target=target).status == 200
    finally:
        assert server.stop() == 0


def test_what_was_read_of_a_recording_stays_when_it_goes(tmp_path):
    """As it does for a moment when a program ends, and its half in memory becomes one on the disk."""
    home = make_home(tmp_path)
    server = Server(home)
    try:
        with program(home, KYMO, "run", "-q", "--", PROGS / "probe_loop"):
            target = until(server.targets)[0]
            until(lambda: server.zones(target=target["id"]).head["count"] > 0)
            for half in [pathlib.Path(target["path"]), *(home / "live").iterdir()]:
                with contextlib.suppress(FileNotFoundError):  # it was the one in memory
                    half.rename(half.with_name("gone" + half.name))
            # It may be gone from the list, too, by then; it is never a bad question. One look in 100 ms goes to the files.
            for _ in range(8):
                assert server.ask("/api/zones", target=target["id"]).status in (200, 404)
                time.sleep(0.05)
    finally:
        assert server.stop() == 0


UNMARKED = """
import gc, time
gc.set_threshold(0)
many = [[] for _ in range(300000)]
gc.collect(); gc.collect()  # the first ones take the millisecond after which they are recorded
def grind():
    return sum(i * i for i in range(2000))
def main():
    print("runs", flush=True)
    while True: grind()
main()
"""


def sampled(server, target):
    """Names of zones by the kind of their lane."""
    zones = server.zones(target=target, level=0)
    names, kinds = zones.head["names"]["name"], {lane["id"]: lane["kind"] for lane in zones.head["lanes"]}
    found = {}
    for (lane, _), pieces in zones.tracks.items():
        found.setdefault(kinds[lane], set()).update(names[piece[2]] for piece in pieces)
    return found, zones


def test_a_program_that_marks_nothing_has_a_timeline_of_its_samples(tmp_path):
    """Although it has a zone: its garbage collection. While it runs, after it was killed, and packed."""
    home = make_home(tmp_path)
    (home / "work/app.py").write_text(UNMARKED)
    server = Server(home)
    try:
        with program(home, KYMO, "run", "-q", "-o", home / "run", "--", PYTHON, "app.py") as supervised:
            target = until(server.targets)[0]
            with server.tail(target=target["id"]) as events:
                def both():
                    found, zones = sampled(server, target["id"])
                    return {"grind", "main"} <= found.get("samples", set()) and found.get("thread") and (found, zones)
                found, zones = until(both)
                assert all(name.startswith("gc (generation ") for name in found["thread"]), found
                ends = [max(start + duration for start, duration, name, *_ in zones.rows() if name == "main")]
                # They grow, and clients are told that what they have is old.
                until(lambda: any(name == "rows" and data["came"] and data["from_ns"] == 0 for name, data in events))
                until(lambda: max((row[0] + row[1] for row in sampled(server, target["id"])[1].rows() if row[2] == "main"),
                                  default=0) > ends[0])
            assert next(t for t in server.targets() if t["id"] == target["id"])["zones"] < 20  # samples are none
            top = server.get("/api/range", target=target["id"], **{"from": 0, "to": 10**12})
            assert "grind" not in json.dumps(top.get("regions", [])), top
            os.kill(target["pid"], signal.SIGKILL)
            supervised.wait(SECONDS)
        found, zones = until(lambda: (s := sampled(server, target["id"])) and not s[1].head["live"] and s)
        assert "grind" in found["samples"]
        kept = {row for row in zones.rows() if row[2] == "main"}
        assert kept == {row for row in sampled(server, target["id"])[1].rows() if row[2] == "main"}
        assert subprocess.run([KYMO, "pack", "-o", home / "packed.kymo", home / "run"], env=environment(home), timeout=SECONDS,
                              check=False).returncode == 0
    finally:
        assert server.process.poll() is None
        assert server.stop() == 0
    server = Server(home, home / "packed.kymo")
    try:
        found, _ = sampled(server, server.targets()[0]["id"])
        assert "grind" in found["samples"] and all(name.startswith("gc (") for name in found["thread"]), found
    finally:
        assert server.stop() == 0
