"""Jobs of a lake on a standalone Spark cluster on loopback: a master, two workers and this process as the driver. `make spark` runs
this; where pyspark or Java is absent it is skipped."""

import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys

import pytest

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed; make spark installs it")
if not shutil.which("java"):
    pytest.skip("there is no Java", allow_module_level=True)

RANKS = int(os.environ.get("KYMO_LAKE_RANKS", 256))
ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
sys.path[:0] = [str(ROOT / "tests/lake"), str(ROOT / "tests/spark")]
from cluster import Cluster  # noqa: E402
from conftest import Place  # noqa: E402
from plain_package import load  # noqa: E402

kymo_spark = load(KYMO)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("lake"))
    place.made("job", ranks=16, per_host=4, steps=80, late="5:3000", samples=1)
    hosts = sorted(p for p in (place.path / "job").iterdir() if p.is_dir())
    place.kymo("lake", "add", "--run", "a", *hosts[:3], "lake")  # the ranks of one host are absent
    return place


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def spark(cluster, place, tmp_path_factory):
    session = cluster.session(tmp_path_factory.mktemp("warehouse"))
    kymo_spark.attach(session, place.path / "lake/a")
    yield session
    session.stop()


def duck(place, sql):
    return [list(row.values()) for row in json.loads(place.kymo("query", "-f", "json", "lake/a", sql).stdout)]


def plain(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return int(value) if value == int(value) else float(value)


def same(x, y):
    if isinstance(x, float) or isinstance(y, float):
        return x is not None and y is not None and math.isclose(float(x), float(y), rel_tol=1e-12, abs_tol=1e-12)
    return x == y


def compare(ours, theirs, what):
    assert len(ours) == len(theirs), f"{what}: {len(ours)} rows in DuckDB, {len(theirs)} in Spark"
    for ours_row, theirs_row in zip(ours, theirs, strict=True):
        theirs_row = [plain(value) for value in theirs_row]
        assert all(same(plain(x), y) for x, y in zip(ours_row, theirs_row, strict=True)), f"{what}: {ours_row} {theirs_row}"


def analyses():
    text = (pathlib.Path(__file__).parent / "analyses.sql").read_text()
    return [(m[1], m[2].strip().rstrip(";")) for m in re.finditer(r"^-- (\d\d .*)\n((?:(?!^-- \d\d ).*\n?)*)", text, re.M)]


@pytest.mark.parametrize("name, sql", analyses(), ids=[name[:2] for name, _ in analyses()])
def test_an_analysis_has_one_answer(place, spark, name, sql):
    ours = duck(place, sql)
    compare(ours, kymo_spark.sql(spark, sql).collect(), name)
    assert ours or name[:2] in ("05",)  # this job has no regions


def test_every_table_has_its_rows_and_sums(place, spark):
    columns = {}
    for schema, table, column, kind in duck(
        place,
        "SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_catalog = 'rec' ORDER BY ALL",
    ):
        columns.setdefault(f"{schema}.{table}", []).append((column, kind))
    assert len(columns) > 50 and {"kymo.now", "kymo.flushes"} <= set(columns)
    parts = []
    for table, each in columns.items():
        numbers = [
            column
            for column, kind in each
            if kind in ("BIGINT", "INTEGER") and not (table == "dist.late" and column.startswith("place"))
        ]
        parts.append(
            (
                table,
                f"SELECT '{table}' AS t, count(*) AS n, "
                + (
                    "CAST(" + " + ".join(f"coalesce(sum(CAST({column} AS DOUBLE)), 0)" for column in numbers) + " AS DOUBLE)"
                    if numbers
                    else "CAST(0 AS DOUBLE)"
                )
                + f" AS s FROM {table}",
            )
        )
    ours = sorted(row for _, sql in parts for row in duck(place, sql))
    theirs = sorted(list(row) for row in spark.sql(" UNION ALL ".join(sql for _, sql in parts)).collect())
    compare(ours, theirs, "all tables")


def test_findings_are_equal(place, spark):
    for sql in (
        "SELECT rank, state FROM dist.ranks WHERE pid IS NULL ORDER BY rank",
        "SELECT rank, host, times_last, collectives, cost_ns, waited_ns, median_ns FROM dist.late ORDER BY cost_ns DESC, rank",
    ):
        compare(duck(place, sql), kymo_spark.sql(spark, sql).collect(), sql)
    assert [row[0] for row in duck(place, "SELECT rank FROM dist.ranks WHERE pid IS NULL ORDER BY rank")] == [12, 13, 14, 15]
    assert kymo_spark.sql(spark, "SELECT rank FROM dist.late ORDER BY cost_ns DESC, rank LIMIT 1").collect()[0][0] == 5


def test_aligned_clocks_are_equal(place, spark):
    """4 hosts whose clocks are seconds apart and drift; rank 5 is late."""
    place.made("skewed", ranks=8, per_host=2, steps=60, clocks=1, late="5:3000")
    place.kymo("lake", "add", "--run", "s", "skewed", "lake")
    place.kymo("lake", "align", "lake/s")
    kymo_spark.attach(spark, place.path / "lake/s")
    try:
        for sql in (
            "SELECT rank, host, t0_ns, offset_ns, drift_ppm, error_ns, collectives, method FROM dist.clocks ORDER BY rank, t0_ns",
            "SELECT rank, seq, enqueue_ns, start_ns, end_ns, arrival_ns, wait_ns FROM dist.collectives ORDER BY rank, seq",
            "SELECT rank, times_last, cost_ns, waited_ns, median_ns FROM dist.late ORDER BY cost_ns DESC, rank",
        ):
            ours = json.loads(place.kymo("query", "-f", "json", "lake/s", sql).stdout)
            compare([list(row.values()) for row in ours], kymo_spark.sql(spark, sql).collect(), sql)
        assert kymo_spark.sql(spark, "SELECT rank FROM dist.late ORDER BY cost_ns DESC, rank LIMIT 1").collect()[0][0] == 5
    finally:
        kymo_spark.attach(spark, place.path / "lake/a")


def test_findings_of_a_large_job_are_equal(place, spark):
    """256 ranks, or KYMO_LAKE_RANKS, with a straggler, an absent, a hung and a leaking rank, losses, and clocks that drift."""
    faults = {"straggler": 5, "absent": 9, "hung": 170, "leak": 33, "losses": 200}
    words = [f"{name}={rank}" for name, rank in faults.items()]
    words += [f"ranks={RANKS}", "steps=40", "clocks=1"]
    made = [ROOT / ".venv/bin/python", ROOT / "tests/lake/made_lake.py", KYMO, place.path / "lake", "large"]
    subprocess.run([*made, *words], check=True, stdout=subprocess.DEVNULL, env=place.env)
    place.kymo("lake", "align", "lake/large")
    kymo_spark.attach(spark, place.path / "lake/large")
    text = (pathlib.Path(__file__).parent / "findings.sql").read_text()
    try:
        for name, sql in re.findall(r"^-- (\w+)\n([^;]*);", text, re.M):
            ranks = [row[0] for row in kymo_spark.sql(spark, sql).collect()]
            assert ranks == [row["rank"] for row in json.loads(place.kymo("query", "-f", "json", "lake/large", sql).stdout)], name
            assert ranks == ([faults[name]] if name in faults else list(range(8, RANKS, 8))), name
    finally:
        kymo_spark.attach(spark, place.path / "lake/a")


def test_losses_are_equal(place, spark):
    sql = """SELECT table_name, sum(emitted) AS emitted, sum(in_lake) AS in_lake, sum(lost) AS lost, sum(dropped) AS dropped,
        sum(waiting) AS waiting, sum(CASE WHEN emitted = in_lake + lost + dropped + waiting THEN 0 ELSE 1 END) AS wrong
        FROM kymo.flushes GROUP BY table_name ORDER BY table_name"""
    ours = duck(place, sql)
    compare(ours, kymo_spark.sql(spark, sql).collect(), sql)
    assert ours and not any(row[-1] for row in ours)


def fuzzed(chance):
    number = chance.choice(["duration_ns", "start_ns", "step", "rank", "data_ns", "optimizer_ns"])
    group = chance.choice(["rank", "host", "step", "name", "pid", "data_ns"])
    total = chance.choice(
        [
            f"count({number})",
            f"min({number})",
            f"max({number})",
            f"avg({number})",
            f"median({number})",
            f"CAST(sum({number}) AS BIGINT)",
            f"max_by(rank, {number} * 1000 + rank)",
            f"count(DISTINCT {number})",
            f"round(avg({number}) / 1e6, 3)",
            f"sum(CASE WHEN {number} > 5 THEN 1 ELSE 0 END)",
            f"concat('x', min({number}), max(data_ns))",
            f"max({number}) / 7",
            "coalesce(max(data_ns), -1)",
            # Outside of the portable subset: these have to be refused.
            f"list({number} ORDER BY step)",
            f"CAST(avg({number}) AS BIGINT)",
            f"sum({number})::BIGINT",
            f"quantile({number}, 0.3)",
            f"first({number})",
            f"max({number}) % 7",
            f"max({number}) // 7",
            "string_agg(name, ',')",
            "any_value(name)",
        ]
    )
    where = chance.choice(
        [
            "",
            "WHERE step > 20",
            "WHERE data_ns IS NULL",
            f"WHERE {number} BETWEEN 3 AND 1000000",
            "WHERE name LIKE '%a%'",
            "WHERE rank IN (1, 5) OR step < 10",
        ]
    )
    tail = chance.choice(
        [f"ORDER BY {group}", f"ORDER BY v DESC, {group}", f"ORDER BY {group} DESC LIMIT 7", "LIMIT 5", f"ORDER BY {group} LIMIT 3"]
    )
    return f"SELECT {group}, {total} AS v FROM trace.steps {where} GROUP BY {group} {tail}"


def test_no_fuzzed_query_is_silently_different(place, spark):
    chance = random.Random(11)
    answered = refused = 0
    for _ in range(100):
        sql = fuzzed(chance)
        try:
            theirs = kymo_spark.sql(spark, sql).collect()
        except kymo_spark.Refused:
            refused += 1
            continue
        compare(duck(place, sql), theirs, sql)
        answered += 1
    assert answered > 30 and refused > 20, (answered, refused)


@pytest.mark.parametrize(
    "sql, why",
    [
        ("FROM trace.steps", "must begin with SELECT"),
        ("SELECT rank FROM trace.steps QUALIFY row_number() OVER (ORDER BY step) = 1", "QUALIFY"),
        ("SELECT list(step ORDER BY step) FROM trace.steps", "list()"),
        ("SELECT first(step) FROM trace.steps", "first()"),
        ("SELECT left(name, 2) FROM trace.steps", "left()"),
        ("SELECT CAST(avg(step) AS BIGINT) FROM trace.steps", "truncates"),
        ("SELECT rank FROM trace.steps LIMIT 5", "LIMIT without ORDER BY"),
        ('SELECT "rank" FROM trace.steps', "takes it for a text"),
        ("SELECT step // 2 FROM trace.steps", "//"),
        ("SELECT step::INT FROM trace.steps", "::TYPE"),
    ],
)
def test_what_is_not_portable_is_refused_by_name(sql, why):
    with pytest.raises(kymo_spark.Refused, match=re.escape(why)):
        kymo_spark.portable(sql)


def test_a_foreign_file_in_a_table_does_not_reach_spark(place, spark):
    where = place.path / "lake/trace.steps/run=a"
    rows = spark.sql("SELECT count(*) FROM trace.steps").collect()[0][0]
    (where / "foreign.parquet").write_bytes(b"PAR1 no")
    try:
        kymo_spark.attach(spark, place.path / "lake/a")
        assert spark.sql("SELECT count(*) FROM trace.steps").collect()[0][0] == rows
        compare(
            duck(place, "SELECT text FROM kymo.problems ORDER BY text"),
            kymo_spark.sql(spark, "SELECT text FROM kymo.problems ORDER BY text").collect(),
            "problems",
        )
        assert any("foreign.parquet is left out" in row[0] for row in spark.sql("SELECT text FROM kymo.problems").collect())
    finally:
        (where / "foreign.parquet").unlink()
        kymo_spark.attach(spark, place.path / "lake/a")
    assert spark.sql("SELECT count(*) FROM trace.steps").collect()[0][0] == rows


def test_a_worker_that_is_killed_in_mid_query_changes_no_answer(place, spark, cluster):
    sql = (
        "SELECT count(*) AS n, sum(a.duration_ns % 1000 + b.duration_ns % 1000 + c.step) AS s FROM trace.steps a "
        "CROSS JOIN trace.steps b "
        "CROSS JOIN (SELECT step FROM trace.steps WHERE rank < 2 AND step < 20) c"
    )
    ours = duck(place, f"SELECT n, s::BIGINT FROM ({sql})")
    # Its executors, too: the worker's processes are of one group.
    import threading

    killed = threading.Timer(1.5, lambda: os.killpg(cluster.children[1].pid, signal.SIGKILL))
    killed.start()
    theirs = [list(row) for row in spark.sql(sql).collect()]
    killed.join()
    compare(ours, theirs, "after a killed worker")
    cluster.worker(0)
