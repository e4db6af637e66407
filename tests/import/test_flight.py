"""kymo import on dumps of PyTorch's flight recorder: JSON and pickles, made here and by torch."""
import json
import os
import pathlib
import pickle
import pickletools
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_import import ROOT, Kymo  # noqa: E402

TRACES = pathlib.Path(os.environ.get("KYMO_TRACES", ROOT.parent / "shared" / "traces")) / "gen-gloo2"
BASE_NS = 1_700_000_000_000_000_000
MS = 1_000_000


@pytest.fixture
def kymo(tmp_path):
    return Kymo(tmp_path)


def entry(seq, op="nccl:all_reduce", state="completed", sizes=((4, 8),), dtypes=("Float",), at=0, **more):
    created = BASE_NS + seq * MS + at
    return {"record_id": seq - 1, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": seq, "p2p_seq_id": 0,
            "op_id": seq, "profiling_name": op, "time_created_ns": created, "input_sizes": [list(size) for size in sizes],
            "input_dtypes": list(dtypes), "output_sizes": [], "output_dtypes": [], "state": state,
            "time_discovered_started_ns": created + 1000 if state != "scheduled" else None,
            "time_discovered_completed_ns": created + 2000 if state == "completed" else None,
            "retired": state == "completed", "timeout_ms": 600000, "is_p2p": False, "thread_id": "1234", "thread_name": "main",
            "frames": [{"name": "all_reduce", "filename": "/x/torch/distributed/c10d.py", "line": 5},
                       {"name": "step", "filename": "/home/me/train.py", "line": 12}], **more}


def dump(entries, ranks=4):
    return {"version": "2.10", "comm_lib_version": "2.21.5", "pg_status": {0: {"last_enqueued_collective": len(entries)}},
            "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))}}, "entries": entries}


def write(kymo, rank, made, form="pickle"):
    """As PyTorch names and writes them: protocol 2."""
    path = kymo.home / (f"nccl_trace_rank_{rank}" if form == "pickle" else f"fr_rank{rank}.json")
    path.write_bytes(pickle.dumps(made, 2) if form == "pickle" else json.dumps(made).encode())
    return path


# ---- rows ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_rows_of_a_dump(kymo, form):
    p2p = entry(4, "nccl:send 2->1", "started", p2p_seq_id=9, is_p2p=True)
    path = write(kymo, 2, dump([entry(1), entry(2, "nccl:_all_gather_base", dtypes=("BFloat16",)),
                                entry(3, "nccl:broadcast", "scheduled"), p2p]), form)
    kymo("import", path, "-o", "run")
    rows = kymo.rows("run", """SELECT rank, group_name, seq, op, bytes, dtype, enqueue_ns, start_ns, end_ns, state, p2p, peer, zone,
        group_size, members, thread FROM dist.collectives ORDER BY enqueue_ns""")
    same = {"rank": 2, "group_name": "0", "zone": "step (train.py:12)", "group_size": 4, "members": "0,1,2,3", "thread": "main"}
    assert rows == [
        {**same, "seq": 1, "op": "all_reduce", "bytes": 128, "dtype": "float32", "enqueue_ns": 0, "start_ns": 1000, "end_ns": 2000,
         "state": "completed", "p2p": False, "peer": None},
        {**same, "seq": 2, "op": "all_gather", "bytes": 64, "dtype": "bfloat16", "enqueue_ns": MS, "start_ns": MS + 1000,
         "end_ns": MS + 2000, "state": "completed", "p2p": False, "peer": None},
        {**same, "seq": 3, "op": "broadcast", "bytes": 128, "dtype": "float32", "enqueue_ns": 2 * MS, "start_ns": None, "end_ns": None,
         "state": "scheduled", "p2p": False, "peer": None},
        {**same, "seq": 9, "op": "send", "bytes": 128, "dtype": "float32", "enqueue_ns": 3 * MS, "start_ns": 3 * MS + 1000,
         "end_ns": None, "state": "started", "p2p": True, "peer": 1}]
    assert kymo.rows("run", "SELECT category, events, became FROM kymo.imports") == [
        {"category": "flight recorder", "events": 4, "became": "dist.collectives"}]


def test_an_absent_rank_is_found(kymo):
    """Ranks 0, 1 and 3 wait in collective 6; rank 2 has stopped after 5."""
    for rank in range(4):
        last = [] if rank == 2 else [entry(6, state="started", at=rank)]
        write(kymo, rank, dump([entry(n, at=rank) for n in range(1, 6)] + last))
    kymo("import", kymo.home, "-o", "job")
    assert kymo.rows("job", "SELECT rank, collectives, last_seq FROM dist.ranks") == [
        {"rank": rank, "collectives": 5 if rank == 2 else 6, "last_seq": 5 if rank == 2 else 6} for rank in range(4)]
    report = kymo("report", "job").stdout
    assert "Rank 2 (ended) is absent: the other ranks wait for it in all_reduce" in " ".join(report.split())


def test_a_rank_that_wrote_no_dump_is_found(kymo):
    for rank in (0, 1, 3):
        write(kymo, rank, dump([entry(1), entry(2, state="started", at=rank)]))
    kymo("import", kymo.home, "-o", "job")
    assert kymo.rows("job", "SELECT rank FROM dist.ranks WHERE state = 'wrote nothing'") == [{"rank": 2}]
    assert "Rank 2 (wrote nothing) is absent" in " ".join(kymo("report", "job").stdout.split())


def test_desync_names_the_rank_and_both_callers(kymo):
    other = [{"name": "evaluate", "filename": "/home/me/eval.py", "line": 7}]
    for rank in range(4):
        third = {1: entry(3, "nccl:broadcast", frames=other), 3: entry(3, sizes=((4, 9),))}.get(rank, entry(3))
        write(kymo, rank, dump([entry(1), entry(2, "nccl:all_to_all", sizes=((rank, 2),)), third]))
    kymo("import", kymo.home, "-o", "job")
    columns = "seq, rank, differs, op, bytes, zone, expected_op, expected_bytes, expected_zone"
    assert kymo.rows("job", f"SELECT {columns} FROM dist.desync") == [
        {"seq": 3, "rank": 1, "differs": "op", "op": "broadcast", "bytes": 128, "zone": "evaluate (eval.py:7)",
         "expected_op": "all_reduce", "expected_bytes": 128, "expected_zone": "step (train.py:12)"},
        {"seq": 3, "rank": 3, "differs": "bytes", "op": "all_reduce", "bytes": 144, "zone": "step (train.py:12)",
         "expected_op": "all_reduce", "expected_bytes": 128, "expected_zone": "step (train.py:12)"}]


@pytest.mark.skipif(not TRACES.is_dir(), reason=f"no dumps of torch in {TRACES}; set KYMO_TRACES")
def test_pickle_and_json_of_torch_tell_the_same(kymo):
    kymo("import", *sorted(TRACES.glob("fr_rank*.pickle")), "-o", "pickles")
    kymo("import", *sorted(TRACES.glob("fr_rank*.json")), "-o", "texts")
    sql = "SELECT * EXCLUDE (zone) FROM dist.collectives ORDER BY rank, seq"
    rows = kymo.rows("pickles", sql)
    assert rows == kymo.rows("texts", sql) and len(rows) == 38
    assert {row["state"] for row in rows} == {"completed"}
    with open(TRACES / "fr_rank0.pickle", "rb") as file:
        theirs = pickle.load(file)["entries"]
    began = kymo.value("pickles", "SELECT started_unix_ns FROM kymo.runs")
    assert [row["enqueue_ns"] + began for row in rows if row["rank"] == 0] == [e["time_created_ns"] for e in theirs]
    assert kymo.rows("pickles", "FROM dist.desync") == []


# ---- bad input -------------------------------------------------------------------------------------------------------------


class Executes:
    def __reduce__(self):
        return (os.system, ("touch executed",))


def test_nothing_of_a_pickle_is_executed(kymo):
    for protocol in range(2, 6):
        path = kymo.home / "bad.pickle"
        path.write_bytes(pickle.dumps(dump([entry(1), Executes()]), protocol))
        done = kymo("import", path, "-o", "run", status=1)
        assert ("GLOBAL (0x63)" if protocol < 4 else "STACK_GLOBAL (0x93)") in done.stderr and "nothing is executed" in done.stderr
        assert not (kymo.home / "executed").exists() and not (kymo.home / "run").exists()


PLAIN = {"PROTO", "FRAME", "STOP", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT",
         "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "MARK", "EMPTY_DICT",
         "EMPTY_LIST", "EMPTY_TUPLE", "TUPLE", "LIST", "DICT", "TUPLE1", "TUPLE2", "TUPLE3", "APPEND", "APPENDS", "SETITEM",
         "SETITEMS", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET"}


def test_every_other_opcode_is_refused_by_its_name(kymo):
    path = kymo.home / "bad.pickle"
    for opcode in pickletools.opcodes:
        if opcode.name in PLAIN:
            continue
        path.write_bytes(b"\x80\x02}" + opcode.code.encode("latin1") + b"\x01" * 16 + b".")
        done = kymo("import", path, "-o", "run", status=1)
        assert f"is {opcode.name} (0x" in done.stderr, opcode.name


def test_plain_data_of_every_protocol(kymo):
    made = dump([entry(n, "ünï", extra=[1.5, None, True, 2**70, -1, -200, 70000, -2**40, (), {}, [[]]]) for n in range(1, 300)])
    for protocol in range(2, 6):
        path = kymo.home / "dump.pickle"
        path.write_bytes(pickle.dumps(made, protocol))
        kymo("import", path, "-o", "run", "--force")
        assert kymo.rows("run", "SELECT count(*) AS n, max(seq) AS last, any_value(op) AS op FROM dist.collectives") == [
            {"n": 299, "last": 299, "op": "ünï"}]


def laughs():
    """Each list holds the one before ten times: 10^20 values."""
    value = ["ha"] * 10
    for _ in range(20):
        value = [value] * 10
    return pickle.dumps({"entries": value}, 2)


def endless():
    value = []
    value.append(value)
    return pickle.dumps({"entries": value}, 2)


@pytest.mark.parametrize("data, sentence", [
    (laughs(), "expand to more than 64 times"), (endless(), "nested deeper than 64"),
    (pickle.dumps(dump([entry(1)]), 2)[:-40], "it is truncated"), (b"\x80\x02X\xff\xff\xff\xffabc.", "it is truncated"),
    (b"\x80\x02].", "without entries of a flight recorder"), (b"\x80\x02}u.", "it is damaged"), (b"\x80\x02}h\x05.", "it is damaged"),
    (b"\x80\x02}a.", "it is damaged"), (b"\x80\x02" + b"(" * 1000 + b".", "it is damaged"),
    (b"\x80\x02]]s.", "it is damaged"), (b"\x80\x02}(]]u.", "neither a text nor a number")])
def test_a_bad_pickle_is_an_error(kymo, data, sentence):
    (kymo.home / "bad.pickle").write_bytes(data)
    done = kymo("import", "bad.pickle", "-o", "run", status=1)
    assert sentence in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_strange_values_of_a_dump_are_counted_not_obeyed(kymo):
    made = dump([entry(1), 7, None, {}, entry(2, sizes=((2**40, 2**40),)), entry(3, time_created_ns=2**63), entry(-5),
                 entry(4, profiling_name=5, process_group=[], state=None, frames="x", thread_id=None, input_sizes="none")])
    write(kymo, 0, made, "json")
    kymo("import", "fr_rank0.json", "-o", "run")
    rows = {row["became"]: row["n"] for row in kymo.rows("run", "SELECT became, sum(events)::BIGINT AS n FROM kymo.imports GROUP BY 1")}
    assert rows == {"dist.collectives": 4, "skipped: not an event": 2, "skipped: no time": 1,
                    "skipped: a time out of range": 1}
