"""kymo query on a terminal: a pager for long results, results again and again."""
import shutil
import signal
import subprocess

import pytest
from conftest import KYMO
from probe_tools import until
from terminal import on_terminal
from test_mcp import children

LONG = "SELECT 'row ' || i AS r FROM range(500) t(i)"


@pytest.fixture
def pager(tmp_path):
    """A pager that begins with a line of its own, prints all that it gets, and waits for Enter."""
    script = tmp_path / "pager"
    script.write_text("#!/bin/sh\necho \"PAGER LESS=$LESS\"\ncat\necho 'PAGER END'\nread key < /dev/tty\n")
    script.chmod(0o755)
    return {"PAGER": str(script)}


def test_a_result_that_is_longer_than_the_screen_goes_through_the_pager(shared, pager):
    with on_terminal(shared, "query", shared.path, LONG, env=pager) as terminal:
        text = terminal.wait("PAGER LESS=FRX", "row 0\n", "row 499\n", "500 rows, ", "PAGER END")
        assert text.count("row ") == 500
        terminal.type("\n")
        assert "PAGER" not in terminal.wait_end()
        assert terminal.status == 0


def test_a_result_that_fits_is_printed_as_it_is(shared, pager):
    with on_terminal(shared, "query", shared.path, "SELECT 'one' AS a", env=pager) as terminal:
        assert terminal.wait_end().startswith("a\n───\none\n1 row, ")
        assert (terminal.status, "PAGER" in terminal.seen) == (0, False)


def test_a_pager_that_ends_early_ends_the_query_quietly(shared, tmp_path):
    (tmp_path / "head").write_text("#!/bin/sh\nhead -n 3\n")
    (tmp_path / "head").chmod(0o755)
    with on_terminal(shared, "query", shared.path, "SELECT * FROM range(10000000)", env={"PAGER": str(tmp_path / "head")}) as terminal:
        text = terminal.wait_end()
        assert (terminal.status, len(text.splitlines()), "kymo" in text) == (0, 3, False)


def test_ctrl_c_ends_a_query_that_may_need_a_pager(shared, pager):
    with on_terminal(shared, "query", shared.path, "SELECT count(*) FROM range(100000000000) a", env=pager) as terminal:
        until(lambda: len(children(terminal.pid)) == 2)  # the process before the pager, and the query
        terminal.type("\x03")
        assert "PAGER" not in terminal.wait_end()
        assert terminal.status in (130, -signal.SIGINT)  # the latter before the query has begun


@pytest.mark.skipif(not shutil.which("less"), reason="less is not installed")
def test_less_is_the_pager_that_is_used_without_one(shared):
    env = {name: value for name, value in shared.env.items() if name != "PAGER"}
    shared_env, shared.env = shared.env, env
    try:
        with on_terminal(shared, "query", shared.path, LONG) as terminal:
            text = terminal.wait("row 20")
            assert "row 400" not in text + terminal.plain()
            terminal.type("q")
            terminal.wait_end()
            assert terminal.status == 0
    finally:
        shared.env = shared_env


@pytest.mark.parametrize("env", [{"PAGER": ""}, {"PAGER": "cat"}, {"TERM": "dumb", "PAGER": "false"}])
def test_there_is_no_pager_without_a_need(shared, env):
    with on_terminal(shared, "query", shared.path, LONG, env=env) as terminal:
        assert terminal.wait_end().count("row ") == 500


def test_a_pipe_never_gets_a_pager(shared, pager):
    assert "PAGER" not in shared("query", shared.path, LONG, env=pager).out


def test_a_repeated_query_is_repeated_on_a_new_screen(shared):
    with on_terminal(shared, "query", "-w", "0.1", shared.path, "SELECT 'once' AS a") as terminal:
        while terminal.seen.count("\x1b[H\x1b[2J") < 3:
            assert terminal.status is None
            terminal.read(1)
        assert terminal.plain().count("once\n") >= 2
        terminal.type("\x03")
        terminal.wait_end()
        assert terminal.status in (130, -signal.SIGINT)


def test_a_repeated_result_fits_the_screen(shared):
    with on_terminal(shared, "query", "-w", "5", shared.path, LONG, rows=12) as terminal:
        text = terminal.wait("rows, ")
        assert text.count("row ") == 7 and len(text.splitlines()) <= 12


def test_repeated_results_in_a_pipe_are_separated_by_an_empty_line(shared):
    command = [KYMO, "query", "-f", "csv", "-w", "0.1", shared.path, "SELECT 1 AS a"]
    with subprocess.Popen(command, cwd=shared.cwd, env=shared.env, stdout=subprocess.PIPE, text=True) as child:
        assert [child.stdout.readline() for _ in range(8)] == ["a\n", "1\n", "\n", "a\n", "1\n", "\n", "a\n", "1\n"]
        child.send_signal(signal.SIGINT)


def test_a_repeated_query_ends_with_its_first_error(shared):
    result = shared("query", "-w", "0.1", shared.path, "FROM nonsense")
    assert result.status == 1 and result.err.count("does not exist") == 1


@pytest.mark.parametrize("words", [["-o", "x.csv"], ["-f", "arrow"]])
def test_a_file_is_not_repeated(shared, words):
    result = shared("query", "-w", "1", *words, shared.path, "SELECT 1")
    assert (result.status, result.err) == (2, "kymo query: --repeat prints text; it works without -o, and with table, json or csv\n")
