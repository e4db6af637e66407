"""Hostile SQL and files against kymo serve: they cost a child process, never the server or the other clients."""
import contextlib
import http.client
import importlib.util
import json
import os
import pathlib
import signal
import socket
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SPEC = importlib.util.spec_from_file_location("serve_conftest", ROOT / "tests/serve/conftest.py")
serve = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(serve)

MB = 1 << 20
# What a query may have: its limit, a quarter and 256 MiB for the allocator, and the program itself.
CHILD_BYTES = 1200 * MB
# None of these looks at the clock or at an interrupt, and the first is outside of DuckDB's memory limit.
ENDLESS = {
    "levenshtein": "SELECT levenshtein(repeat('a', 200000), repeat('b', 200000) || i::VARCHAR) FROM range(1000) t(i)",
    "series": "SELECT len(generate_series(TIMESTAMP '1970-01-01', TIMESTAMP '2270-01-01', INTERVAL 1 microsecond))",
}
LARGE = {
    "repeat": "SELECT length(repeat('x', 1500000000))",
    "lists": "SELECT len(range(500000000)::VARCHAR)",
}


def children(pid):
    """The pids of its children, zombies among them."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def bytes_of(pid):
    with contextlib.suppress(OSError):
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    return 0


def state_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return None


class Watch(threading.Thread):
    """The most memory that the server, and any one of its children, has had."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.server, self.child, self.going = pid, 0, 0, True

    def run(self):
        while self.going:
            self.server = max(self.server, bytes_of(self.pid))
            self.child = max([self.child, *map(bytes_of, children(self.pid))])
            time.sleep(0.01)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.going = False
        self.join()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = serve.make_home(tmp_path_factory.mktemp("queries"))
    (home / "work/trained.py").write_text(serve.TRAINED)
    status, _, err = serve.run_kymo(home, "run", "-q", "-o", home / "trained", "--", serve.PYTHON, "trained.py")
    assert status == 0, err
    status, _, err = serve.run_kymo(home, "pack", home / "trained", home / "trained.kymo")
    assert status == 0, err
    return home


@pytest.fixture(scope="module")
def server(home):
    server = serve.Server(home, home / "trained", home / "trained.kymo")
    yield server
    assert server.process.poll() is None, "the server has died: " + server.log.read_text()
    assert server.stop() == 0


def ask_in_vain(server):
    with contextlib.suppress(OSError, http.client.HTTPException):
        server.query(ENDLESS["levenshtein"], timeout_s=300)


def loads_duckdb(server):
    return "duckdb" in pathlib.Path(f"/proc/{server.process.pid}/maps").read_text()


def use_every_route(server, target):
    for path in ["/", "/api/targets", "/assets/live.js"]:
        assert server.ask(path).status == 200
    for path, more in {"/api/run": {}, "/api/range": {"from": 0, "to": 10**9}, "/api/zones": {}, "/api/schema": {},
                       "/api/flame": {}, "/api/flame?of=samples": {}, "/api/source": {}, "/api/report": {}, "/api/export": {},
                       "/api/compare": {"a": target, "b": target, "anyway": 1}, "/api/config": {}, "/api/backtrace": {}}.items():
        join = "&" if "?" in path else "?"
        words = "&".join(f"{key}={value}" for key, value in {"target": target, **more}.items())
        assert server.ask(path + join + words).status in (200, 400, 404), path
        assert not loads_duckdb(server), path
    names = server.zones(target=target).head["names"]["name"]
    assert server.ask("/api/name", target=target, name=names[0]).status == 200
    for form in ["json", "arrow", "csv", "parquet", "objects", "table"]:
        assert server.query("SELECT count(*) FROM trace.zones", target=target, format=form).status == 200, form
    with server.tail(target=target) as events:
        serve.until(lambda: events)
    assert not loads_duckdb(server)


def test_the_server_itself_never_loads_duckdb(server, home):
    ended = {target["path"]: target["id"] for target in server.targets()}
    use_every_route(server, ended[str(home / "trained")])
    use_every_route(server, ended[str(home / "trained.kymo")])
    with serve.program(home, serve.KYMO, "run", "-q", "--", serve.PROGS / "probe_loop"):
        live = serve.until(lambda: [t["id"] for t in server.targets() if t["state"] == "running"])[0]
        serve.until(lambda: server.zones(target=live).head["count"])
        use_every_route(server, live)


@pytest.mark.parametrize("sql", LARGE.values(), ids=LARGE)
def test_memory_outside_of_duckdbs_limit_is_refused(server, sql):
    with Watch(server.process.pid) as most:
        answer = server.query(sql, timeout_s=30)
        assert answer.status in (413, 500, 504), answer.body[:200]
        assert answer.json()["error"]
    assert most.child < CHILD_BYTES and most.server < 300 * MB, (most.child // MB, most.server // MB)
    assert server.query("SELECT 1").json()["rows"] == [[1]]


@pytest.mark.parametrize("sql", ENDLESS.values(), ids=ENDLESS)
def test_what_ignores_the_clock_ends_at_its_time_limit(server, sql):
    began = time.monotonic()
    with Watch(server.process.pid) as most:
        answer = server.query(sql, timeout_s=2)
    assert answer.status in (413, 504), answer.body[:200]
    assert time.monotonic() - began < 30  # 2.5 s; without a limit it takes minutes to hours
    assert most.child < CHILD_BYTES and most.server < 300 * MB, (most.child // MB, most.server // MB)
    assert server.query("SELECT 1").json()["rows"] == [[1]]


def test_three_endless_queries_keep_nobody_waiting_and_end_when_cancelled(server, home):
    answers = {}

    def ask(n):
        answers[n] = server.query(ENDLESS["levenshtein"], id=f"endless {n}", timeout_s=300)
    threads = [threading.Thread(target=ask, args=(n,)) for n in range(3)]
    [thread.start() for thread in threads]
    serve.until(lambda: sum(state_of(pid) == "R" for pid in children(server.process.pid)) >= 1)
    packed = next(t["id"] for t in server.targets() if t["path"] == str(home / "trained.kymo"))
    assert server.zones(target=packed).head["count"]
    assert server.get("/api/run", target=packed)["run"]
    assert server.get("/api/range", target=packed, **{"from": 0, "to": 10**9})["regions"]
    assert server.query("SELECT 1").json()["rows"] == [[1]]
    assert not answers, "all three are still running"
    for n in range(3):
        serve.until(lambda n=n: server.ask("/api/cancel", {"id": f"endless {n}"}).json()["cancelled"])
        threads[n].join(serve.SECONDS)
        assert (answers[n].status, answers[n].json()["error"]) == (504, "the query was cancelled")


def test_what_cannot_be_interrupted_ends_with_its_client(server):
    body = json.dumps({"sql": ENDLESS["levenshtein"], "timeout_s": 300}).encode()
    clients = [socket.create_connection(("127.0.0.1", server.port), timeout=serve.SECONDS) for _ in range(6)]
    for client in clients:
        client.sendall(f"POST /api/query HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Type: application/json\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    serve.until(lambda: any(state_of(pid) == "R" for pid in children(server.process.pid)))
    [client.close() for client in clients]
    # All workers for queries were taken for five minutes, and are free again.
    assert server.query("SELECT 1").json()["rows"] == [[1]]
    serve.until(lambda: not any(state_of(pid) == "R" for pid in children(server.process.pid)))


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGXCPU])
def test_a_child_that_dies_is_a_sentence_for_its_client(server, number):
    answers = []
    asked = threading.Thread(target=lambda: answers.append(server.query(ENDLESS["levenshtein"], timeout_s=300)))
    asked.start()
    # One that is starting runs, too, and is not the one that was asked.
    while asked.is_alive():
        for pid in children(server.process.pid):
            if state_of(pid) == "R":
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        asked.join(0.2)
    assert answers[0].status in (413, 500, 504)
    sentence = answers[0].json()["error"]
    assert {signal.SIGKILL: "killed", signal.SIGXCPU: "CPU time"}.get(number, f"signal {int(number)}") in sentence, sentence
    # The last signal may have met a child that was starting.
    assert any(server.query("SELECT 1").json().get("rows") == [[1]] for _ in range(3))


def test_a_damaged_packed_file_is_a_sentence(home):
    whole = (home / "trained.kymo").read_bytes()
    paths = []
    for n in range(6):
        damaged = bytearray(whole[:len(whole) // 2] if n == 0 else whole)
        for at in range(12288 + n * 4096, len(damaged), 40961):
            damaged[at] ^= 0xff
        paths.append(home / f"damaged-{n}.kymo")
        paths[-1].write_bytes(damaged)
    server = serve.Server(home, home / "trained", *paths)
    try:
        for target in [t["id"] for t in server.targets() if "damaged" in t["path"]]:
            for path in ["/api/zones", "/api/run", "/api/schema"]:
                answer = server.ask(path, target=target)
                assert answer.status == 200 or answer.json()["error"]
        assert server.query("SELECT 1").status == 200
        assert not loads_duckdb(server)
    finally:
        assert server.stop() == 0


def test_a_packed_file_that_takes_forever_keeps_nobody_else_waiting(home):
    server = serve.Server(home, home / "trained", home / "trained.kymo")
    answers = []
    try:
        other, packed = [next(t["id"] for t in server.targets() if t["path"] == str(home / name))
                         for name in ("trained", "trained.kymo")]
        assert server.get("/api/run", target=other)["run"] and server.zones(target=other).head["count"]
        # The child that is ready: it gets the question, and does not answer.
        stopped = serve.until(lambda: children(server.process.pid))
        [os.kill(pid, signal.SIGSTOP) for pid in stopped]
        asked = [threading.Thread(target=lambda: answers.append(server.ask("/api/zones", target=packed))) for _ in range(8)]
        [thread.start() for thread in asked]
        # Two wait for the one that reads; the others are told to come back.
        serve.until(lambda: len(answers) == 5)
        assert {answer.status for answer in answers} == {503}
        with server.tail(target=packed) as all_events, server.tail(target=other) as events:
            serve.until(lambda: events and all_events)
            assert server.zones(target=other).head["count"] and server.get("/api/run", target=other)["run"]
            assert server.query("SELECT 1", target=other).json()["rows"] == [[1]]
        assert len(answers) == 5
        [os.kill(pid, signal.SIGKILL) for pid in stopped]
        [thread.join(serve.SECONDS) for thread in asked]
        assert all("killed" in answer.json()["error"] for answer in answers[5:]) and len(answers) == 8
        serve.until(lambda: server.ask("/api/zones", target=packed).status == 200)
    finally:
        assert server.stop() == 0


def test_children_end_with_the_server_however_it_ends(home):
    for number in [signal.SIGTERM, signal.SIGKILL]:
        server = serve.Server(home, home / "trained")
        serve.until(lambda server=server: server.query("SELECT 1").status == 200)
        threading.Thread(target=ask_in_vain, args=(server,), daemon=True).start()
        pids = serve.until(lambda server=server: [pid for pid in children(server.process.pid) if state_of(pid) == "R"]
                           and children(server.process.pid))
        os.kill(server.process.pid, number)
        server.process.wait(serve.SECONDS)
        serve.until(lambda pids=pids: not any(state_of(pid) in ("R", "S", "D") for pid in pids))


def test_many_queries_leave_no_descriptor_and_no_process(server):
    def descriptors():
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    def ask(count):
        for n in range(count):
            sql = ["SELECT 1", "FROM trace.zones LIMIT 10", "SELECT nothing", "SELECT repeat('x', 9) FROM range(99)"][n % 4]
            assert server.query(sql, format=["json", "csv"][n // 4 % 2]).status in (200, 400)

    ask(8)
    before = descriptors(), len(children(server.process.pid))
    ask(200)
    # Connections close a moment later, and the next child is started meanwhile.
    serve.until(lambda: descriptors() <= before[0] + 2 and len(children(server.process.pid)) <= before[1] + 1)
    assert not any(state_of(pid) == "Z" for pid in children(server.process.pid))
