"""Who may ask, what SQL may do, and clients that mean no good."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest

from conftest import SECONDS, KYMO, Server, environment, make_home, until

AT_ONCE_SECONDS = 20  # below the 30 after which the server gives up who says nothing, and would wake for it


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Host": "evil.example:8086"}, {"Host": "127.0.0.1.evil.example"},
                                     {"Host": ""}, {"Host": "[::1"}, {"Host": "192.168.0.1"}, {"Host": "localhost:80x"},
                                     {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"},
                                     {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}])
def test_other_sites_are_refused(server, headers):
    for path, body in (("/api/targets", None), ("/", None), ("/api/query", {"sql": "SELECT 1"})):
        answer = server.ask(path, body, headers=headers)
        assert answer.status == 403 and answer.json()["error"]


def test_our_own_page_may_ask(server):
    for host in (f"localhost:{server.port}", f"127.0.0.1:{server.port}", "localhost:9999", "[::1]:9999"):
        answer = server.ask("/api/query", {"sql": "SELECT 1"}, headers={"Host": host, "Origin": f"http://{host}",
                                                                        "Sec-Fetch-Site": "same-origin"})
        assert answer.status == 200, answer.body


def test_a_form_of_another_page_cannot_post(server):
    assert server.ask("/api/query", b"sql=SELECT+1", headers={"Content-Type": "application/x-www-form-urlencoded"}).status == 415
    assert server.ask("/api/config", b'{"set":{}}', headers={"Content-Type": "text/plain"}).status == 415


def test_the_page_runs_nothing_but_its_own_script(server):
    page = server.ask("/")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy and page.headers["X-Frame-Options"] == "DENY"
    assert b"<script>" not in page.body and b"style=" not in page.body
    assert server.ask("/", headers={"If-None-Match": page.headers["ETag"]}).status == 304


SQL = [("ATTACH 'x.db'", 403), ("COPY (SELECT 1) TO '/tmp/x'", 403), ("SELECT * FROM read_csv('/etc/passwd')", 403),
       ("FROM '/etc/passwd'", 403), ("INSTALL httpfs", 403), ("SET memory_limit='9GB'", 403), ("PRAGMA memory_limit='9GB'", 403),
       ("CREATE TABLE t (a INT)", 403), ("SELECT 1; SELECT 2", 403), ("SELECT nothing", 400), ("SELECT getenv('HOME')", 400)]


@pytest.mark.parametrize("sql, status", SQL)
def test_sql_only_reads(server, sql, status):
    answer = server.query(sql)
    assert answer.status in (status, 400, 403) and answer.status >= 400 and answer.json()["error"]
    assert b"root:" not in answer.body


def test_an_endless_query_ends_at_its_time_limit(server):
    answer = server.query("SELECT count(*) FROM range(1000000000000) a, range(1000) b", timeout_s=0.3)
    assert answer.status == 504 and "0.3" in answer.json()["error"]
    answer = server.query("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t", timeout_s=0.3)
    assert answer.status in (504, 413)


def test_a_query_that_wants_too_much_memory_is_refused(server):
    answer = server.query("SELECT list(range) FROM range(300000000)", timeout_s=60)
    assert answer.status in (504, 413) and answer.json()["error"]
    assert server.query("SELECT 1").json()["rows"] == [[1]]


def test_a_query_is_cancelled_by_its_id(server):
    answers = []
    asked = threading.Thread(target=lambda: answers.append(
        server.query("SELECT count(*) FROM range(1000000000000) a, range(1000) b", id="endless", timeout_s=100)))
    asked.start()
    until(lambda: server.ask("/api/cancel", {"id": "endless"}).json()["cancelled"])
    asked.join(SECONDS)
    assert answers[0].status == 504 and answers[0].json()["error"] == "the query was cancelled"
    assert server.ask("/api/cancel", {"id": "endless"}).json() == {"cancelled": 0}


def test_while_queries_take_long_zones_are_answered(server):
    endless = [threading.Thread(target=server.query, args=("SELECT count(*) FROM range(1000000000000) a, range(1000) b",),
                                kwargs={"id": "long", "timeout_s": 100}) for _ in range(8)]
    [t.start() for t in endless]
    try:
        until(lambda: server.zones().head["count"] and server.targets())
    finally:
        cancelled = 0
        while any(t.is_alive() for t in endless):
            cancelled += server.ask("/api/cancel", {"id": "long"}).json()["cancelled"]
            endless[0].join(0.1)
    assert cancelled >= 8


def raw(server, data, wait=True):
    with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as client:
        with contextlib.suppress(OSError):
            client.sendall(data)
        got = b""
        with contextlib.suppress(OSError):
            while wait and (more := client.recv(65536)):
                got += more
                if b"\r\n\r\n" in got and b'"error"' in got:
                    break
        return got


def test_absurd_lengths_are_refused(server):
    head = f"POST /api/query HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Type: application/json\r\n".encode()
    assert b" 413 " in raw(server, head + b"Content-Length: 99999999999999\r\n\r\n").split(b"\r\n")[0]
    assert b" 413 " in raw(server, head + b"Content-Length: 2000000\r\n\r\n" + b" " * 2000000).split(b"\r\n")[0]
    assert b"200" not in raw(server, head + b"Content-Length: -5\r\n\r\n{}").split(b"\r\n")[0]
    raw(server, b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n")
    raw(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20000 + b"\r\n")
    raw(server, bytes(range(256)) * 100, wait=False)
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n" + b"ffff\r\n" + b" " * 65535 + b"\r\n"
    raw(server, chunked + b"ffff\r\n" + b" " * 65535 + b"\r\n", wait=False)
    assert server.query("SELECT 1").json()["rows"] == [[1]]


def test_a_thousand_slow_clients_hold_up_nobody(server):
    slow = []
    try:
        for i in range(1000):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
            client.sendall(b"GET /api/targets HTTP/1.1\r\nHost: loc" if i % 2 else b"POST /api/query HTTP/1.1\r\nHost: localhost\r\n"
                           b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            slow.append(client)
        assert server.query("SELECT 40 + 2").json()["rows"] == [[42]]
        assert server.zones().head["count"] and server.targets()
        # Half of them go on, all at once, and are answered (more than 256 waiting: some are asked to come again).
        for client in slow[1::2]:
            client.sendall(b"alhost\r\nConnection: close\r\n\r\n")
        said = [client.recv(12, socket.MSG_WAITALL) for client in slow[1::2]]
        assert set(said) <= {b"HTTP/1.1 200", b"HTTP/1.1 429"} and said.count(b"HTTP/1.1 200") > 200
        assert server.query("SELECT 40 + 2").json()["rows"] == [[42]]
    finally:
        for client in slow:
            client.close()


def test_requests_that_come_in_one_moment_are_all_answered_at_once(server):
    clients = [socket.create_connection(("127.0.0.1", server.port), timeout=AT_ONCE_SECONDS) for _ in range(300)]
    try:
        # However many a thread of the server finds waiting, a full batch of its own among them, it does not sleep on them.
        for count in range(100, len(clients)):
            server.process.send_signal(signal.SIGSTOP)
            for client in clients[:count]:
                client.sendall(b"HEAD /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
            server.process.send_signal(signal.SIGCONT)
            for client in clients[:count]:
                assert client.recv(65536).startswith(b"HTTP/1.1 404"), count
    finally:
        server.process.send_signal(signal.SIGCONT)
        for client in clients:
            client.close()


def test_viewers_that_do_not_read_cost_nobody_anything(server):
    stuck = []
    try:
        for _ in range(100):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS)
            client.sendall(b"GET /api/tail?target=latest HTTP/1.1\r\nHost: localhost\r\n\r\n")
            stuck.append(client)
        with server.tail(target="latest") as events:
            until(lambda: {name for name, _ in events} >= {"targets", "state"})
    finally:
        for client in stuck:
            client.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="to connect as another user one has to be root")
def test_another_user_of_this_machine_is_refused(server):
    ask = ("import os, socket, sys; os.setgid(65534); os.setuid(int(sys.argv[2])); s = socket.socket(); "
           "s.settimeout(60); s.connect(('127.0.0.1', int(sys.argv[1]))); "
           "s.sendall(b'GET /api/targets HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n'); a = b''.join(iter(lambda: s.recv(9999), b'')); "
           "print(a[9:12].decode(), a.partition(b'\\r\\n\\r\\n')[2].decode()[:60])")
    done = subprocess.run([sys.executable, "-c", ask, str(server.port), "65534"], capture_output=True, text=True, timeout=SECONDS)
    if "does not identify local users" in server.said:
        pytest.skip("this kernel does not report the owner of a connection")
    assert done.stdout.startswith('403 {"error":"this server belongs to another user"'), done.stderr
    done = subprocess.run([sys.executable, "-c", ask, str(server.port), "0"], capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout.startswith("200 "), done.stderr


def test_another_address_needs_the_token_that_was_printed(tmp_path):
    server = Server(make_home(tmp_path), "--listen", "0.0.0.0")
    try:
        token = re.search(r"\?token=([0-9a-f]{48})", server.said).group(1)
        assert server.ask("/api/targets").status == 401
        assert server.ask("/").status == 401
        assert server.ask("/api/targets", headers={"Authorization": "Bearer " + token[:-1] + "x"}).status == 401
        assert server.ask("/api/targets", headers={"Authorization": "Bearer "}).status == 401
        assert server.ask("/api/targets", headers={"Cookie": f"kymo-session-{server.port}="}).status == 401
        assert server.ask("/api/targets", headers={"Authorization": "Bearer " + token}).status == 200
        assert server.ask("/api/targets?token=" + token).status == 401, "only the page's link carries it"
        link = server.ask("/?token=" + token)
        assert (link.status, link.headers["Location"]) == (303, "/")
        assert "HttpOnly" in link.headers["Set-Cookie"] and "SameSite=Strict" in link.headers["Set-Cookie"]
        cookie = link.headers["Set-Cookie"].split(";")[0]
        assert server.ask("/api/targets", headers={"Cookie": "a=b; " + cookie}).status == 200
        assert server.ask("/api/targets", headers={"Authorization": "Bearer " + token, "Host": "evil.example"}).status == 403
    finally:
        assert server.stop() == 0


def test_a_token_of_ones_own_is_asked_for_on_loopback_too(tmp_path):
    server = Server(make_home(tmp_path), env={"KYMO_TOKEN": "open-sesame"})
    try:
        assert server.ask("/api/targets").status == 401
        assert server.ask("/api/targets", headers={"Authorization": "Bearer open-sesame"}).status == 200
    finally:
        assert server.stop() == 0


def test_a_taken_port_means_the_next_free_one_and_is_said(tmp_path):
    home = make_home(tmp_path)
    first = Server(home)
    second = Server(home, "--port", str(first.port))
    try:
        assert second.port > first.port and f"port {first.port} is in use; using {second.port}" in second.said
        assert f"ssh -L {first.port}:127.0.0.1:{first.port}" in first.log.read_text()
        assert first.ask("/api/run").json()["error"] == "there are no recordings yet"
    finally:
        assert (first.stop(), second.stop()) == (0, 0)


def test_wrong_use_is_one_line(tmp_path):
    env = environment(make_home(tmp_path))
    for words, status, said in ((["--port", "x"], 2, "--port needs a number"), (["--listen", "300.1.2.3"], 1, "is not an address"),
                                (["nothing.kymo"], 1, "nothing.kymo")):
        done = subprocess.run([KYMO, "serve", *words], env=env, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == status and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
