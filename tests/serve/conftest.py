"""kymo serve from outside: a real server, real recorded programs, plain HTTP."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
PYTHON = ROOT / ".venv/bin/python"
SECONDS = 60  # for what has to come, however busy the machine is
sys.path.append(str(ROOT / "tests"))
import running  # noqa: E402
from running import until  # noqa: E402


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)


class Zones:
    """An answer of /api/zones, decoded as docs/api.md says."""

    def __init__(self, body):
        assert body[:4] == b"KZP1"
        size, = struct.unpack("<I", body[4:8])
        self.head = json.loads(body[8:8 + size])
        at, self.tracks = 8 + size, {}
        for track in self.head["tracks"]:
            columns = [("gap", track["gap_bytes"]), ("duration", track["duration_bytes"]), ("name", track["name_bytes"])]
            if track["merged"]:
                columns += [("n", 4), ("busy", track["duration_bytes"])]
            values = {}
            for column, width in columns:
                planes = [body[at + p * track["count"]:at + (p + 1) * track["count"]] for p in range(width)]
                values[column] = [sum(plane[i] << (8 * p) for p, plane in enumerate(planes)) for i in range(track["count"])]
                at += width * track["count"]
            clock, pieces = track["base_ns"], []
            for i in range(track["count"]):
                clock += values["gap"][i]
                pieces.append((clock, values["duration"][i], values["name"][i], values["n"][i] if track["merged"] else 1,
                               values["busy"][i] if track["merged"] else values["duration"][i]))
                clock += values["duration"][i]
            self.tracks[track["lane"], track["row"]] = pieces
        assert at == len(body), "nothing is left over"

    def rows(self):
        """(start, duration, name, depth), in order."""
        names = self.head["names"]["name"]
        return sorted((start, duration, names[name], row) for (_, row), pieces in self.tracks.items()
                      for start, duration, name, n, _ in pieces if n == 1)


def alike(zones, others):
    """The same zones, at the same time but for what the clock is measured better from look to look."""
    assert len(zones) == len(others)
    for one, other in zip(zones, others):
        assert one[2:] == other[2:] and abs(one[0] - other[0]) < 1000 and abs(one[1] - other[1]) < 1000, (one, other)
    return True


class Server:
    def __init__(self, home, *words, env=None):
        self.log = home / f"serve-{time.monotonic_ns()}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([KYMO, "serve", "--port", str(free_port()), *map(str, words)], cwd=home / "work",
                                            env={**environment(home), **(env or {})}, stderr=log, stdin=subprocess.DEVNULL)
        self.said = until(lambda: self.process.poll() is not None or
                          (b"\n" in self.log.read_bytes() and "http://" in self.log.read_text() and self.log.read_text()))
        assert self.process.poll() is None, self.log.read_text()
        self.host, self.port = re.search(r"http://([\w.\[\]:]+):(\d+)/", self.said).groups()
        self.port, self.home = int(self.port), home

    def ask(self, path, body=None, method=None, headers=None, **parameters):
        if parameters:
            path += "?" + urllib.parse.urlencode(parameters)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        with contextlib.closing(connection):
            given = {} if body is None else {"Content-Type": "application/json"}
            data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method or ("GET" if body is None else "POST"), path, data, {**given, **(headers or {})})
            return Answer(connection.getresponse())

    def get(self, path, **parameters):
        answer = self.ask(path, **parameters)
        assert answer.status == 200, answer.body
        return answer.json()

    def query(self, sql, **more):
        return self.ask("/api/query", {"sql": sql, **more})

    def zones(self, **parameters):
        answer = self.ask("/api/zones", **parameters)
        assert answer.status == 200, answer.body
        return Zones(answer.body)

    def targets(self):
        return self.get("/api/targets")["targets"]

    @contextlib.contextmanager
    def tail(self, **parameters):
        """Events as (name, data), in a list that grows."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        connection.request("GET", "/api/tail?" + urllib.parse.urlencode(parameters))
        response, events = connection.getresponse(), []

        def read():
            name = None
            with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
                for line in response:
                    if line.startswith(b"event: "):
                        name = line[7:].strip().decode()
                    elif line.startswith(b"data: "):
                        events.append((name, json.loads(line[6:])))
        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            yield events
        finally:
            with contextlib.suppress(OSError):
                connection.sock and connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()

    def stop(self):
        self.process.terminate()
        return self.process.wait(SECONDS)


def environment(home):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}
    env.update(KYMO_DIR=str(home / "live"), XDG_STATE_HOME=str(home / "state"), HOME=str(home), LC_ALL="C.UTF-8", TZ="UTC")
    return env


def make_home(path):
    (path / "live").mkdir(mode=0o700)
    (path / "work").mkdir()
    return path


def program(home, *command, **options):
    """A program that runs until the block is left."""
    return running.program(command, cwd=home / "work", env=environment(home), stderr=subprocess.DEVNULL, **options)


def run_kymo(home, *words, env=None, stdin=b""):
    done = subprocess.run([KYMO, *map(str, words)], cwd=home / "work", env={**environment(home), **(env or {})}, input=stdin,
                          capture_output=True, timeout=SECONDS)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


TRAINED = """
import threading, kymo

def work():
    with kymo.region("worker"):
        pass

for step in range(300):
    kymo.step()
    kymo.record("loss", 1 / (step + 1))
    with kymo.region("outer"):
        for _ in range(step % 7):
            with kymo.region("inner"):
                sum(range(50))
        with kymo.region("</script><img src=x onerror=alert(1)>\\n\\x01\\u2028=cmd()"):
            pass
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
kymo.step_end()
"""


@pytest.fixture(scope="session", autouse=True)
def many_files():
    """A thousand clients are a thousand descriptors here, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)) if hard > 0 else soft, hard))


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return make_home(tmp_path_factory.mktemp("serve"))


@pytest.fixture(scope="session")
def recording(home):
    """A run of 300 steps, three threads, and a hostile name."""
    (home / "work/trained.py").write_text(TRAINED)
    # Garbage collections would be zones, too, as many as it likes.
    status, _, err = run_kymo(home, "run", "-q", "-o", home / "trained", "--", PYTHON, "trained.py", env={"KYMO_GC": "off"})
    assert status == 0, err
    return home / "trained"


@pytest.fixture(scope="session")
def server(home, recording):
    """Shows that recording first."""
    server = Server(home, recording)
    yield server
    assert server.process.poll() is None, "the server has died: " + server.log.read_text()
    assert server.stop() == 0
