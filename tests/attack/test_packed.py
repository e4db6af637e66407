"""A packed file may come from anyone: whatever it holds, opening it runs none of it."""
import os
import random
import shutil
import stat
import subprocess

import mutants
import pytest
from conftest import PROGS, Home

duckdb = pytest.importorskip("duckdb")

MUTANTS = int(os.environ.get("KYMO_TEST_MUTANTS", "40"))


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A packed recording; tests change copies of it."""
    home = Home(tmp_path_factory.mktemp("packed"))
    subprocess.run([PROGS / "sql_fixture", home.path / "small"], check=True)
    done = home("pack", home.path / "small", home.path / "run.kymo")
    assert done.returncode == 0, done.stderr
    return home.path / "run.kymo"


def prepared(packed, folder, *statements):
    """A copy of the packed file after these statements of DuckDB."""
    path = folder / "prepared.kymo"
    shutil.copy(packed, path)
    with duckdb.connect(str(path)) as db:
        for statement in statements:
            db.execute(statement)
    return path


def commands(path):
    return [("query", path, "SELECT 1"), ("query", path, "FROM kymo.runs"), ("query", "--unsafe", path, "SELECT 1"),
            ("report", path), ("export", path, "-f", "folded", "-o", "-"), ("compare", path, path), ("rm", path)]


def log_to(folder):
    """SQL that makes the log of DuckDB a CSV file in the folder."""
    return f"enable_logging(''FileSystem'', storage=''file'', storage_config={{''path'': ''{folder}''}})"


def evil_runs(secret, folder):
    """kymo.runs as a view that reads a file and writes what it read where everyone can read it."""
    inner = f"SELECT * FROM read_text(''{secret}''), {log_to(folder)}"
    return ("DROP TABLE kymo.runs",
            "CREATE VIEW kymo.runs AS SELECT 1::BIGINT AS started_unix_ns, 'x' AS version "
            f"FROM json_execute_serialized_sql(json_serialize_sql('{inner}'))")


def test_a_view_in_place_of_a_table_is_not_run_by_any_command(kymo, packed, tmp_path):
    secret, logs = tmp_path / "secret", tmp_path / "logs"
    secret.write_text("the secret")
    secret.chmod(0o600)
    path = prepared(packed, tmp_path, *evil_runs(secret, logs))
    for command in commands(path):
        done = kymo(*command)
        assert done.returncode == 1, command
        assert f"{path} is a DuckDB database, but not a packed recording: it has no table kymo.runs" in done.stderr
    assert path.exists() and not logs.exists()


def test_another_users_file_is_not_copied_by_root(kymo, packed, tmp_path, other_user):
    """The file is the other user's, as is the directory; root opens it."""
    folder = other_user.directory(tmp_path / "theirs")
    secret = tmp_path / "secret"
    secret.write_text("the secret of root")
    secret.chmod(0o600)
    path = prepared(packed, tmp_path, *evil_runs(secret, folder / "logs")).rename(folder / "a.kymo")
    os.chown(path, other_user.uid, other_user.uid)
    for command in commands(path):
        assert kymo(*command).returncode == 1
    assert [p.name for p in folder.iterdir()] == ["a.kymo"]
    assert "the secret" not in other_user("cat", secret).stdout


FOREIGN = {
    "the view main.v": ["CREATE VIEW main.v AS SELECT 1"],
    "the view trace.zones": ["CREATE OR REPLACE VIEW trace.zones AS SELECT content AS name FROM read_text('/etc/hostname')"],
    "the macro main.m": ["CREATE MACRO main.m(x) AS x + 1"],
    "the macro main.t": ["CREATE MACRO main.t() AS TABLE SELECT 1"],
    "the sequence main.s": ["CREATE SEQUENCE main.s"],
    "the index trace.i": ["CREATE INDEX i ON trace.steps (rank)"],
    "the type main.e": ["CREATE TYPE main.e AS ENUM ('a')"],
    "an expression in column main.d.a": ["CREATE TABLE main.d (a INT DEFAULT 3)"],
    "an expression in column main.g.b": ["CREATE TABLE main.g (a INT, b INT AS (a + 1))"],
    "a constraint of main.c": ["CREATE TABLE main.c (a INT CHECK (a > 0))"],
    "the type STRUCT(a INTEGER) of column main.r.a": ["CREATE TABLE main.r (a STRUCT(a INT))"],
}


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.parametrize("unsafe", [[], ["--unsafe"]], ids=["safe", "unsafe"])
def test_what_pack_never_writes_is_refused_by_name(kymo, packed, tmp_path, what, unsafe):
    path = prepared(packed, tmp_path, *FOREIGN[what])
    done = kymo("query", *unsafe, path, "SELECT 1")
    assert (done.returncode, done.stderr) == (
        1, f"kymo query: {path} is not as kymo pack writes it: it has {what}; open it with DuckDB if you trust it\n")


def test_a_macro_does_not_replace_the_functions_of_the_check(kymo, packed, tmp_path):
    empty = {"duckdb_views": "view_name", "duckdb_functions": "function_name", "duckdb_tables": "table_name"}
    path = prepared(packed, tmp_path, "CREATE MACRO main.error(x) AS 1", "CREATE MACRO main.coalesce(x, y) AS 'x'", *(
        f"CREATE MACRO main.{name}() AS TABLE SELECT 'rec' AS database_name, 'kymo' AS schema_name, 'runs' AS {column}, "
        "'' AS sql WHERE false" for name, column in empty.items()))
    done = kymo("query", path, "SELECT 1")
    assert done.returncode == 1 and "it has the macro main." in done.stderr


@pytest.mark.parametrize("table,column,type,right", [("trace.steps", "duration_ns", "VARCHAR", "BIGINT"),
                                                     ("kymo.runs", "program", "DOUBLE", "VARCHAR")])
def test_a_column_of_another_type_than_the_catalogs_is_refused(kymo, packed, tmp_path, table, column, type, right):
    columns = f"SELECT * REPLACE (NULL::{type} AS {column}) FROM {table}"
    path = prepared(packed, tmp_path, f"CREATE TABLE main.other AS {columns}", f"DROP TABLE {table}",
                    f"CREATE TABLE {table} AS FROM main.other", "DROP TABLE main.other")
    done = kymo("query", path, "SELECT 1")
    assert (done.returncode, done.stderr) == (
        1, f"kymo query: {path} is not as kymo pack writes it: column {table}.{column} has the type {type}, not {right}; open it "
           "with DuckDB if you trust it\n")


def test_tables_of_the_user_are_accepted(kymo, packed, tmp_path):
    path = prepared(packed, tmp_path, "CREATE TABLE main.own AS SELECT 1.5::DOUBLE AS a, ['x'] AS b, true AS c, 7::UTINYINT AS d")
    assert kymo("query", path, "SELECT a, b[1] AS b, c, d FROM own", "-f", "csv").stdout.split() == ["a,b,c,d", "1.5,x,true,7"]


def test_a_file_that_pack_wrote_is_opened_by_all_commands(kymo, packed, tmp_path):
    path = prepared(packed, tmp_path)
    for command in commands(path):
        done = kymo(*command)
        assert done.returncode == 0 or (command[0] == "compare" and "cannot compare" in done.stderr), (command, done.stderr)
    assert not path.exists()


def test_a_log_beside_the_file_is_refused(kymo, packed, tmp_path):
    """DuckDB would read it, and wait for a FIFO."""
    path = prepared(packed, tmp_path)
    os.mkfifo(f"{path}.wal")
    done = kymo("query", path, "SELECT 1", timeout=20)
    assert done.returncode == 1 and f"cannot open {path}: {path}.wal shows" in done.stderr


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "directory"])
def test_what_is_no_file_is_refused_at_once(kymo, tmp_path, make):
    path = tmp_path / "x.kymo"
    make(path)
    for command in commands(path):
        done = kymo(*command, timeout=20)
        assert done.returncode == 1 and str(path) in done.stderr, command
    assert path.exists()


def test_a_device_is_refused_at_once(kymo):
    for path in ["/dev/zero", "/dev/null", "/dev/tty"]:
        assert kymo("query", path, "SELECT 1", timeout=20).returncode == 1


def test_a_packed_file_cannot_be_packed(kymo, packed, tmp_path):
    path = prepared(packed, tmp_path)
    done = kymo("pack", path, tmp_path / "again.kymo")
    assert done.returncode == 1 and "already packed" in done.stderr and not (tmp_path / "again.kymo").exists()


def test_a_query_over_a_packed_file_reads_no_other_file(kymo, packed, tmp_path):
    path = prepared(packed, tmp_path)
    (tmp_path / "other.csv").write_text("a\n1\n")
    for sql in [f"FROM '{tmp_path}/other.csv'", f"SELECT * FROM \"{tmp_path}/other.csv\""]:
        done = kymo("query", path, sql)
        assert done.returncode == 1 and not done.stdout, sql


def test_damage_under_a_correct_checksum_is_an_answer_or_a_sentence(kymo, packed, tmp_path):
    """DuckDB itself crashes on some of these; the command does not, and does not hang."""
    original = packed.read_bytes()
    blocks = range(mutants.HEADER * mutants.HEADERS, len(original), mutants.BLOCK)
    assert mutants.checksum_holds(original, mutants.HEADER, mutants.HEADER)
    assert mutants.checksum_holds(original, blocks[0], mutants.BLOCK)
    used = [i for i in range(mutants.HEADER, len(original)) if original[i]]
    seed = int(os.environ.get("KYMO_TEST_SEED", "1"))
    rng = random.Random(seed)
    path = tmp_path / "mutant.kymo"
    for number in range(MUTANTS):
        path.write_bytes(mutants.mutant(original, rng, used))
        command = ("report", path) if number % 4 == 0 else ("query", "--timeout", "30", path, "FROM trace.zones")
        done = kymo(*command, timeout=120)
        assert done.returncode in (0, 1), (seed, number, done.returncode, done.stderr)
        assert done.returncode == 0 or f"kymo {command[0]}: " in done.stderr, (seed, number, done.stderr)


def test_a_written_file_is_as_private_as_before(kymo, packed):
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600


# ---- of an earlier kymo ------------------------------------------------------------------------------------------

LATER = {"host.process": ["peak_bytes", "cpu_ns", "run_delay_ns", "family_peak_bytes", "children_cpu_ns"],
         "host.threads": ["run_delay_ns"], "python.samples": ["place"]}
EARLIER = [*(f"ALTER TABLE {table} DROP COLUMN {column}" for table, columns in LATER.items() for column in columns),
           "DROP TABLE host.program", "CREATE TABLE main.\"their \"\"own\"\"\" AS SELECT 7 AS a"]


def columns_of(kymo, path):
    sql = ("SELECT table_schema || '.' || table_name || '.' || column_name AS name, data_type FROM information_schema.columns "
           "WHERE table_catalog = 'rec' AND table_schema NOT IN ('information_schema', 'pg_catalog', 'main') ORDER BY 1")
    return kymo("query", path, sql, "-f", "csv").stdout.splitlines()


def test_a_file_of_an_earlier_kymo_is_opened_by_all_commands(kymo, packed, tmp_path):
    path = prepared(packed, tmp_path, *EARLIER)
    for command in commands(path):
        done = kymo(*command)
        assert done.returncode == 0 or (command[0] == "compare" and "cannot compare" in done.stderr), (command, done.stderr)
        assert "Binder Error" not in done.stdout + done.stderr, command


def test_what_an_earlier_kymo_did_not_write_is_null_and_listed_once(kymo, packed, tmp_path):
    path = prepared(packed, tmp_path, *EARLIER)
    assert columns_of(kymo, path) == columns_of(kymo, packed)
    assert len(columns_of(kymo, path)) > 400
    for table, columns in LATER.items():
        counts = ", ".join(f"count({column})" for column in columns)
        sql = f"SELECT count(*) = (SELECT count(*) FROM {table}) AS whole, {counts} FROM {table}"
        answer = kymo("query", path, sql, "-f", "csv").stdout.splitlines()[1]
        assert answer == ",".join(["true", *("0" for _ in columns)])
    for sql in ("SELECT count(*) AS n FROM trace.zones", "SELECT sum(rss_bytes) AS n FROM host.process"):
        assert kymo("query", path, sql, "-f", "csv").stdout == kymo("query", packed, sql, "-f", "csv").stdout
    assert kymo("query", path, "FROM host.program", "-f", "csv").stdout.count("\n") == 1
    assert kymo("query", path, 'SELECT a FROM "their ""own"""', "-f", "csv").stdout.split() == ["a", "7"]


def test_a_file_of_today_has_no_views_in_front(kymo, packed):
    """They would cost time at each opening."""
    sql = "SELECT DISTINCT table_catalog AS c FROM information_schema.tables"
    assert kymo("query", packed, sql, "-f", "csv").stdout.split() == ["c", "rec"]


@pytest.mark.parametrize("what", FOREIGN)
def test_what_pack_never_writes_is_refused_in_a_file_of_an_earlier_kymo(kymo, packed, tmp_path, what):
    path = prepared(packed, tmp_path, *EARLIER, *FOREIGN[what])
    done = kymo("query", path, "SELECT 1")
    assert done.returncode == 1 and f"is not as kymo pack writes it: it has {what};" in done.stderr
