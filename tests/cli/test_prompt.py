"""The prompt of kymo query, on a terminal."""
import os
import pathlib
import stat
import subprocess

import pytest
from conftest import KYMO
from probe_tools import until
from terminal import on_terminal
from test_mcp import alive, children

ENDLESS = "SELECT count(*) FROM range(100000000000) a;"
UP = "\x1b[A"


@pytest.fixture
def prompt(shared):
    with on_terminal(shared, "query", shared.path) as terminal:
        begun = terminal.wait("Ctrl-D ends\n", "kymo> ")
        if "no history and no completion" in begun:
            pytest.skip("there is no libedit")
        terminal.history = pathlib.Path(shared.env["XDG_STATE_HOME"]) / "kymo/query_history"
        yield terminal


def test_a_statement_ends_with_a_semicolon(prompt):
    prompt.type("SELECT 41 + 1 AS answer;\n")
    assert "42\n" in prompt.wait("1 row, ", "kymo> ")
    prompt.type("SELECT\n")
    prompt.wait(" ...> ")
    prompt.type("7 * 6 AS again -- a comment\n")
    prompt.wait(" ...> ")
    prompt.type(";\n")
    assert "42\n" in prompt.wait("1 row, ", "kymo> ")
    prompt.type("\x04")
    prompt.wait_end()
    assert prompt.status == 0


def test_a_statement_ends_with_an_empty_line(prompt):
    prompt.type("SELECT 41 + 1 AS answer\n\n")
    assert "42\n" in prompt.wait("1 row, ", "kymo> ")


def test_an_error_is_printed_and_the_prompt_goes_on(prompt):
    prompt.type("FROM nonsense;\n")
    prompt.wait("Table with name nonsense does not exist", "kymo> ")
    prompt.type("COPY (SELECT 1) TO '/tmp/x';\n")
    prompt.wait("has no access to files", "kymo> ")
    prompt.type("SELECT 1; SELECT 2;\n")
    prompt.wait("not 2 statements", "kymo> ")
    prompt.type(".quit\n")
    prompt.wait_end()
    assert prompt.status == 0


def test_tab_completes_tables_and_columns(prompt):
    prompt.type("FROM trace.ste\t SELECT count(*), sum(duration\t) > 0 AS long;\n")
    assert "40  true" in prompt.wait("1 row, ", "kymo> ")
    prompt.type("SELECT max(m\t\x15")  # no table is named: nothing, and Ctrl-U removes the line
    prompt.type("FROM app.\t\n")
    prompt.wait(" ...> ")
    prompt.type("SELECT max(by\t);\n")
    prompt.wait("9007199254740993\n", "1 row, ", "kymo> ")


def test_tab_lists_what_there_is(prompt):
    prompt.type("FROM host.\t")
    prompt.wait("host.", "\n", "host.", "host.", "kymo> FROM host.")


def test_ctrl_c_drops_what_is_typed(prompt):
    prompt.type("SELECT 1 +\n")
    prompt.wait(" ...> ")
    prompt.type("nonsense\x03")
    prompt.wait("kymo> ")
    prompt.type("SELECT 5 AS five;\n")
    prompt.wait("five", "5\n", "1 row, ", "kymo> ")


def test_ctrl_c_ends_the_statement_only(prompt):
    prompt.type(ENDLESS + "\n")
    worker, = until(lambda: [child for child in children(prompt.pid) if children(child) == []][-1:])
    prompt.type("\x03")
    prompt.wait("kymo> ")
    until(lambda: not alive(worker))
    prompt.type("SELECT 5 AS five;\n")
    prompt.wait("5\n", "1 row, ", "kymo> ")


def test_commands(prompt):
    prompt.type(".help\n")
    prompt.wait(".tables [SCHEMA]", "\\timing", "kymo> ")
    prompt.type(".tables trace\n")
    prompt.wait("counters", "zones", "kymo> ")
    prompt.type(".schema trace.steps\n")
    prompt.wait("trace.steps: Steps of", "data_ns", "time waiting for data", "kymo> ")
    prompt.type(".schema app.requests\n")
    prompt.wait("path", "VARCHAR", "kymo> ")
    prompt.type("\\timing\nSELECT 1;\n")
    prompt.wait("timing is off", "1 row\n", "kymo> ")
    prompt.type("\\timing on\nSELECT 1;\n")
    prompt.wait("timing is on", "1 row, ", "kymo> ")
    for wrong, says in [(".nonsense", "there is no command .nonsense"), (".tables a;b", ".tables: a;b is not"),
                        (".schema", "needs a table"), ("\\timing maybe", "takes on or off, not maybe"),
                        (".schema x\x16\x1b", "is not the name of a table")]:
        prompt.type(wrong + "\n")
        prompt.wait(says, "kymo> ")


def test_history_is_kept_for_its_user_alone(shared, prompt):
    prompt.type("SELECT 'first' AS a;\n")
    prompt.wait("1 row, ", "kymo> ")
    prompt.type(UP + "\n")
    prompt.wait("first\n", "1 row, ", "kymo> ")
    prompt.type("\x04")
    prompt.wait_end()
    assert stat.S_IMODE(prompt.history.stat().st_mode) == 0o600
    assert prompt.history.read_text().endswith("SELECT 'first' AS a;\n")
    os.chmod(prompt.history, 0o644)
    with on_terminal(shared, "query", "latest") as again:
        again.wait("kymo> ")
        again.type(UP + "\n")
        again.wait("first\n", "1 row, ", "kymo> ")
        again.type("\x04")
        again.wait_end()
    assert stat.S_IMODE(prompt.history.stat().st_mode) == 0o600


def test_a_history_that_is_no_file_of_the_user_is_left_alone(kymo, tmp_path):
    path = kymo.record()
    (kymo.home / "state/kymo").mkdir(parents=True, mode=0o700, exist_ok=True)
    (tmp_path / "other").write_text("kept\n")
    (kymo.home / "state/kymo/query_history").symlink_to(tmp_path / "other")
    with on_terminal(kymo, "query", path) as terminal:
        terminal.wait("kymo> ")
        terminal.type("SELECT 3 AS three;\n")
        terminal.wait("1 row, ", "kymo> ")
        terminal.type("\x04")
        terminal.wait_end()
    assert (tmp_path / "other").read_text() == "kept\n"


def test_a_long_history_is_shortened_at_its_beginning(kymo):
    path = kymo.record()
    folder = kymo.home / "state/kymo"
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    (folder / "query_history").write_text("".join(f"SELECT {i} AS old;\n" for i in range(40_000)))
    with on_terminal(kymo, "query", path) as terminal:
        terminal.wait("kymo> ")
        terminal.type("\x04")
        terminal.wait_end()
    text = (folder / "query_history").read_text()
    assert 200_000 < len(text) <= 256 << 10 and text.startswith("SELECT ") and text.endswith("SELECT 39999 AS old;\n")


def test_a_missing_recording_is_an_error_and_no_prompt(kymo):
    with on_terminal(kymo, "query") as terminal:
        text = terminal.wait_end()
        assert (terminal.status, "kymo> " in text, text.startswith("kymo query: ")) == (1, False, True)


def test_without_a_terminal_the_sql_is_missed_as_before(shared):
    assert "no SQL given" in shared("query").err and "no SQL given for" in shared("query", shared.path).err
    done = subprocess.run([KYMO, "query", shared.path], env=shared.env, cwd=shared.cwd, stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 2


def test_a_long_result_at_the_prompt_is_paged_and_the_prompt_comes_back(shared, tmp_path):
    (tmp_path / "head").write_text("#!/bin/sh\necho PAGER\nhead -n 3\n")
    (tmp_path / "head").chmod(0o755)
    with on_terminal(shared, "query", shared.path, env={"PAGER": str(tmp_path / "head")}) as terminal:
        terminal.wait("kymo> ")
        terminal.type("SELECT * FROM range(1000000);\n")
        terminal.wait("PAGER\n", "kymo> ")
        terminal.type("SELECT 5 AS five;\n")
        assert "PAGER" not in terminal.wait("5\n", "1 row, ", "kymo> ")
