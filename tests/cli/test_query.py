"""kymo query: formats, safety, ends."""
import csv
import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pytest

from conftest import KYMO

REQUESTS = "SELECT ms, bytes, path FROM app.requests"


def test_a_table_is_aligned(shared):
    result = shared("query", REQUESTS)
    assert result.status == 0
    assert result.out == (
        "    ms                 bytes  path\n"
        "──────  ────────────────────  ──────\n"
        "   1.5                    -1  /\n"
        "  0.25      9007199254740993  /a,b\"c\n"
        "1e+300  -9223372036854775808\n")
    assert re.fullmatch(r"3 rows, [0-9.]+ (µs|ms|s)\n", result.err)


@pytest.mark.parametrize("sql", ["SHOW TABLES", " show tables ;\n"])
def test_show_tables_shows_all_with_their_columns(shared, sql):
    tables = {row["name"]: row["columns"] for row in json.loads(shared("query", "-f", "json", sql).out)}
    assert {"ms", "bytes", "path"} <= set(tables["app.requests"].split(", "))
    assert {"trace.zones", "kymo.runs", "python.samples"} <= set(tables) and "duration_ns" in tables["trace.zones"]
    assert shared("query", "SHOW TABLES FROM trace").out.split()[2:4] == ["counters", "critical_path"]


def test_a_table_without_utf8_has_plain_rules(shared):
    result = shared("query", "SELECT 1 AS a", env={"LC_ALL": "C"})
    assert result.out == "a\n-\n1\n"
    assert result.err.startswith("1 row, ")


def test_null_and_the_word_null_differ(shared):
    result = shared("query", "SELECT NULL::VARCHAR AS a, 'NULL' AS b, '' AS c, true AS d")
    assert result.out == 'a     b       c  d\n────  ──────  ─  ────\nNULL  "NULL"     true\n'


def test_json_is_one_object_a_line(shared):
    result = shared("query", "-f", "json", REQUESTS)
    assert result.err == ""
    assert result.out == (
        '[\n'
        '{"ms":1.5,"bytes":-1,"path":"/"},\n'
        '{"ms":0.25,"bytes":9007199254740993,"path":"/a,b\\"c"},\n'
        '{"ms":1e+300,"bytes":-9223372036854775808,"path":""}\n'
        ']\n')
    json.loads(result.out)


def test_json_of_nothing_is_an_empty_array(shared):
    assert shared("query", "-f", "json", "SELECT 1 WHERE false").out == "[]\n"


def test_json_of_odd_numbers(shared):
    sql = """SELECT 'nan'::DOUBLE AS a, 'inf'::DOUBLE AS b, NULL AS c, 18446744073709551615::UBIGINT AS d,
             170141183460469231731687303715884105727::HUGEINT AS e, 1.50::DECIMAL(9,2) AS f, 2.0::DOUBLE AS g,
             true AS h, 5 AS a"""
    assert shared("query", "-f", "json", sql).out == (
        '[\n{"a":null,"b":null,"c":null,"d":18446744073709551615,"e":170141183460469231731687303715884105727,'
        '"f":1.50,"g":2.0,"h":true,"a_1":5}\n]\n')


def test_json_of_lists_and_structs(shared):
    sql = """SELECT [1, NULL, 3] AS a, {'x': 'y"\n', 'z': [{'n': NULL}]} AS b, []::INT[] AS c,
             map {'k': 1} AS d, ['bad' || chr(1)] AS e"""
    [row] = json.loads(shared("query", "-f", "json", sql).out)
    assert row["a"] == [1, None, 3] and row["b"] == {"x": 'y"\n', "z": [{"n": None}]}
    assert row["c"] == [] and row["d"] == {"k": 1} and row["e"] == ["bad\x01"]


def test_csv_is_rfc_4180(shared):
    result = shared("query", "-f", "csv", REQUESTS)
    assert result.out == ('ms,bytes,path\n1.5,-1,/\n0.25,9007199254740993,"/a,b""c"\n'
                          '1e+300,-9223372036854775808,""\n')


def test_csv_keeps_numbers_and_tames_formulas(shared):
    sql = "SELECT -1 AS n, '=1+1' AS a, '@x' AS b, '-1' AS c, '\t,x' AS d, NULL AS e, -1.5::DECIMAL(3,1) AS f"
    assert shared("query", "-f", "csv", sql).out == "n,a,b,c,d,e,f\n-1,'=1+1,'@x,'-1,\"'\t,x\",,-1.5\n"


def test_arrow_and_parquet_hold_the_same_rows(shared, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    ipc, parquet = pytest.importorskip("pyarrow.ipc"), pytest.importorskip("pyarrow.parquet")
    expected = [{"ms": 1.5, "bytes": -1, "path": "/"}, {"ms": 0.25, "bytes": 9007199254740993, "path": '/a,b"c'},
                {"ms": 1e300, "bytes": -2**63, "path": ""}]
    assert ipc.open_stream(shared("query", "-f", "arrow", REQUESTS).raw).read_all().to_pylist() == expected
    piped = shared("query", "-f", "parquet", REQUESTS).raw
    assert parquet.read_table(pyarrow.BufferReader(piped)).to_pylist() == expected
    for name in ("arrow", "parquet"):
        assert shared("query", "-f", name, "-o", tmp_path / name, REQUESTS).status == 0
    assert parquet.read_table(tmp_path / "parquet").to_pylist() == expected
    assert ipc.open_stream((tmp_path / "arrow").read_bytes()).read_all().to_pylist() == expected


def test_arrow_and_parquet_begin_as_they_should(shared, tmp_path):
    assert shared("query", "-f", "arrow", REQUESTS).raw[:4] == b"\xff\xff\xff\xff"
    assert shared("query", "-f", "parquet", REQUESTS).raw[:4] == b"PAR1"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", ["table", "json", "csv", "arrow", "parquet"])
def test_limit_limits(shared, format):
    def ask(sql, *options):
        return shared("query", "-f", format, *options, sql).raw
    assert ask("SELECT i FROM range(5) t(i) -- five", "--limit", "2") == ask("SELECT i FROM range(2) t(i)") or \
        format == "parquet"


def test_sql_comes_from_stdin(shared):
    assert shared("query", "-f", "csv", "-", stdin=b"SELECT 1 AS a;\n").out == "a\n1\n"
    assert shared("query", "latest", "-f", "csv", "-", stdin=b"SELECT 1 AS a").out == "a\n1\n"
    wrong = shared("query", "-", stdin=b"SELECT\0 1")
    assert (wrong.status, wrong.out) == (2, "")


@pytest.mark.parametrize("sql", ["-- one\nSELECT 1 AS a", "--one, of all\nSELECT 1 AS a", "--one\nSELECT 1 AS a"])
def test_sql_may_begin_with_a_comment(shared, sql):
    assert shared("query", "-f", "csv", sql).out == "a\n1\n"
    assert shared("query", "latest", sql, "--format=csv").out == "a\n1\n"


def test_an_option_that_is_none_is_no_comment(shared):
    assert "unknown option --one" in shared("query", "--one", "SELECT 1").err


@pytest.mark.parametrize("target", ["latest", "path", "snapshot", "packed"])
def test_targets_give_the_same_answer(kymo, target):
    path = kymo.record("plain")
    targets = {"latest": "latest", "path": path, "snapshot": "a.kymosnap", "packed": "a.kymo"}
    assert kymo("snapshot", path, "a.kymosnap").status == 0
    assert kymo("pack", path, "a.kymo").status == 0
    sql = "SELECT name, count(*) AS n, min(depth) AS depth FROM trace.zones GROUP BY name ORDER BY name"
    result = kymo("query", "-f", "csv", targets[target], sql)
    assert result.out == "name,n,depth\ndata.next,40,1\nforward,40,1\ntrain_step,40,0\n", result.err


def test_rows_are_what_was_recorded(shared):
    def ask(sql):
        return list(csv.reader(io.StringIO(shared("query", "-f", "csv", sql).out)))[1:]
    assert ask("SELECT name, text FROM trace.marks ORDER BY ts_ns") == [
        ["begin", ""], ["loaded", "12 files"],
        ["a long text", "a text of more than thirty-two bytes, so that it is cut into parts"]]
    assert ask("SELECT name, value FROM trace.counters ORDER BY ts_ns") == [
        ["queue", "0.0"], ["queue", "0.5"], ["queue", "1.0"], ["queue", "1.5"]]
    assert ask("SELECT name, count FROM trace.regions ORDER BY name") == [
        ["data.next", "40"], ["forward", "40"], ["train_step", "40"]]
    assert ask("SELECT count(*), min(step) FROM trace.steps")[0][0] == "40"
    assert ask("SELECT sum(emitted) = sum(kept) + sum(overwritten) + sum(dropped) FROM kymo.streams") == [["true"]]


def test_an_unknown_column_gets_a_suggestion(shared):
    result = shared("query", "SELECT nme FROM trace.regions")
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("kymo query: ") and "name" in result.err


def test_an_unknown_table_gets_a_suggestion(shared):
    result = shared("query", "FROM trace.zone")
    assert result.status == 1 and "zones" in result.err


@pytest.mark.parametrize("sql", [
    "CREATE TABLE t (a INT)", "SELECT 1; SELECT 2", "ATTACH 'x.db'", "COPY (SELECT 1) TO 'x.csv'", "SET threads = 1",
    "INSTALL httpfs", "LOAD httpfs", "PRAGMA enable_profiling", "DROP VIEW trace.zones", "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'", "FROM glob('/*')",
])
def test_sql_cannot_change_or_read_anything_else(shared, sql):
    result = shared("query", sql)
    assert (result.status, result.out) == (1, "")
    assert not (shared.cwd / "x.csv").exists() and not (shared.cwd / "x.db").exists()


def test_unsafe_allows_files(shared, tmp_path):
    file = tmp_path / "x.csv"
    assert shared("query", "--unsafe", f"COPY (SELECT 1 AS a) TO '{file}'").status == 0
    assert file.read_text() == "a\n1\n"


def test_an_endless_query_ends_by_timeout(shared):
    start = time.monotonic()
    result = shared("query", "--timeout", "0.3", "SELECT count(*) FROM range(10000000) a, range(10000000) b")
    assert result.status == 1 and time.monotonic() - start < 10
    assert "0.3" in result.err or "time" in result.err


def test_ctrl_c_cancels_with_130(shared):
    child = subprocess.Popen([KYMO, "query", "SELECT count(*) FROM range(10000000) a, range(10000000) b"],
                             cwd=shared.cwd, env=shared.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    start = time.monotonic()
    child.communicate(timeout=20)
    assert child.returncode == 130 and time.monotonic() - start < 5


# --- files -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("format", ["table", "json", "csv", "arrow", "parquet"])
def test_no_file_is_replaced_without_force(shared, tmp_path, format):
    file = tmp_path / "out"
    file.write_text("old")
    result = shared("query", "-f", format, "-o", file, "SELECT 1 AS a")
    assert (result.status, result.out) == (1, "")
    assert result.err == f"kymo query: {file} exists; --force overwrites it\n"
    assert file.read_text() == "old"
    assert shared("query", "-f", format, "-o", file, "--force", "SELECT 1 AS a").status == 0
    assert file.read_bytes() != b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_failed_query_leaves_no_file(shared, tmp_path):
    for sql in ("SELECT nothing", "SELECT error('x') FROM range(100000)"):
        assert shared("query", "-f", "csv", "-o", tmp_path / "out", sql).status == 1
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said(shared):
    with open("/dev/full", "w") as full:
        done = subprocess.run([KYMO, "query", "-f", "csv", "SELECT * FROM range(100000)"], cwd=shared.cwd,
                              env=shared.env, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"No space left on device" in done.stderr


def test_a_reader_that_goes_away_ends_it_quietly(shared):
    for format in ("table", "json", "csv", "arrow"):
        line = f"'{KYMO}' query -f {format} 'SELECT * FROM range(3000000)' | head -c 100 > /dev/null"
        done = subprocess.run(["sh", "-c", line], cwd=shared.cwd, env=shared.env, capture_output=True, timeout=30)
        assert done.stderr == b""


# --- terminals -------------------------------------------------------------------------------------------------

def on_a_terminal(kymo, *arguments, columns=80, env=None):
    """What a terminal of that many columns shows."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    child = subprocess.Popen([KYMO, *map(os.fspath, arguments)], cwd=kymo.cwd, env={**kymo.env, **(env or {})},
                             stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    out = b""
    while True:
        try:
            bytes = os.read(master, 65536)
        except OSError:
            break
        if not bytes:
            break
        out += bytes
    os.close(master)
    return child.wait(), out.decode().replace("\r\n", "\n")


def plain_text(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_terminal_gets_colour_and_a_pipe_none(shared):
    sql = "SELECT NULL AS a"
    assert "\x1b[1m" in on_a_terminal(shared, "query", sql)[1]
    assert "\x1b" not in on_a_terminal(shared, "query", sql, env={"NO_COLOR": "1"})[1]
    assert "\x1b" not in on_a_terminal(shared, "query", sql, env={"TERM": "dumb"})[1]
    assert "\x1b" not in shared("query", sql).out


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_a_terminal_is_never_overrun(shared, columns):
    for sql in ("FROM trace.zones LIMIT 3", "FROM kymo.processes", "SELECT repeat('x', 500) AS a, 1 AS b"):
        status, out = on_a_terminal(shared, "query", sql, columns=columns)
        assert status == 0
        lines = plain_text(out).splitlines()
        footer = [i for i, line in enumerate(lines) if re.match(r"[0-9,]+ rows?, ", line)][0]
        assert all(len(line) <= columns for line in lines[:footer]), out


def test_a_pipe_gets_every_byte(shared):
    out = shared("query", "SELECT repeat('x', 500) AS a, 1 AS b").out
    assert "x" * 500 in out


def test_columns_that_do_not_fit_are_named(shared):
    out = plain_text(on_a_terminal(shared, "query", "FROM trace.zones LIMIT 1")[1])
    assert "columns do not fit this terminal and are left out" in out and "instance" in out.splitlines()[-1]


def test_a_terminal_is_told_which_recording_latest_was(shared):
    for words in (("SELECT 1",), ("latest", "SELECT 1"), ("-f", "csv", "SELECT 1")):
        assert on_a_terminal(shared, "query", *words)[1].splitlines()[-1] == f"recording {shared.path}"
    assert "recording" not in on_a_terminal(shared, "query", shared.path, "SELECT 1")[1]
    assert "recording" not in shared("query", "SELECT 1").err


def test_binary_formats_refuse_a_terminal(shared):
    for format in ("arrow", "parquet"):
        status, out = on_a_terminal(shared, "query", "-f", format, "SELECT 1")
        assert status == 2 and out == f"kymo query: cannot write {format} to a terminal; use -o FILE or a pipe\n"


def test_an_empty_table_says_how_to_fill_it(kymo):
    kymo.record("empty")
    assert "kymo run" in on_a_terminal(kymo, "query", "FROM trace.zones")[1]
    assert "torch" in on_a_terminal(kymo, "query", "FROM python.torch_trace")[1].splitlines()[-1]
    assert "kymo run" not in kymo("query", "FROM trace.zones").err


# --- hostile names ---------------------------------------------------------------------------------------------

def test_hostile_names_are_valid_json(hostile):
    rows = json.loads(hostile("query", "-f", "json", "SELECT name FROM trace.regions").out)
    names = {row["name"] for row in rows}
    assert {"</script><script>alert(1)", "=cmd()", "escape\x1b[31mred", "new\nline", 'quote"comma,', "NULL"} <= names
    assert any(n.startswith("bad\N{REPLACEMENT CHARACTER}") for n in names if n)


def test_hostile_names_are_safe_csv(hostile):
    out = hostile("query", "-f", "csv", "SELECT name FROM trace.regions ORDER BY name").raw.decode()
    names = [row[0] for row in csv.reader(io.StringIO(out, newline=""))]
    assert {"'=cmd()", "'+1", "'-1", "'@x", "'\ttab", "'\rreturn", "new\nline", 'quote"comma,'} <= set(names)
    assert not [n for n in names if n and n[0] in "=+-@\t\r"]


@pytest.mark.parametrize("arguments", [["query", "SELECT name, text FROM trace.marks"], ["query", "FROM trace.regions"],
                                       ["report"]])
def test_hostile_names_cannot_drive_the_terminal(hostile, arguments):
    for out in (hostile(*arguments).out, plain_text(on_a_terminal(hostile, *arguments)[1])):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out)
        # A report has room for the costliest only, whichever of them that is.
        assert re.search(r"\\(x1b\[31mred|ttab|rreturn|nline|u202e)", out) if arguments == ["report"] else "\\x1b[31mred" in out


def test_hostile_names_do_not_leave_their_row(hostile):
    out = hostile("query", "SELECT name FROM trace.regions").out
    count = hostile("query", "-f", "csv", "SELECT count(*) AS n FROM trace.regions").out.split()[1]
    assert len(out.splitlines()) == int(count) + 2
