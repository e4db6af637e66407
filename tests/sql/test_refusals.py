"""FAULTS 33 from the command line: what is refused, and in which words."""
import signal
import subprocess
import time

import pytest
from conftest import KYMO

UNSAFE = "--unsafe allows all statements"


@pytest.mark.parametrize("sql, what", [
    ("CREATE TABLE t (a INT)", "CREATE"), ("DROP VIEW trace.zones", "DROP"), ("ATTACH ':memory:' AS x", "ATTACH"),
    ("USE memory", "SET"), ("SET threads = 1", "SET"), ("CALL duckdb_settings()", "CALL"),
    ("LOAD httpfs", "LOAD"), ("BEGIN", "a transaction"),
])
def test_other_statements(both, sql, what):
    assert both.refused(sql) == f"SQL over a recording must be one SELECT or EXPLAIN, not {what}; {UNSAFE}"


def test_what_reaches_for_files_in_another_way(both):
    for sql in ["COPY (SELECT 1) TO 'x.csv'", "EXPLAIN ANALYZE COPY (SELECT 1) TO 'x.csv'"]:
        assert both.refused(sql)== \
            f"SQL over a recording has no access to files, settings or extensions; {UNSAFE}"
    assert not (both.home / "x.csv").exists() and not (both.home / "x.db").exists()


@pytest.mark.parametrize("function", ["read_csv", "read_text", "read_parquet", "glob", "enable_logging", "query"])
def test_functions_that_reach_out(both, function):
    assert both.refused(f"FROM {function}('/etc/passwd')") == f"SQL over a recording may not call {function}(); {UNSAFE}"


def test_two_statements(both):
    assert both.refused("SELECT 1; SELECT 2") == \
        f"SQL over a recording must be one SELECT or EXPLAIN, not 2 statements; {UNSAFE}"


def test_a_column_that_is_not_there_gets_duckdbs_suggestion(both):
    assert both.refused("SELECT nam FROM trace.steps") == (
        'Binder Error: Referenced column "nam" not found in FROM clause!\n'
        'Candidate bindings: "name", "rank"\n'
        "\n"
        "LINE 1: SELECT nam FROM trace.steps\n"
        "               ^")


def test_a_table_that_is_not_there_gets_duckdbs_suggestion(both):
    assert both.refused("FROM trace.step") == (
        "Catalog Error: Table with name step does not exist!\n"
        'Did you mean "steps"?\n'
        "\n"
        "LINE 1: FROM trace.step\n"
        "             ^")


def test_unsafe_allows_it(recording):
    assert recording("SELECT count(*) > 0 FROM read_text('/proc/self/status')", "--unsafe") == "true"


def test_a_query_without_end_is_stopped_at_its_time(both):
    began = time.monotonic()
    said = both.refused("SELECT count(*) FROM range(1000000000000) a, range(1000) b", "--timeout", "0.5")
    assert said.startswith("the query was stopped after 0.5 s, its time limit")
    assert time.monotonic() - began < 10


def test_ctrl_c_cancels(recording):
    sql = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"
    child = subprocess.Popen([KYMO, "query", recording.path, sql], env=recording.env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=10)
    assert child.returncode == 130 and not out
    assert b"cancelled" in err
