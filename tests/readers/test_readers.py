"""Lakes read as they are by others: pyarrow, pandas, polars, chDB, DataFusion, Daft and Sail. `make readers` installs them."""
import json
import math
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lake"))

import readers  # noqa: E402
from conftest import NATIVE, Place  # noqa: E402

every = pytest.mark.parametrize("reader", sorted(readers.READERS))


@pytest.fixture(scope="module", autouse=True)
def _stopped():
    yield
    readers.stop()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The lake `lake`: `a` of 8 ranks on 4 hosts, and `c` of one program with rows in many tables. Tests only read it."""
    place = Place(tmp_path_factory.mktemp("lake"))
    place.made("job", ranks=8, per_host=2, steps=60, late="3:3000", samples=1)
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    place.kymo("run", "-q", "-o", "rec", "--", NATIVE / "cli_fixture", "plain")
    place.kymo("lake", "add", "--run", "c", "rec", "lake")
    return place


@pytest.fixture
def own(place, tmp_path):
    own = Place(tmp_path)
    shutil.copytree(place.path / "lake", own.path / "lake")
    return own


def table_of(place, reader, job, table):
    module = pytest.importorskip(readers.PACKAGES[reader])
    assert module
    return readers.READERS[reader](str(place.path / "lake" / table / f"run={job}"), "*.parquet")


def plain(value):
    """Lists, NaN of pandas and numbers of fixed size, as JSON has them."""
    if isinstance(value, float):
        return None if math.isnan(value) else float(f"{value:.12g}")
    if isinstance(value, (list, tuple)):
        return tuple(plain(one) for one in value)
    if isinstance(value, dict):
        return tuple(sorted((key, plain(one)) for key, one in value.items()))
    return value


def rows_of(rows, columns):
    return sorted((tuple(plain(row[column]) for column in columns) for row in rows), key=repr)


# What concerns all hosts is computed when kymo reads, kymo.flushes is shown from its newest files.
COMPUTED = ("dist.", "kymo.overhead")


@every
@pytest.mark.parametrize("job", ["a", "c"])
def test_each_value_of_each_table_is_the_one_that_kymo_reads(place, reader, job):
    tables = sorted(p.parent.name for p in (place.path / "lake").glob(f"*/run={job}") if not p.parent.name.startswith(COMPUTED))
    assert len(tables) > 10
    for table in tables:
        found = table_of(place, reader, job, table)
        names = [name for name in found.schema.names if name != "run"]
        ours = json.loads(place.kymo("query", "-f", "json", f"lake/{job}", f"FROM {table}").stdout)
        assert ours, table
        assert set(names) == set(ours[0]), table
        assert rows_of(found.to_pylist(), names) == rows_of(ours, names), table


@every
def test_the_columns_run_tells_jobs_apart(place, reader):
    pytest.importorskip(readers.PACKAGES[reader])
    found = readers.READERS[reader](str(place.path / "lake/trace.steps"), "*/*.parquet").to_pylist()
    assert {run: sum(row["run"] == run for row in found) for run in ("a", "c")} == {"a": 480, "c": 40}
    assert len(found) == 520


AS_NUMBERS = {"pyarrow", "pandas", "polars", "chdb", "daft"}


@every
def test_names_of_jobs_that_are_all_numbers_become_numbers_in_some(own, reader):
    """docs/lake.md names them."""
    pytest.importorskip(readers.PACKAGES[reader])
    where = own.path / "lake/trace.steps"
    shutil.rmtree(where / "run=c")
    (where / "run=a").rename(where / "run=007")
    found = readers.READERS[reader](str(where), "*/*.parquet").to_pylist()
    assert {row["run"] for row in found} == {7 if reader in AS_NUMBERS else "007"}


@every
def test_after_compaction_each_row_is_there_once_with_all_columns(own, reader):
    """One of the files is as an earlier version has written it, without some of the columns."""
    pytest.importorskip(readers.PACKAGES[reader])
    file = sorted((own.path / "lake/trace.steps/run=a").glob("*.parquet"))[0]
    own.kymo("query", "--unsafe", "lake/a", f"COPY (SELECT step, rank, host FROM read_parquet('{file}')) TO '{file}.new' "
             "(FORMAT parquet, KV_METADATA {kymo: 'kymo lake 1 columns 0000000000000001'})")
    pathlib.Path(f"{file}.new").rename(file)
    own.kymo("lake", "compact", "lake/a")
    found = table_of(own, reader, "a", "trace.steps")
    assert found.num_rows == 480 and {"duration_ns", "rank"} <= set(found.schema.names)
    assert found.column("duration_ns").null_count == 120


UNION = {"datafusion", "sail"}


@every
def test_before_compaction_files_of_an_earlier_version_need_care_in_most(own, reader):
    """The first file lacks columns: which readers take its columns for those of all, and which refuse."""
    pytest.importorskip(readers.PACKAGES[reader])
    where = own.path / "lake/trace.steps/run=a"
    for file in sorted(where.glob("*.parquet"))[1:]:
        file.unlink()
    whole = next(where.glob("*.parquet"))
    own.kymo("query", "--unsafe", "lake/a", f"COPY (SELECT step, rank, host FROM read_parquet('{whole}')) TO '{where}/a.parquet' "
             "(FORMAT parquet)")
    try:
        found = table_of(own, reader, "a", "trace.steps")
    except Exception:
        assert reader == "polars"
        return
    assert found.num_rows == 240
    assert ("duration_ns" in found.schema.names) == (reader in UNION), found.schema.names
