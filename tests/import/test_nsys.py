"""kymo import on SQLite files with the schema of nsys, made here, and on real ones."""
import os
import pathlib
import sqlite3
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_import import KYMO, ROOT, Kymo  # noqa: E402

TRACES = pathlib.Path(os.environ.get("KYMO_TRACES", ROOT.parent / "shared" / "traces")) / "nsys"
BASE_NS = 1_700_000_000_000_000_000
PIDS = {101: 0, 102: 1}  # and their devices
MS = 1_000_000

SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, text TEXT,
    globalTid INTEGER, textId INTEGER, domainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER, graphId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
    copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL,
    bytes INTEGER NOT NULL, memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL,
    eventId INTEGER NOT NULL);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL);
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER NOT NULL, globalPid INTEGER, deviceId INTEGER, bytes INTEGER,
    memoryOperationType INTEGER, memKind INTEGER);
"""


class Strings(dict):
    def __missing__(self, text):
        self[text] = len(self) + 10
        return self[text]


def fill(db):
    """Two processes with equal correlations, each with a step of work on a device of its own."""
    strings = Strings()
    db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, '', '')", [BASE_NS])
    db.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, '', 'AWS_TOKEN', 0, 'secret')")
    for pid, device in PIDS.items():
        vid, at = 1 << 48, device * MS
        process, thread = vid | pid << 24, vid | pid << 24 | pid
        db.execute("INSERT INTO PROCESSES VALUES (?, ?, 'train')", [process, pid])
        db.execute("INSERT INTO ThreadNames VALUES (?, 20, ?)", [strings["main"], thread])
        nvtx = "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, NULL, ?, ?, ?, 0)"
        db.execute(nvtx, [at, at + 9 * MS, 59, None, thread, strings["ProfilerStep#3"]])
        db.execute(nvtx, [at + MS, at + 3 * MS, 59, "aten::mm, seq = 7, op_id = 55", thread, None])
        db.execute(nvtx, [at + MS, None, 60, "never ends", thread, None])
        db.execute(nvtx, [at + 5 * MS, None, 34, 'mark "x" \\ \n', thread, None])
        db.execute(nvtx, [0, None, 75, "my domain", thread, None])
        call = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?, 0, NULL)"
        db.execute(call, [at + 1_100_001, at + 1_200_000, 0, thread, 1, strings["cudaLaunchKernel_v7000"]])
        db.execute(call, [at + 3 * MS, at + 3_100_000, 0, thread, 2, strings["cudaMemcpyAsync_v3020"]])
        db.execute(call, [at + 4 * MS, at + 8 * MS, 0, thread, 3, strings["cudaStreamSynchronize_v3020"]])
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 1, 7, 1, ?, ?, ?, 1, NULL)",
                   [at + 2 * MS, at + 5_000_003, device, process, strings["void gemm<float>(float*)"], strings["gemm"]])
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 1, 9, 99, ?, ?, ?, 1, NULL)",
                   [at + 5 * MS, at + 6 * MS, device, process, strings["ncclDevKernel_AllReduce_Sum_f32"], strings["nccl"]])
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, 1, 7, 2, ?, 4096, 1, 0, 2)",
                   [at + 6 * MS, at + 7 * MS, device, process])
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (?, ?, ?, 1, 7, 0, ?, 0, 64, 2)",
                   [at + 7 * MS, at + 7_100_000, device, process])
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (?, ?, ?, 1, 7, 3, ?, 3, 0)",
                   [at + 4 * MS, at + 8 * MS, device, process])
        db.execute("INSERT INTO OSRT_API VALUES (?, ?, ?, ?)", [at + 8_100_000, at + 8_200_000, thread, strings["write"]])
        db.execute("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?, ?, ?, 1000, 0, 2)", [at + 1, process, device])
        db.execute("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?, ?, ?, 400, 1, 2)", [at + 2, process, device])
    for text, number in strings.items():
        db.execute("INSERT INTO StringIds VALUES (?, ?)", [number, text])


def make(path, more="", schema=SCHEMA, filled=True):
    db = sqlite3.connect(path)
    db.executescript(schema)
    if filled:
        fill(db)
    db.executescript(more)
    db.commit()
    db.close()
    return path


def run(kymo, *words):
    return subprocess.run([KYMO, *words], capture_output=True, text=True, cwd=kymo.home, env=kymo.env, timeout=120)


@pytest.fixture(scope="module")
def kymo(tmp_path_factory):
    """With probe, a recording of probe.sqlite; skipped if this kymo does not read such files."""
    kymo = Kymo(tmp_path_factory.mktemp("nsys"))
    make(kymo.home / "probe.sqlite")
    done = run(kymo, "import", "probe.sqlite", "-o", "probe")
    if "built without sqlite3.h" in done.stderr:
        pytest.skip("this kymo was built without sqlite3.h")
    assert done.returncode == 0, done.stderr
    return kymo


# ---- rows ------------------------------------------------------------------------------------------------------------------


def test_rows_of_an_export(kymo):
    assert kymo.rows("probe", "SELECT pid, tid, thread FROM kymo.threads ORDER BY pid") == [
        {"pid": pid, "tid": pid, "thread": "main"} for pid in PIDS]
    assert kymo.value("probe", "SELECT started_unix_ns FROM kymo.runs") == BASE_NS
    zones = kymo.rows("probe", "SELECT source, name, start_ns, duration_ns, depth FROM trace.zones WHERE pid = 101 ORDER BY start_ns")
    assert [tuple(row.values()) for row in zones] == [
        ("mark", "ProfilerStep#3", 0, 9 * MS, 0), ("op", "aten::mm", MS, 2 * MS, 1),
        ("device", "cudaLaunchKernel", 1_100_001, 99_999, 2), ("device", "cudaMemcpyAsync", 3 * MS, 100_000, 1),
        ("device", "cudaStreamSynchronize", 4 * MS, 4 * MS, 1), ("mark", "write", 8_100_000, 100_000, 1)]
    assert kymo.rows("probe", "SELECT step, start_ns FROM trace.steps ORDER BY start_ns") == [
        {"step": 3, "start_ns": 0}, {"step": 3, "start_ns": MS}]
    assert kymo.rows("probe", "SELECT DISTINCT name FROM trace.marks") == [{"name": 'mark "x" \\ \n'}]
    assert kymo.rows("probe", "SELECT bytes, live_bytes FROM device.memory WHERE pid = 101 ORDER BY ts_ns") == [
        {"bytes": 1000, "live_bytes": 1000}, {"bytes": 400, "live_bytes": 600}]
    assert kymo.rows("probe", "SELECT became, sum(events)::BIGINT AS n FROM kymo.imports WHERE became LIKE 'skipped%' GROUP BY 1") == [
        {"became": "skipped: a begin without an end", "n": 2}]


def test_equal_correlations_of_processes_stay_apart(kymo):
    rows = kymo.rows("probe", """SELECT pid, device, queue, kind, name, queued_ns, start_ns, end_ns, zone, bytes, call
        FROM device.ops WHERE kind <> 'wait' ORDER BY pid, start_ns""")
    for pid, device in PIDS.items():
        at = device * MS
        assert [tuple(row.values())[3:] for row in rows if row["pid"] == pid and row["device"] == f"GPU {device}"] == [
            ("kernel", "void gemm<float>(float*)", at + 1_100_001, at + 2 * MS, at + 5_000_003, "aten::mm", 0, "cudaLaunchKernel"),
            ("kernel", "ncclDevKernel_AllReduce_Sum_f32", None, at + 5 * MS, at + 6 * MS, None, 0, None),
            ("write", "Memcpy HtoD (Pageable -> Device)", at + 3 * MS, at + 6 * MS, at + 7 * MS, "ProfilerStep#3", 4096,
             "cudaMemcpyAsync"),
            ("fill", "Memset (Device)", None, at + 7 * MS, at + 7_100_000, None, 64, None)]
    assert kymo.rows("probe", "SELECT pid, device, queue, duration_ns FROM device.waits ORDER BY pid") == [
        {"pid": pid, "device": f"GPU {device}", "queue": "stream 7", "duration_ns": 4 * MS} for pid, device in PIDS.items()]
    assert kymo.rows("probe", "SELECT op, count(*) AS n FROM dist.collectives GROUP BY 1") == [{"op": "all_reduce", "n": 2}]


def test_the_environment_is_not_read(kymo):
    assert not [path for path in (kymo.home / "probe").rglob("*") if path.is_file() and b"secret" in path.read_bytes()]


def test_commands_take_an_export_directly(kymo):
    assert kymo.value("probe.sqlite", "SELECT count(*) FROM device.waits") == 2


@pytest.mark.skipif(not TRACES.is_dir(), reason=f"no exports of nsys in {TRACES}; set KYMO_TRACES")
@pytest.mark.parametrize("name", ["mfu_2gpu_after", "mfu_2gpu_before", "mock"])
def test_real_exports_equal_what_sqlite_counts(kymo, name):
    path = TRACES / f"{name}.sqlite"
    kymo("import", path, "-o", "run", "--force")
    db = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)

    def theirs(table, group="deviceId"):
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [table]).fetchone():
            return []
        return db.execute(f"SELECT (globalPid >> 24) & 0xffffff, {group}, count(*), sum(end - start), min(start) FROM {table} "
                          "GROUP BY 1, 2 ORDER BY 1, 2").fetchall()

    def ours(kinds):
        first = db.execute("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME").fetchone()[0]
        began = kymo.value("run", "SELECT started_unix_ns FROM kymo.runs") - first
        rows = kymo.rows("run", f"""SELECT pid, device[5:]::INTEGER AS device, count(*) AS n, sum(end_ns - start_ns)::BIGINT AS ns,
            min(start_ns) + {began} AS first FROM device.ops WHERE kind IN ({kinds}) GROUP BY ALL ORDER BY ALL""")
        return [tuple(row.values()) for row in rows]

    assert ours("'kernel'") == theirs("CUPTI_ACTIVITY_KIND_KERNEL")
    assert ours("'read', 'write', 'copy'") == theirs("CUPTI_ACTIVITY_KIND_MEMCPY")
    assert ours("'fill'") == theirs("CUPTI_ACTIVITY_KIND_MEMSET")
    calls = db.execute("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()
    assert tuple(kymo.rows("run", "SELECT count(*) AS n, sum(duration_ns)::BIGINT AS ns FROM trace.zones WHERE source = 'device'")[0]
                 .values()) == calls
    joined = db.execute("""SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE EXISTS (
        SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId
        AND r.globalTid >> 24 = k.globalPid >> 24)""").fetchone()[0]
    assert kymo.value("run", "SELECT count(queued_ns) FROM device.ops WHERE kind = 'kernel'") == joined
    assert kymo.rows("run", "FROM kymo.imports WHERE became LIKE 'skipped%'") == []


# ---- bad input -------------------------------------------------------------------------------------------------------------


HOSTILE = {
    "view": ("DROP TABLE OSRT_API; CREATE VIEW OSRT_API AS SELECT 1 AS start, 2 AS end, 3 AS globalTid, 4 AS nameId;",
             "its OSRT_API is not a plain table"),
    "recursive view": ("DROP TABLE NVTX_EVENTS; CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE r(start) AS (SELECT 1 UNION ALL "
                       "SELECT start + 1 FROM r) SELECT start FROM r;", "its NVTX_EVENTS is not a plain table"),
    "virtual table": ("DROP TABLE OSRT_API; CREATE VIRTUAL TABLE OSRT_API USING fts5(start, globalTid, nameId);",
                      "its OSRT_API is not a plain table"),
    "computed column": ("DROP TABLE OSRT_API; CREATE TABLE OSRT_API (a INTEGER, start INTEGER GENERATED ALWAYS AS (a + 1), "
                        "end INTEGER, globalTid INTEGER, nameId INTEGER);", "column start of its OSRT_API is computed"),
    "no tables": ("", "it has no tables of nsys"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_schema_is_refused(kymo, what):
    more, sentence = HOSTILE[what]
    (kymo.home / "bad.sqlite").unlink(missing_ok=True)
    make(kymo.home / "bad.sqlite", more, *(("CREATE TABLE other (a);", False) if what == "no tables" else ()))
    done = kymo("import", "bad.sqlite", "-o", "refused", status=1)
    assert sentence in done.stderr and done.stderr.count("\n") == 1
    assert not (kymo.home / "refused").exists()


def test_triggers_indexes_and_writing_have_no_effect(kymo):
    path = make(kymo.home / "odd.sqlite", """
        CREATE TRIGGER t AFTER INSERT ON OSRT_API BEGIN DELETE FROM NVTX_EVENTS; END;
        CREATE INDEX i ON OSRT_API (abs(start)) WHERE start > 0;
        ALTER TABLE OSRT_API ADD COLUMN unused INTEGER DEFAULT 5;""")
    before = path.read_bytes()
    path.chmod(0o400)
    kymo("import", path, "-o", "run", "--force")
    assert path.read_bytes() == before
    assert sorted(file.name for file in kymo.home.glob("odd.sqlite*")) == ["odd.sqlite"]


def test_values_of_other_types_are_counted_not_obeyed(kymo):
    make(kymo.home / "types.sqlite", f"""
        INSERT INTO OSRT_API VALUES ('soon', 'later', 'x', 'y'), (x'0011', 5, NULL, 1.5), (1e30, 2, 3, 4),
            ({2**63 - 1}, {-2**63}, 5, 6), (5, {-2**62}, 1, 1);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 'a', x'00', 1.5, -7, {2**63 - 1}, 'name', 0, 0, {2**40});
        INSERT INTO StringIds VALUES (-5, x'ff00ff');
        INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, NULL, zeroblob(20000000), NULL, NULL, NULL);
        INSERT INTO NVTX_EVENTS VALUES (1, 2, 9999, NULL, 'unknown type', NULL, NULL, NULL);""")
    done = kymo("import", "types.sqlite", "-o", "run", "--force")
    assert "its table NVTX_EVENTS can be read only in part: string or blob too big" in done.stderr
    rows = {row["became"]: row["n"] for row in kymo.rows("run", """SELECT became, sum(events)::BIGINT AS n FROM kymo.imports
        WHERE became LIKE 'skipped%' GROUP BY 1""")}
    assert rows["skipped: no time"] == 3 and rows["skipped: a time out of range"] == 2


def test_a_name_that_is_used_by_very_many_rows_does_not_expand_without_end(kymo):
    """4 KB of name for 20 bytes of a row: 300 times the size of the file is the limit."""
    make(kymo.home / "bomb.sqlite", """
        INSERT INTO StringIds VALUES (1, hex(zeroblob(3000)));
        WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 30000)
        INSERT INTO OSRT_API SELECT n, n + 1, 1, 1 FROM r;""")
    done = kymo("import", "bomb.sqlite", "-o", "run", "--force")
    size = (kymo.home / "bomb.sqlite").stat().st_size
    assert "expands to more than" in done.stderr or 30000 * 4096 < 300 * size


@pytest.mark.parametrize("cut", [16, 100, 1000, 4096, 20000, 0.5, 0.9])
def test_truncated_and_damaged_files(kymo, cut):
    data = (kymo.home / "probe.sqlite").read_bytes()
    at = int(len(data) * cut) if isinstance(cut, float) else cut
    for name, bad in {"cut": data[:at], "zeroed": data[:at] + bytes(4096) + data[at + 4096:]}.items():
        (kymo.home / f"{name}.sqlite").write_bytes(bad)
        done = run(kymo, "import", f"{name}.sqlite", "-o", name, "--force")
        assert done.returncode in (0, 1) and done.stderr.count("\n") <= 3, done.stderr
        assert "signal" not in done.stderr
