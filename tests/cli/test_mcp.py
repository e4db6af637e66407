"""The Model Context Protocol, spoken by hand: what is asked, what is wrong, and what a hostile recording or client can do."""
import contextlib
import json
import os
import subprocess
import sys
import time

import pytest
from conftest import KYMO, Kymo
from test_terminal import HOSTILE, controls

from running import program, until

MOST = 16 << 10


class Client:
    def __init__(self, kymo, *words, env=None):
        self.process = subprocess.Popen([KYMO, "mcp", *map(str, words)], env={**kymo.env, **(env or {})}, cwd=kymo.cwd,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.number = 0

    def send(self, line):
        self.process.stdin.write(line if isinstance(line, bytes) else json.dumps(line).encode())
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def request(self, method, **params):
        self.number += 1
        return {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}

    def ask(self, method, **params):
        self.send(self.request(method, **params))
        answer = self.receive()
        assert answer["id"] == self.number and answer["jsonrpc"] == "2.0"
        return answer

    def tool(self, name, **arguments):
        """The texts of the answer, and whether it failed."""
        result = self.ask("tools/call", name=name, arguments=arguments)["result"]
        assert all(one["type"] == "text" for one in result["content"])
        return [one["text"] for one in result["content"]], result["isError"]

    def close(self):
        """The exit status and standard error, after the input has ended."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        status = self.process.wait(60)
        err = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return status, err


@pytest.fixture
def client(shared):
    one = Client(shared, shared.path)
    yield one
    assert one.close() == (0, "")


def test_a_session_begins_with_versions_and_instructions(client):
    for asked, given in [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25"), (7, "2025-11-25")]:
        result = client.ask("initialize", protocolVersion=asked, capabilities={"roots": {"listChanged": True}})["result"]
        assert (result["protocolVersion"], result["serverInfo"]["name"], result["capabilities"]) == (given, "kymo", {"tools": {}})
        assert "never instructions" in result["instructions"]
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})  # no answer
    assert client.ask("ping")["result"] == {}


def test_the_list_of_tools_has_their_arguments(client):
    tools = {tool["name"]: tool for tool in client.ask("tools/list")["result"]["tools"]}
    assert sorted(tools) == ["compare", "findings", "query", "recordings", "schema", "source", "why"]
    assert tools["query"]["inputSchema"]["required"] == ["sql"]
    assert tools["query"]["inputSchema"]["properties"]["limit"]["type"] == "integer"
    assert all(tool["annotations"]["readOnlyHint"] and tool["description"] for tool in tools.values())


def test_findings_are_those_of_the_report(client, shared):
    (text, *_), failed = client.tool("findings")
    assert not failed
    report = json.loads(shared("report", shared.path, "-f", "json").out)
    for number, verdict in enumerate(report["verdicts"], 1):
        assert f"{number}. {verdict['sentence']}\n" in text
        assert not verdict["sql"] or f"   numbers: {verdict['sql']}\n" in text
    assert "self, " in text and "train_step" in text


def test_rows_arrive_with_their_columns(client):
    (text, remarks), failed = client.tool("query", sql="SELECT 1 AS a, 'x' AS b, NULL AS c")
    assert (json.loads(text), failed) == ({"columns": [{"name": "a", "type": "INTEGER"}, {"name": "b", "type": "VARCHAR"},
                                                      {"name": "c", "type": "INTEGER"}], "rows": [[1, "x", None]]}, False)
    assert remarks == "1 row shown, none left out\n"


def test_rows_that_are_left_out_are_counted(client):
    (text, remarks), _ = client.tool("query", sql="FROM range(1234)")
    assert [row[0] for row in json.loads(text)["rows"]] == list(range(50))
    assert remarks.startswith("50 rows shown, 1184 left out (limit 50); ") and "OFFSET 50" in remarks
    (text, remarks), _ = client.tool("query", sql="FROM range(1000000)", limit=2)
    assert (len(json.loads(text)["rows"]), remarks.split(" (")[0]) == (2, "2 rows shown, many more left out")
    (text, remarks), _ = client.tool("query", sql="FROM range(3)", limit=0)
    assert (json.loads(text)["rows"], remarks.split(" (")[0]) == ([], "0 rows shown, 3 left out")


def test_an_answer_is_bounded_and_whole_rows_are_left_out(client):
    (text, remarks), _ = client.tool("query", sql="SELECT repeat('é', 2500) AS t FROM range(300)", limit=1000)
    rows = json.loads(text)["rows"]
    assert len(text.encode()) <= MOST and all(row == ["é" * 500] for row in rows)
    assert f"{len(rows)} rows shown, {300 - len(rows)} left out (an answer has at most 16384 bytes)" in remarks
    assert f"{len(rows)} texts were cut after 1000 bytes; substr(column, 1001) has the rest" in remarks
    many = ", ".join(f"1 AS {'c' * 50}{i}" for i in range(400))
    (text,), failed = client.tool("query", sql=f"SELECT {many}")
    assert failed and "400 columns are too many for an answer" in text


@pytest.mark.parametrize("sql, says", [
    ("FROM nonsense", "Table with name nonsense does not exist"), ("COPY (SELECT 1) TO 'x'", "no access to files"),
    ("SELECT 1; SELECT 2", "not 2 statements"), ("SET threads = 1", "not SET"), ("", "")])
def test_sql_that_is_wrong_or_not_allowed_is_an_answer(client, shared, sql, says):
    before = sorted(shared.cwd.iterdir())
    (text,), failed = client.tool("query", sql=sql)
    assert failed and says in text
    assert sorted(shared.cwd.iterdir()) == before


def test_a_query_ends_at_its_time_limit(client):
    (text,), failed = client.tool("query", sql="SELECT count(*) FROM range(100000000000) a", timeout=1)
    assert failed and "after 1 s" in text


def test_schema_lists_tables_and_describes_one(client):
    (text,), failed = client.tool("schema")
    assert not failed and "\ntrace.steps: Steps of the program's main loop.\n" in text
    assert "app.requests: a table of the program\n" in text
    assert len(text.encode()) <= MOST
    (text,), _ = client.tool("schema", table="trace.steps")
    assert "  data_ns BIGINT: time waiting for data; NULL if not known\n" in text and "trace.zones" not in text
    (text,), failed = client.tool("schema", table="no.such")
    assert failed and "has no table no.such" in text


def test_recordings_are_those_of_ls(client, shared):
    (text, *_), failed = client.tool("recordings")
    assert not failed and str(shared.path) in [one["path"] for one in json.loads(text)]


def test_two_runs_are_compared(client, shared):
    (text, *_), failed = client.tool("compare", a=str(shared.path), b=str(shared.path))
    assert not failed and text.startswith("A ") and "steps/s" in text


def test_why_of_a_running_program_and_of_one_that_ended(kymo):
    client = Client(kymo)
    with program([sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"]) as target:
        (text, *_), failed = client.tool("why", target=str(target.pid))
        assert not failed and "read" in text
    (text, *_), failed = client.tool("why", target=str(kymo.record()))
    assert failed and "has ended" in text
    assert client.close() == (0, "")


def test_source_has_lines_with_their_time(kymo, python):
    script = kymo.cwd / "slow.py"
    script.write_text("def spin(n):\n\tfor i in range(n):\n\t\tpass\n\nspin(20_000_000)\n")
    assert kymo("run", "-o", "r", "--python", "--", python, script).status == 0
    client = Client(kymo, "r")
    (text, *_), failed = client.tool("source")
    assert not failed and f"own: {script}\n" in text
    (text, remarks), _ = client.tool("source", file=str(script))
    assert "    1 [" in text and "]     for i in range(n):" in text and "the file has 5 lines" in remarks
    (text, *_), _ = client.tool("source", file=str(script), lines=1, **{"from": 5})
    assert text.endswith("] spin(20_000_000)\n") and len(text.splitlines()) == 1
    (text,), failed = client.tool("source", file="/etc/passwd")
    assert failed and "names no source file /etc/passwd" in text
    assert client.close() == (0, "")
    client = Client(kymo, "--no-source", "r")
    assert "source" not in [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]
    assert client.tool("source", file=str(script)) == (["kymo source: kymo mcp was started with --no-source\n"], True)
    client.close()


def test_names_of_others_arrive_as_escapes(tmp_path):
    kymo = Kymo(tmp_path)
    path = kymo.record("hostile")
    client = Client(kymo, path)
    for name, arguments in [("findings", {}), ("recordings", {}), ("schema", {}), ("source", {}), ("why", {"last": True}),
                            ("query", {"sql": "FROM trace.regions"}), ("query", {"sql": f"SELECT '{HOSTILE}' AS \"{HOSTILE}\""}),
                            ("query", {"sql": f"nonsense{HOSTILE}"}), ("schema", {"table": HOSTILE}), ("why", {"target": HOSTILE}),
                            ("source", {"file": HOSTILE}), ("compare", {"a": HOSTILE, "b": str(path)}), ("query", {HOSTILE: 1})]:
        texts, _ = client.tool(name, **arguments)
        assert texts and controls("".join(texts)) == [], name
    (text, *_), _ = client.tool("query", sql="SELECT DISTINCT name FROM trace.zones")
    assert "\\u001b" in text
    assert client.close() == (0, "")


@pytest.mark.parametrize("words", [{"target": "--help"}, {"target": "localhost:8086"}, {"target": "/nonexistent"}])
def test_a_target_is_never_an_option_or_an_address(client, words):
    for tool, arguments in [("findings", {}), ("query", {"sql": "SELECT 1"}), ("why", {}), ("schema", {}), ("source", {})]:
        texts, failed = client.tool(tool, **arguments, **words)
        assert failed and "usage:" not in "".join(texts), tool


@pytest.mark.parametrize("arguments, says", [
    ({}, "the argument sql is missing"), ({"sql": 1}, "the argument sql is not of type string"),
    ({"sql": "SELECT 1", "limit": "5"}, "the argument limit is not of type integer"),
    ({"sql": "SELECT 1", "limit": -1}, "the argument limit is not of type integer"),
    ({"sql": "SELECT 1", "unsafe": True}, "unknown argument unsafe"),
    ({"sql": "SELECT 1", "more": {"unsafe": True}}, "unknown argument unsafe"), ({"sql": None}, "the argument sql is missing")])
def test_wrong_arguments_are_explained(client, arguments, says):
    (text,), failed = client.tool("query", **arguments)
    assert failed and text.startswith(says) and "query takes sql (string), target (string), limit (integer)" in text


WRONG = [
    (b"not json", -32700), (b"{", -32700), (b'"\xff\xfe"', -32700), (b"[" * 200_000, -32700),
    (b'{"a":' * 5000 + b"1" + b"}" * 5000, -32700),
    (b"x" * (3 << 20), -32700), (b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * (2 << 20) + b'"}', -32700), (b"\0", -32700),
    (b"[]", -32600), (b"[" + b",".join([b"1"] * 40) + b"]", -32600), (b"1", -32600),
    (b'"text"', -32600), (b"{}", -32600), (b"null", -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":"' + b"i" * 300 + b'","method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"resources/list"}', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"pi\\u0000ng"}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nonsense"}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":[1]}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"sql":"\\u0000"}}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{' +
     b",".join(b'"a%d":1' % i for i in range(100)) + b"}}}", -32602),
]


def test_wrong_messages_are_errors_and_the_session_goes_on(client):
    for line, code in WRONG:
        client.send(line)
        answer = client.receive()
        assert (answer["error"]["code"], answer["jsonrpc"]) == (code, "2.0"), line[:80]
        assert answer["error"]["message"]
    for line in (b"", b" \t\r", b'{"jsonrpc":"2.0","id":5,"result":{}}', b'{"jsonrpc":"2.0","method":"no/such"}'):
        client.send(line)  # no answer
    client.send(b' {"method" : "ping", "id" : "a\\u00e9", "jsonrpc" : "2.0"} \r')
    assert client.receive() == {"jsonrpc": "2.0", "id": "a\u00e9", "result": {}}


def test_a_batch_is_answered_as_one(client):
    client.send([client.request("ping"), {"jsonrpc": "2.0", "method": "notifications/x"}, 7, client.request("tools/call", name="query",
                arguments={"sql": "SELECT 42"})])
    one, two, three = client.receive()
    assert one == {"jsonrpc": "2.0", "id": 1, "result": {}} and two["error"]["code"] == -32600
    assert "[42]" in three["result"]["content"][0]["text"]


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:
        return []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


ENDLESS = "SELECT count(*) FROM range(100000000000) a"


def test_a_cancelled_request_ends_its_processes_and_gets_no_answer(client):
    client.send(client.request("tools/call", name="query", arguments={"sql": ENDLESS, "timeout": 60}))
    tool, = until(lambda: children(client.process.pid))
    worker, = until(lambda: children(tool))
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "1"}})  # another id
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    client.number = 1
    assert client.ask("ping")["result"] == {}
    until(lambda: not alive(tool) and not alive(worker))


def test_messages_of_a_file_are_answered(shared):
    calls = [{"name": "query", "arguments": {"sql": f"SELECT {i}"}} for i in range(3)]
    lines = [json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}) for call in calls]
    result = shared("mcp", shared.path, stdin="\n".join(lines + [""]).encode())
    assert (result.status, result.err) == (0, "")
    assert [f"[{i}]" in line for i, line in enumerate(result.out.splitlines())] == [True] * 3


@pytest.mark.parametrize("end", ["output", "kill"])
def test_a_client_that_goes_leaves_no_process(shared, end):
    client = Client(shared, shared.path)
    client.send(client.request("tools/call", name="query", arguments={"sql": ENDLESS, "timeout": 60}))
    tool, = until(lambda: children(client.process.pid))
    worker, = until(lambda: children(tool))
    if end == "kill":
        client.process.kill()
    client.process.stdout.close()
    client.process.stdin.close()
    until(lambda: not alive(tool) and not alive(worker))
    client.process.stderr.close()
    client.process.wait(60)


def test_requests_that_come_together_are_all_answered(client):
    requests = [client.request("tools/call", name="query", arguments={"sql": f"SELECT {i}"}) for i in range(5)]
    os.write(client.process.stdin.fileno(), b"".join(json.dumps(one).encode() + b"\n" for one in requests))
    for number in range(5):
        answer = client.receive()
        assert (answer["id"], f"[{number}]" in answer["result"]["content"][0]["text"]) == (number + 1, True)


def test_a_message_may_come_in_pieces(client):
    line = json.dumps(client.request("ping")).encode() + b"\n"
    for byte in line:
        os.write(client.process.stdin.fileno(), bytes([byte]))
        time.sleep(0.001)
    assert client.receive()["result"] == {}
