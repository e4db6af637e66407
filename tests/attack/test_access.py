"""kymo serve and the other users of a machine: who is answered, over which way, and who is not."""
import contextlib
import encodings.idna  # noqa: F401 # now: another user may not be able to read it
import http.client
import json
import os
import pathlib
import pickle
import re
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
SECONDS = 60  # for what has to come, however busy the machine is
sys.path.append(str(ROOT / "tests"))
from running import until  # noqa: E402

OTHER, OWNER = 54321, 54322  # users without an account
REFUSED = (401, 403)
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="to be two users one has to be root")


# ---- users ----------------------------------------------------------------------------------------

def become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def as_user(uid, do, *args):
    """What do(*args) returns in a process of that user."""
    here, there = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            become(uid)
            answer = (True, do(*args))
        except BaseException as error:  # noqa: BLE001 # pylint: disable=broad-exception-caught # passed on to the parent
            answer = (False, repr(error))
        with os.fdopen(there, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        right, value = pickle.load(pipe)
    os.waitpid(pid, 0)
    assert right, value
    return value


@contextlib.contextmanager
def attack(uid, do, *args):
    """do(ready, *args) goes on in a process of that user until the block is left; it begins when ready() was called."""
    here, there = os.pipe()
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            become(uid)
            do(lambda: os.write(there, b"!"), *args)
        os._exit(0)
    os.close(there)
    try:
        assert os.read(here, 1) == b"!", "the attack has failed by itself"
        yield
    finally:
        os.close(here)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# ---- requests -------------------------------------------------------------------------------------

def ask(port, path="/api/targets", body=None, timeout=SECONDS, **headers):
    """The status (0: closed without an answer), headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    with contextlib.closing(connection):
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            data = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, data, {k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()
        except (http.client.HTTPException, ConnectionError):
            return 0, {}, b""


def status(port, *args, **more):
    return ask(port, *args, **more)[0]


def raw(port, data):
    """The statuses of all answers to these bytes, and whether the server has closed the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as client:
        client.sendall(data)
        got, closed = b"", False
        with contextlib.suppress(OSError):
            while not closed:
                more = client.recv(65536)
                closed, got = not more, got + more
                client.settimeout(2 if got else SECONDS)  # a second answer would follow the first
        return [int(s) for s in re.findall(rb"HTTP/1\.1 (\d\d\d) [A-Z]", got)], closed


def connected(port, count, data):
    clients = []
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
        with contextlib.suppress(OSError):
            client.sendall(data)
        clients.append(client)
    return clients


# ---- the server -----------------------------------------------------------------------------------

class Server:
    def __init__(self, home, uid, *words, files=None, env=None):
        self.home, self.uid = home, uid
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}
        self.env.update(KYMO_DIR=str(home / "live"), XDG_STATE_HOME=str(home / "state"), HOME=str(home), LC_ALL="C.UTF-8")
        self.env.update(env or {})
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        limit = ["prlimit", f"--nofile={files}:{files}"] if files else []
        self.log = home / "serve.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([*limit, KYMO, "serve", "--port", str(port), *words], env=self.env, cwd=home, stderr=log,
                                            stdin=subprocess.DEVNULL, preexec_fn=lambda: become(uid))
        until(lambda: "http://" in self.log.read_text() and self.log.read_text().endswith("\n"))
        self.port = int(re.search(r"http://127.0.0.1:(\d+)/", self.log.read_text())[1])
        self.token = (re.search(r"\?token=(\S+)", self.log.read_text()) or [None, None])[1]
        if "does not identify" in self.log.read_text() and uid != 65534:
            self.stop()
            pytest.skip("this kernel does not report the owner of a connection")

    def command(self, *words, env=None):
        done = subprocess.run([KYMO, *words], env={**self.env, **(env or {})}, cwd=self.home, capture_output=True, text=True,
                              timeout=SECONDS, check=False, preexec_fn=lambda: become(self.uid))
        return done.returncode, done.stdout, done.stderr

    def sockets(self):
        return [p for p in (self.home / "live").iterdir() if p.is_socket()]

    def stop(self):
        self.process.terminate()
        return self.process.wait(SECONDS)


@pytest.fixture(scope="session", autouse=True)
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)) if hard > 0 else soft, hard))


@contextlib.contextmanager
def folder():
    """A folder that other users can enter. Not one of pytest's: each pytest that starts closes the folder of all of them."""
    with tempfile.TemporaryDirectory(prefix="kymo-attack-") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


def make_home(path, uid):
    home = path / "home"
    home.mkdir()
    (home / "live").mkdir(mode=0o700)
    for made in (home, home / "live"):
        os.chown(made, uid, uid)
    return home


@pytest.fixture
def start():
    """start(uid, *words): a server of that user."""
    servers = []

    def make(uid, *words, **more):
        servers.append(Server(make_home(path, uid), uid, *words, **more))
        return servers[-1]
    with folder() as path:
        yield make
        for server in servers:
            assert server.process.poll() is None, "the server has died: " + server.log.read_text()
            assert server.stop() == 0


both = pytest.mark.parametrize("owner", [OWNER, 0], ids=["server-of-a-user", "server-of-root"])


# ---- other users ----------------------------------------------------------------------------------

@both
def test_another_user_is_refused_each_of_40_times(start, owner):
    server = start(owner)

    def tries():
        return [status(server.port, *what) for _ in range(20) for what in ([], ["/api/query", {"sql": "SELECT 1"}])]
    assert set(as_user(OTHER, tries)) <= set(REFUSED)
    assert as_user(owner, status, server.port) == 200


def test_root_is_another_user_on_the_port_and_is_served_on_the_socket(start):
    server = start(OWNER)
    assert status(server.port) == 403
    assert status(server.port, Authorization="Bearer " + server.token) == 200
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(server.sockets()[0]))
        client.sendall(b"GET /api/targets HTTP/1.0\r\nHost: localhost\r\n\r\n")
        assert client.recv(15).startswith(b"HTTP/1.1 200")


@both
@pytest.mark.parametrize("how", ["reset", "closed", "time-wait"])
def test_a_client_that_closes_at_once_changes_no_setting(start, owner, how):
    server = start(owner)
    program = subprocess.Popen([KYMO, "run", "-q", "--", PROGS / "probe_loop"], env=server.env, cwd=server.home, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=lambda: become(owner))

    def setting():
        got, _, body = as_user(owner, ask, server.port, "/api/config?key=sample_rate")
        assert got not in REFUSED, body
        return got == 200 and json.loads(body)["settings"][0]["value"]

    def tries():
        body = json.dumps({"set": {"sample_rate": "0.777"}}).encode()
        for _ in range(10):
            with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as client:
                if how == "reset":
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(b"POST /api/config HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                if how == "time-wait":  # the kernel forgets the owner of a socket that is closed after its end was confirmed
                    client.shutdown(socket.SHUT_WR)
                    time.sleep(0.1)
    try:
        assert program.stdout.readline() == b"begun\n"
        assert until(setting) != "0.777"
        server.process.send_signal(signal.SIGSTOP)  # as slow as a busy machine makes it
        as_user(OTHER, tries)
        server.process.send_signal(signal.SIGCONT)
        time.sleep(1)  # for a change to take effect, if one was made
        assert until(setting) != "0.777"
    finally:
        program.stdin.close()
        program.wait(SECONDS)
        program.stdout.close()


@both
def test_many_connections_of_another_user_do_not_let_it_in(start, owner):
    server = start(owner, files=256)

    def tries():
        clients = connected(server.port, 300, b"GET /api/targets HTTP/1.1\r\n")
        said = []
        for client in clients[:40]:
            with contextlib.suppress(OSError):
                client.settimeout(5)
                client.sendall(b"Host: localhost\r\n\r\n")
                said.append(client.recv(12))
        return [s for s in said if s.startswith(b"HTTP/1.1 2")]
    assert as_user(OTHER, tries) == []
    assert as_user(owner, status, server.port) == 200


def slowly(ready, port, count):
    clients = connected(port, count, b"GET /api/targets HTTP/1.1\r\nHost: localhost\r\nX: ")
    ready()
    while True:
        time.sleep(5)
        for client in clients:
            with contextlib.suppress(OSError):
                client.send(b"x")


def test_the_owner_is_answered_beside_a_thousand_slow_connections_of_another_user(start):
    server = start(OWNER, files=1024)
    with attack(OTHER, slowly, server.port, 1000):
        # Well below the 30 s after which an idle connection is closed; these do not even idle.
        assert [as_user(OWNER, lambda: status(server.port, timeout=20)) for _ in range(5)] == [200] * 5
        assert as_user(OTHER, status, server.port) in REFUSED
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 300, "they are closed, not kept"


def test_one_user_does_not_use_up_the_connections_of_the_next(start):
    server = start(OWNER)
    token = {"Authorization": "Bearer " + server.token}
    with attack(OTHER, slowly, server.port, 500):
        assert as_user(OTHER + 7, lambda: status(server.port, timeout=20, **token)) == 200


def test_a_server_of_nobody_identifies_nobody(start):
    server = start(65534)
    assert as_user(65534, status, server.port) == 401
    assert as_user(65534, lambda: status(server.port, Authorization="Bearer " + server.token)) == 200


# ---- the token ------------------------------------------------------------------------------------

def test_another_user_with_the_link_gets_the_page_and_a_cookie_of_its_own(start):
    server = start(OWNER)
    link = "/?token=" + server.token

    def cookie():
        got, headers, _ = ask(server.port, link)
        assert (got, headers["Location"]) == (303, "/")
        assert "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
        assert server.token not in headers["Set-Cookie"]
        return headers["Set-Cookie"].split(";")[0]
    theirs, owners = as_user(OTHER, cookie), as_user(OWNER, cookie)
    for _ in range(3):  # a reload, a second tab
        assert as_user(OTHER, lambda: status(server.port, Cookie=theirs)) == 200
    assert as_user(OTHER, cookie) == theirs, "the link can be used again"
    # Browsers send cookies to all ports of a host, so that another user's server may see them.
    assert as_user(OTHER, lambda: status(server.port, Cookie=owners)) in REFUSED
    assert as_user(OTHER, lambda: status(server.port, Cookie=f"{owners}; a=b; {theirs}")) == 200
    for wrong in ("", "x", server.token[:-1], server.token + "0", server.token.upper() + " "):
        assert as_user(OTHER, lambda: status(server.port, "/?token=" + wrong.strip())) in REFUSED or wrong.strip() == server.token
        assert as_user(OTHER, lambda: status(server.port, Authorization="Bearer " + wrong)) in REFUSED


def test_a_link_in_a_mail_or_a_file_works_and_requests_of_other_sites_do_not(start):
    server = start(0, "--require-token")
    got, headers, body = ask(server.port, "/?token=" + server.token, Sec_Fetch_Site="cross-site")
    assert got == 200 and b'http-equiv="refresh" content="0;url=/"' in body, "not a redirect, to which no strict cookie is sent"
    cookie = headers["Set-Cookie"].split(";")[0]
    assert status(server.port, "/", Cookie=cookie, Sec_Fetch_Site="same-origin") == 200
    assert status(server.port, "/api/targets", Cookie=cookie, Sec_Fetch_Site="cross-site") == 403
    assert status(server.port, "/?token=wrong", Sec_Fetch_Site="cross-site") == 403
    assert status(server.port, "/api/targets", Cookie=cookie, Host="evil.example") == 403
    assert status(server.port, "/api/config", {"set": {}}, Cookie=cookie, Origin="http://evil.example") == 403


def test_a_stale_link_or_cookie_does_not_keep_the_owner_out(start):
    server = start(OWNER)
    assert as_user(OWNER, lambda: status(server.port, "/?token=of-yesterday")) == 303
    assert as_user(OWNER, lambda: status(server.port, Cookie=f"kymo-session-{server.port}=of-yesterday")) == 200


def test_with_require_token_loopback_alone_gives_nothing(start):
    server = start(OWNER, "--require-token")
    assert as_user(OWNER, status, server.port) == 401 and as_user(OWNER, status, server.port, "/") == 401
    assert as_user(OWNER, lambda: status(server.port, Authorization="Bearer " + server.token)) == 200
    # The commands use the socket.
    assert "there are no recordings yet" in server.command("query", f"127.0.0.1:{server.port}", "SELECT 1")[2]


def test_the_browser_is_not_started_with_the_token_among_its_arguments(tmp_path, start):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "xdg-open").write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/page 2>/dev/null\necho "$1" > {tmp_path}/opened\n')
    (tools / "xdg-open").chmod(0o755)
    server = start(0, "--open", "--require-token", env={"DISPLAY": ":99", "PATH": f"{tools}:{os.environ['PATH']}"})
    until(lambda: (tmp_path / "opened").exists() and (tmp_path / "opened").read_text().endswith("\n"))
    opened = pathlib.Path((tmp_path / "opened").read_text().strip())
    assert server.token not in str(opened) and stat.S_IMODE(opened.stat().st_mode) == 0o600
    assert f"url=http://127.0.0.1:{server.port}/?token={server.token}" in (tmp_path / "page").read_text()
    server.process.terminate()
    server.process.wait(SECONDS)
    assert not opened.exists() and not server.sockets()
    server.process = subprocess.Popen(["sleep", "1000"])  # the fixture ends it
    server.stop = lambda: (server.process.kill(), server.process.wait(), 0)[2]


# ---- the socket -----------------------------------------------------------------------------------

@both
def test_commands_use_a_socket_that_only_their_user_can_open(start, owner):
    server = start(owner, env={"KYMO_TOKEN": "sesame"})
    path, = server.sockets()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    def connect():
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(str(path))
    assert as_user(OTHER, connect) != 0
    for name in ("127.0.0.1", "localhost"):
        code, _, err = server.command("query", f"{name}:{server.port}", "SELECT 1", env={"KYMO_TOKEN": ""})
        assert (code, err) == (1, "kymo query: there are no recordings yet; record one with kymo run -- PROGRAM\n")
    # Even if the directory were open to others, the kernel names the peer.
    os.chmod(path, 0o666)
    for folder in (path.parent, path.parent.parent):
        os.chmod(folder, 0o755)

    def ask_there():
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(SECONDS)
            client.connect(str(path))
            client.sendall(b"GET /api/targets HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return client.recv(12)
    assert as_user(OTHER, ask_there) == b"HTTP/1.1 403"


def test_a_socket_that_was_left_behind_is_replaced_or_ignored(start):
    server = start(0)
    path, = server.sockets()
    gone = socket.socket(socket.AF_UNIX)
    path.unlink()
    gone.bind(str(path))
    gone.close()
    assert "there are no recordings yet" in server.command("query", f"127.0.0.1:{server.port}", "SELECT 1")[2], "by the port"
    second = Server(server.home, 0, "--port", str(server.port))
    assert second.port > server.port and len(server.sockets()) == 2
    assert second.stop() == 0 and server.sockets() == [path]


# ---- ambiguous requests ---------------------------------------------------------------------------

BODY = b'{"sql":"SELECT 1"}'
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
POST = b"POST /api/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GET = b"GET /api/targets HTTP/1.1\r\n"
AMBIGUOUS = {
    "length and encoding": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED,
    "two equal lengths": POST + b"Content-Length: 18\r\nContent-Length: 18\r\n\r\n" + BODY,
    "two lengths": POST + b"Content-Length: 18\r\nContent-Length: 5\r\n\r\n" + BODY,
    "a list of lengths": POST + b"Content-Length: 18, 18\r\n\r\n" + BODY,
    "a signed length": POST + b"Content-Length: +18\r\n\r\n" + BODY,
    "two encodings": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + CHUNKED,
    "an unknown encoding": POST + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKED,
    "a folded host": GET + b"Host: localhost\r\n evil.example\r\n\r\n",
    "a folded encoding": POST + b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 18\r\n\r\n" + BODY,
    "a blank before the colon": POST + b"Transfer-Encoding : chunked\r\nContent-Length: 18\r\n\r\n" + BODY,
    "chunks in HTTP/1.0": POST.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKED,
    "two hosts": GET + b"Host: localhost\r\nHost: evil.example\r\n\r\n",
    "a second host after a bare line feed": GET + b"X: a\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    "an absolute address": b"GET http://evil.example/api/targets HTTP/1.1\r\nHost: localhost\r\n\r\n",
}
HIDDEN = b"GET /api/targets HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def server():
    with folder() as path:
        server = Server(make_home(path, 0), 0)
        yield server
        assert server.stop() == 0


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_an_ambiguous_request_is_refused_and_what_follows_it_is_not_read(server, name):
    answers, closed = raw(server.port, AMBIGUOUS[name] + HIDDEN)
    assert set(answers) == {400} and closed


@pytest.mark.parametrize("refused", [b"GET /api/targets HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                                     b"GET /api/targets HTTP/1.1\nHost: evil.example\n\n",
                                     POST + b"Origin: http://evil.example\r\nContent-Length: 18\r\n\r\n" + BODY],
                         ids=["host", "bare-line-feeds", "origin"])
def test_a_request_behind_a_refused_one_is_not_read(server, refused):
    assert raw(server.port, refused + HIDDEN) == ([403], True)
