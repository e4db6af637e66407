"""Writes the lake of a job of many ranks without running one: the files that a flush of each host leaves, with chosen faults.

    made_lake.py KYMO LAKE JOB [WORD=NUMBER]...

    ranks=1000 per_host=8 steps=100 seed=1
    zones=0 samples=0   rows for each rank and step, to fill trace.zones and python.samples
    merged=1            a file for 1,000 ranks of each table, as after compaction
    clocks=1            hosts but the first have offsets of up to 5 s and drifts of up to 100 ppm
    straggler=RANK      comes 3 ms late to each collective
    absent=RANK         wrote nothing
    hung=RANK           does not come to the last collective: all others wait in it
    leak=RANK           grows by 5 MB/s
    losses=RANK         1,000 of its rows were overwritten before a flush
"""
import functools
import json
import pathlib
import subprocess
import sys
import tempfile

import duckdb

WORDS = {"ranks": 1000, "per_host": 8, "steps": 100, "seed": 1, "zones": 0, "samples": 0, "merged": 0, "clocks": 0,
         "straggler": -1, "absent": -1, "hung": -1, "leak": -1, "losses": -1}


@functools.cache
def columns_of(kymo):
    """The columns of all tables, as an empty lake has them."""
    with tempfile.TemporaryDirectory() as folder:
        job = pathlib.Path(folder, "x")
        job.write_text("KYMOLAKE 1\nrun x\nprogram made\nepoch_unix_ns 1\n")
        sql = "SELECT table_schema || '.' || table_name AS t, column_name AS c, data_type AS k FROM information_schema.columns " \
            "WHERE table_catalog = 'rec' ORDER BY table_schema, table_name, ordinal_position"
        done = subprocess.run([kymo, "query", "-f", "json", job, sql], capture_output=True, text=True, check=True)
    tables = {}
    for row in json.loads(done.stdout):
        tables.setdefault(row["t"], []).append((row["c"], row["k"]))
    return tables


def footer(columns):
    value = 0xCBF29CE484222325
    for byte in "".join(f"{name} {kind}\n" for name, kind in columns).encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return f"kymo lake 1 columns {value:016x}"


FLUSHES = [("table_name", "VARCHAR"), ("stream", "VARCHAR"), ("emitted", "BIGINT"), ("in_lake", "BIGINT"), ("lost", "BIGINT"),
           ("waiting", "BIGINT"), ("dropped", "BIGINT"), ("next_row", "BIGINT"), ("pid", "INTEGER"), ("rank", "INTEGER"),
           ("host", "VARCHAR"), ("writer", "VARCHAR"), ("flushed_unix_ns", "BIGINT")]

BASE = """
CREATE MACRO u(a, b, c) AS (hash(a, b, c + {seed} * 1000) % 1000000007) / 1000000007.0;
CREATE TABLE ranks AS SELECT r::INTEGER AS rank, 'host' || (r // {per_host}) AS host, (100 + r % {per_host})::INTEGER AS pid,
    r // {per_host} AS number, {clocks} * (r // {per_host} > 0)::INT * (u(r // {per_host}, 0, 1) - 0.5) * 10e9 AS off,
    {clocks} * (r // {per_host} > 0)::INT * (u(r // {per_host}, 0, 2) - 0.5) * 2e-4 AS drift
    FROM range({ranks}) t(r) WHERE r <> {absent};
CREATE TABLE work AS SELECT rank, s::INTEGER AS step, 10e6 - ln(1 - u(rank, s,
        3)) * 3e5 + CASE WHEN rank = {straggler} THEN 3e6 ELSE 0 END AS ns
    FROM ranks, range(1, {steps} + 1) t(s) WHERE NOT (rank = {hung} AND s = {steps});
CREATE TABLE times AS SELECT step, most, sum(most + 2e5) OVER (ORDER BY step) - most AS start
    FROM (SELECT step, max(ns) AS most FROM work GROUP BY step);
CREATE TABLE calls AS SELECT rank, host, pid, number, step,
    (start * (1 + drift) + off)::BIGINT AS start_ns, ((start + ns) * (1 + drift) + off)::BIGINT AS arrival_ns,
    CASE WHEN {hung} < 0 OR step < {steps}
        THEN ((start + most + 5000 - ln(1 - u(rank, step, 4)) * 2e4) * (1 + drift) + off)::BIGINT END AS end_ns
    FROM work JOIN times USING (step) JOIN ranks USING (rank);
"""

# What each table has; other columns are NULL.
ROWS = {
    "dist.ranks": """SELECT rank, host, pid, (rank % {per_host})::INTEGER AS local_rank, {ranks} AS ranks, 0 AS attempt,
        'ended' AS state, 0 AS first_ns,
        0 AS last_ns, count(end_ns) AS collectives, max(step) AS last_seq, number FROM calls GROUP BY rank, host, pid, number""",
    "dist.collectives": """SELECT rank, 'default_pg' AS group_name, step AS seq, 'all_reduce' AS op, 1048576 AS bytes,
        'float32' AS dtype,
        step, arrival_ns - 1000 AS enqueue_ns, arrival_ns AS start_ns, end_ns, false AS p2p, false AS async, false AS failed,
        arrival_ns, {ranks} AS group_size, pid, pid AS tid, 'MainThread' AS thread, host,
        CASE WHEN end_ns IS NULL THEN 'started' ELSE 'completed' END AS state, number FROM calls""",
    "trace.steps": """SELECT rank, host, pid, 'step' AS name, step, start_ns, end_ns - start_ns AS duration_ns, number
        FROM calls WHERE end_ns IS NOT NULL""",
    "host.process": """SELECT rank, host, pid, start_ns AS ts_ns, (1e9 + u(rank, step, 5) * 2e5
        +
        CASE WHEN rank = {leak} THEN 5e6 * (start_ns - min(start_ns) OVER (PARTITION BY rank)) / 1e9 ELSE 0 END)::BIGINT
        AS rss_bytes, number
        FROM calls""",
    "kymo.processes": "SELECT rank, host, pid, 'target' AS role, 'ended' AS state, {ranks} AS ranks, number FROM ranks",
    "kymo.runs": """SELECT host, 'made' AS program, min(pid) AS pid, 'ended' AS state, 1 AS started_unix_ns,
        (SELECT max(end_ns - start_ns) * {steps} FROM calls) AS duration_ns, 'all' AS kept, true AS supervised,
        '{job}' AS job, number
        FROM ranks GROUP BY host, number""",
    "kymo.streams": """SELECT 'trace.steps' AS table_name, rank, host, pid,
        count(end_ns) + (rank = {losses})::INT * 1000 AS emitted,
        count(end_ns) AS kept, (rank = {losses})::INT * 1000 AS overwritten, 0 AS dropped, number FROM calls GROUP BY rank,
        host, pid, number""",
    "kymo.flushes": """SELECT 'trace.steps' AS table_name, pid || '.1.0' AS stream,
        count(end_ns) + (rank = {losses})::INT * 1000 AS emitted,
        count(end_ns) AS in_lake, (rank = {losses})::INT * 1000 AS lost, 0 AS waiting, 0 AS dropped,
        count(end_ns) AS next_row, pid, rank, host,
        host || '-000000000000' AS writer, 1 AS flushed_unix_ns, number FROM calls GROUP BY rank, host, pid, number""",
    "trace.zones": """SELECT rank, host, pid, pid AS tid, 'MainThread' AS thread, ['forward', 'backward', 'optimizer',
        'data'][1 + z % 4] AS name,
        start_ns + z * 90000 AS start_ns, 80000 + (u(rank, step, z) * 9000)::BIGINT AS duration_ns, 1 AS depth, step,
        number FROM calls, range({zones}) t(z)""",
    "python.samples": """SELECT rank, host, pid, pid AS tid, start_ns + z * 400000 AS ts_ns, ['train',
        chr((97 + z % 8)::INT)] AS stack,
        chr((97 + z % 8)::INT) || ' (train.py:1)' AS place, 'period' AS cause, 400000 AS weight_ns, number FROM calls,
        range({samples}) t(z)""",
    "trace.regions": """SELECT rank, host, pid, 'c' AS source, 'region' || z AS name, {steps} AS count,
        (u(rank, z, 6) * 1e9)::BIGINT AS self_ns, (u(rank, z, 7) * 1e6)::BIGINT AS max_ns, number FROM ranks, range(12) t(z)""",
}


# Tables that a flush adds to: their files are named by their first row.
ADDED = ("dist.collectives", "trace.steps", "host.process", "trace.zones", "python.samples")
PART = 1000  # ranks whose rows are in memory at once


def write_files(db, folder, parts, mark, version):
    """A file of each part, a name and a condition; returns rows and bytes."""
    rows = size = 0
    for name, where in parts:
        many = db.execute(f"SELECT count(*) FROM one WHERE {where}").fetchone()[0]
        if not many:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.parquet"
        db.execute(f"COPY (SELECT * EXCLUDE number_ FROM one WHERE {where}) TO '{path}' "
                   f"(FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION {version}, KV_METADATA {{kymo: '{mark}'}})")
        rows += many
        size += path.stat().st_size
    return rows, size


def make(kymo, lake, job, **words):
    with_ = {**WORDS, **words, "job": job}
    tables = {**columns_of(str(kymo)), "kymo.flushes": FLUSHES}
    lake = pathlib.Path(lake)
    lake.mkdir(parents=True, exist_ok=True)
    db = duckdb.connect()
    db.execute(BASE.format(**with_))
    hosts = (with_["ranks"] + with_["per_host"] - 1) // with_["per_host"]
    each = max(PART // with_["per_host"], 1)
    rows = size = 0
    for table, sql in ROWS.items():
        given = db.execute(f"DESCRIBE {sql.format(**with_)}").fetchall()
        names = {row[0] for row in given} - {"number"}
        known = {name for name, _ in tables[table]}
        assert names <= known, (table, names - known)
        select = ", ".join((name if name in names else "NULL") + f'::{kind} AS "{name}"' for name, kind in tables[table])
        version = "v1" if any(kind == "DOUBLE" for _, kind in tables[table]) else "v2"
        mark = "kymo lake 1 columns 0000000000000000" if table == "kymo.flushes" else footer(tables[table])
        for first in range(0, hosts, each):
            numbers = range(first, min(first + each, hosts))
            db.execute(f"CREATE OR REPLACE TEMP TABLE one AS SELECT {select}, number AS number_ "
                       f"FROM ({sql.format(**with_)}) WHERE number BETWEEN {numbers[0]} AND {numbers[-1]} ORDER BY number_, pid")
            end = "-r0" if table in ADDED else ""
            parts = ([(f"compact-{first + 1:016x}", "true")] if with_["merged"]
                     else [(f"host{number}-000000000000{end}", f"number_ = {number}") for number in numbers])
            added = write_files(db, lake / table / f"run={job}", parts, mark, version)
            rows, size = rows + added[0], size + added[1]
    (lake / job).write_text(f"KYMOLAKE 1\nrun {job}\nprogram made\nepoch_unix_ns 1700000000000000000\n")
    return rows, size


if __name__ == "__main__":
    print(*make(sys.argv[1], sys.argv[2], sys.argv[3], **{word.split("=")[0]: int(word.split("=")[1]) for word in sys.argv[4:]}))
