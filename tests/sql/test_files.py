"""What others can read: Arrow, Parquet and the packed file, each opened without kymo."""
import io
import shutil
import subprocess

import pytest
from conftest import KYMO

duckdb = pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")
ipc = pytest.importorskip("pyarrow.ipc")

ZONES = "SELECT name, start_ns, thread, instance FROM trace.zones WHERE pid = 100 ORDER BY start_ns"
ROWS = [("step", 500, "main", None), ("op", 600, "loader", 2), ("load", 1000, "main", None), ("step", 1800, "main", None),
        ("load", 2000, "main", None)]


def tuples(table):
    return [tuple(row.values()) for row in table.to_pylist()]


def test_arrow_is_read_by_pyarrow(both):
    done = both.run("query", both.path, ZONES, "-f", "arrow")
    assert done.returncode == 0, done.stderr
    table = ipc.open_stream(io.BytesIO(done.stdout)).read_all()
    assert tuples(table) == ROWS
    assert [str(t) for t in table.schema.types] == ["string", "int64", "string", "int32"]


def test_arrow_of_nested_types_and_no_rows(recording):
    done = recording.run("query", recording.path, "SELECT [1, NULL] AS l, {'a': 'x'} AS s, sum(1) AS h, NULL AS n", "-f", "arrow")
    assert ipc.open_stream(io.BytesIO(done.stdout)).read_all().to_pylist() == [
        {"l": [1, None], "s": {"a": "x"}, "h": 1, "n": None}]
    done = recording.run("query", recording.path, "FROM python.torch_trace", "-f", "arrow")
    table = ipc.open_stream(io.BytesIO(done.stdout)).read_all()
    assert table.num_rows == 0 and table.num_columns == 20


def test_many_rows_as_arrow(recording):
    done = recording.run("query", recording.path, "SELECT range AS r, 'text ' || range AS t FROM range(100000)", "-f", "arrow")
    table = ipc.open_stream(io.BytesIO(done.stdout)).read_all()
    assert table.num_rows == 100000
    assert table["t"][99999].as_py() == "text 99999"


def test_parquet_is_read_by_duckdb(both, tmp_path):
    done = both.run("query", both.path, ZONES, "-f", "parquet", "-o", tmp_path / "a.parquet")
    assert done.returncode == 0, done.stderr
    assert duckdb.sql(f"FROM '{tmp_path}/a.parquet'").fetchall() == ROWS
    assert duckdb.sql(f"SELECT DISTINCT compression FROM parquet_metadata('{tmp_path}/a.parquet')").fetchall() == [("ZSTD",)]
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]


def test_a_packed_file_is_read_by_duckdb_without_kymo(packed):
    with duckdb.connect(str(packed.path), read_only=True) as db:
        assert db.sql(ZONES).fetchall() == ROWS
        assert db.sql("SELECT name, count FROM trace.regions ORDER BY 1").fetchall() == [("load", 2), ("op", 1), ("step", 2)]
        assert db.sql("SELECT text FROM trace.marks ORDER BY ts_ns").fetchall() == [("hello world",), (None,)]
        assert db.sql("SELECT path FROM app.requests ORDER BY at_ns LIMIT 1").fetchall() == [("/index",)]
        views = db.sql("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
        for schema, name in views:
            db.sql(f'FROM "{schema}"."{name}"').fetchall()
        assert ("python", "torch_trace") in views
        assert db.sql("SELECT start_ns FROM trace.zone_rows").fetchall() == sorted(
            db.sql("SELECT start_ns FROM trace.zone_rows").fetchall())


def test_a_packed_file_may_be_called_like_one_of_its_schemas(packed, tmp_path):
    shutil.copy(packed.path, tmp_path / "trace.kymo")
    with duckdb.connect(str(tmp_path / "trace.kymo"), read_only=True) as db:
        assert db.sql("SELECT count(*), count(name) FROM trace.trace.zones").fetchall() == [(6, 6)]
    done = packed.run("query", tmp_path / "trace.kymo", "SELECT count(*) AS n FROM trace.zones", "-f", "csv")
    assert done.stdout == b"n\n6\n"


def test_a_small_recording_is_a_small_file(packed):
    with duckdb.connect(str(packed.path), read_only=True) as db:
        assert db.sql("SELECT block_size FROM pragma_database_size()").fetchall() == [(16384,)]
    assert packed.path.stat().st_size < 4_000_000


def test_packing_again_needs_force(packed, recording):
    done = recording.run("pack", recording.path, packed.path)
    assert done.returncode == 1 and b"--force" in done.stderr


def test_a_reader_that_leaves_early_is_no_failure_to_talk_about(recording):
    pipe = subprocess.Popen(["head", "-c", "10"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    done = subprocess.run([KYMO, "query", recording.path, "FROM range(10000000)", "-f", "arrow"], env=recording.env,
                          stdout=pipe.stdin, stderr=subprocess.PIPE, check=False, timeout=60)
    pipe.stdin.close()
    pipe.wait()
    assert b"Broken pipe" not in done.stderr
