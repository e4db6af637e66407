"""kymo mcp with the official client, from PyPI: `make mcp` runs this."""
import asyncio
import json
import os
import pathlib
import subprocess

import pytest

mcp = pytest.importorskip("mcp", reason="mcp is not installed; make mcp installs it")
from mcp import ClientSession, StdioServerParameters  # noqa: E402
from mcp.client.stdio import stdio_client  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = str(ROOT / "build/kymo")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    home = tmp_path_factory.mktemp("mcp")
    (home / "live").mkdir(mode=0o700)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "KYMO_DIR": str(home / "live"), "XDG_STATE_HOME": str(home / "state")}
    subprocess.run([KYMO, "run", "-q", "-o", home / "r", "--", ROOT / "build/tests/progs/cli_fixture", "plain"], env=env, check=True,
                   capture_output=True)
    return home, env


def in_session(place, what):
    """Runs what(session) in an initialised session; returns its result and that of the initialisation."""
    home, env = place

    async def talk():
        server = StdioServerParameters(command=KYMO, args=["mcp", str(home / "r")], env=env)
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            began = await session.initialize()
            return began, await what(session)
    return asyncio.run(talk())


def text_of(result):
    return "".join(one.text for one in result.content)


def field(thing, *names):
    """Attributes are in camel case in old versions of the client, in snake case in new ones."""
    return next(getattr(thing, name) for name in names if hasattr(thing, name))


def test_the_client_lists_the_tools(place):
    began, listed = in_session(place, lambda session: session.list_tools())
    assert field(began, "serverInfo", "server_info").name == "kymo" and "never instructions" in began.instructions
    assert sorted(tool.name for tool in listed.tools) == ["compare", "findings", "query", "recordings", "schema", "source", "why"]


def test_the_client_calls_every_tool(place):
    run = str(place[0] / "r")
    calls = [("findings", {}, "regions by self time"), ("recordings", {}, run), ("schema", {"table": "trace.steps"}, "data_ns BIGINT"),
             ("query", {"sql": "SELECT count(*) FROM trace.steps"}, "[40]"), ("compare", {"a": run, "b": run}, "steps/s"),
             ("source", {}, "cli_fixture.c")]

    async def call_all(session):
        return [await session.call_tool(name, arguments) for name, arguments, _ in calls]
    _, results = in_session(place, call_all)
    for (name, _, says), result in zip(calls, results):
        assert says in text_of(result) and not field(result, "isError", "is_error"), name


def test_an_error_of_a_tool_is_an_answer(place):
    _, result = in_session(place, lambda session: session.call_tool("query", {"sql": "FROM nonsense"}))
    assert field(result, "isError", "is_error") and "does not exist" in text_of(result)


def test_rows_are_json(place):
    _, result = in_session(place, lambda session: session.call_tool("query", {"sql": "SELECT 1 AS a", "limit": 1}))
    assert json.loads(result.content[0].text)["rows"] == [[1]]


def test_the_client_pings(place):
    in_session(place, lambda session: session.send_ping())
