"""kymo import on traces that are made here, by a generator and by torch.profiler."""
import gzip
import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_trace  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = ROOT / "build" / "kymo"
STEPS = 3


class Kymo:
    """kymo in a home of its own, so that nothing of the user's cache is seen."""

    def __init__(self, home):
        self.home = home
        self.env = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "XDG_STATE_HOME": str(home / "state"),
                    "KYMO_DIR": str(home / "live"), "LC_ALL": "C.UTF-8"}

    def __call__(self, *words, status=0):
        made = subprocess.run([KYMO, *map(str, words)], capture_output=True, text=True, timeout=120, env=self.env, cwd=self.home)
        assert status is None or made.returncode == status, made.stderr
        return made

    def rows(self, run, sql):
        return json.loads(self("query", run, "-f", "json", sql).stdout)

    def value(self, run, sql):
        (row,) = self.rows(run, sql)
        (value,) = row.values()
        return value

    def take(self, name, events, **more):
        """Imports events as a trace and returns the recording."""
        path = self.home / f"{name}.json"
        path.write_text(events if isinstance(events, str) else json.dumps({"traceEvents": events, **more}))
        self("import", path, "-o", self.home / name)
        return self.home / name


@pytest.fixture
def kymo(tmp_path):
    return Kymo(tmp_path)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A recording of a trace of three steps."""
    kymo = Kymo(tmp_path_factory.mktemp("made"))
    count = make_trace.write(kymo.home / "trace.json.gz", STEPS)
    kymo("import", "trace.json.gz", "-o", "run")
    return kymo, kymo.home / "run", count


def zone(name, start, dur, tid=1, pid=7, cat="x", **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": dur, "args": args}


# ---- rows ------------------------------------------------------------------------------------------------------------------


def test_every_event_is_counted_once(made):
    kymo, run, count = made
    assert kymo.value(run, "SELECT sum(events)::BIGINT FROM kymo.imports") == count
    assert kymo.rows(run, "FROM kymo.imports WHERE became LIKE 'skipped%'") == []
    assert kymo.rows(run, "FROM kymo.problems") == []


def test_times_are_exact(made):
    kymo, run, _ = made
    assert kymo.rows(run, "SELECT start_ns, duration_ns FROM trace.steps ORDER BY step") == [
        {"start_ns": step * make_trace.STEP_NS, "duration_ns": make_trace.STEP_NS} for step in range(STEPS)]
    assert kymo.value(run, "SELECT started_unix_ns FROM kymo.runs") == make_trace.BASE_NS


def test_zones_have_source_depth_file_and_line(made):
    kymo, run, _ = made
    assert kymo.rows(run, """SELECT source, name, file, line, depth FROM trace.zones
        WHERE step = 1 AND start_ns < 10150000 AND thread = 'thread 4711' ORDER BY start_ns, depth""") == [
        {"source": "mark", "name": "ProfilerStep#1", "file": None, "line": None, "depth": 0},
        {"source": "python", "name": "step", "file": "train.py", "line": 12, "depth": 1},
        {"source": "torch", "name": "Net_0", "file": None, "line": None, "depth": 2},
        {"source": "device", "name": "cudaMemcpyAsync", "file": None, "line": None, "depth": 3},
        {"source": "torch", "name": "Linear_0", "file": None, "line": None, "depth": 3},
        {"source": "op", "name": "aten::linear", "file": None, "line": None, "depth": 4},
        {"source": "op", "name": "aten::addmm", "file": None, "line": None, "depth": 5},
        {"source": "device", "name": "cudaLaunchKernel", "file": None, "line": None, "depth": 6}]


def test_viztracer_names_have_file_and_line(kymo):
    """VizTracer writes Chrome JSON with `function (file:line)`; functions in C have no place."""
    names = ["fib (/src/a (copy)/fib.py:12)", "builtins.len", "Net.<locals>.f (<frozen x>:3)", "odd (no place)", "odd (a.py:)",
             "(a.py:3)"]
    run = kymo.take("run", [zone(name, 10 * n, 5, cat="FEE") for n, name in enumerate(names)], viztracer_metadata={"version": "1.0"},
                    file_info={"files": {"/src/fib.py": ["import os\n", 1]}})
    assert [tuple(row.values()) for row in kymo.rows(run, "SELECT source, name, file, line FROM trace.zones ORDER BY start_ns")] == [
        ("python", "fib", "/src/a (copy)/fib.py", 12), ("python", "builtins.len", None, None),
        ("python", "Net.<locals>.f", "<frozen x>", 3), ("python", "odd (no place)", None, None),
        ("python", "odd (a.py:)", None, None), ("python", "(a.py:3)", None, None)]


def test_totals_are_those_of_the_rows(made):
    kymo, run, _ = made
    assert kymo.rows(run, """
        SELECT r.name FROM trace.regions r
        JOIN (SELECT name, source, count(*) AS n, sum(duration_ns) AS ns FROM trace.zones GROUP BY ALL) z USING (name, source)
        WHERE r.count <> z.n OR r.total_ns <> z.ns""") == []
    assert kymo.value(run, "SELECT self_ns FROM trace.regions WHERE name = 'aten::linear'") == STEPS * make_trace.LAYERS * 20_000


def test_kernels_have_the_module_of_forward_and_of_backward(made):
    kymo, run, _ = made
    assert kymo.rows(run, """SELECT name, count(*) AS n, count(DISTINCT module) AS modules FROM device.launches
        WHERE name LIKE 'ampere%' GROUP BY 1 ORDER BY 1""") == [
        {"name": "ampere_sgemm_128x64_nt", "n": STEPS * make_trace.LAYERS, "modules": make_trace.LAYERS},
        {"name": "ampere_sgemm_128x64_tn", "n": STEPS * make_trace.LAYERS, "modules": make_trace.LAYERS}]
    assert kymo.rows(run, """SELECT DISTINCT module, zone FROM device.launches
        WHERE name = 'ampere_sgemm_128x64_nt' AND step = 0 ORDER BY start_ns LIMIT 1""") == [
        {"module": f"Linear_{make_trace.LAYERS - 1}", "zone": "AddmmBackward0"}]


def test_backward_operators_are_linked_with_the_forward_operator_that_made_them(made):
    """The last forward operator with the sequence number, and the outermost backward one."""
    kymo, run, _ = made
    assert kymo.rows(run, """SELECT from_name, to_name, from_tid <> tid AS other_thread, count(*) AS n,
        count(DISTINCT sequence) AS sequences
        FROM trace.links GROUP BY ALL""") == [
        {"from_name": "aten::addmm", "to_name": "autograd::engine::evaluate_function: AddmmBackward0", "other_thread": True,
         "n": STEPS * make_trace.LAYERS, "sequences": STEPS * make_trace.LAYERS}]
    assert kymo.rows(run, """SELECT count(*) AS n FROM trace.links l
        JOIN trace.zones f ON f.start_ns = l.from_ns AND f.tid = l.from_tid AND f.name = l.from_name
        JOIN trace.zones b ON b.start_ns = l.to_ns AND b.tid = l.tid AND b.name = l.to_name""") == [{"n": STEPS * make_trace.LAYERS}]


def test_sequence_numbers_that_are_not_dense_take_no_memory(kymo):
    run = kymo.take("sparse", [zone("f", 0, 1, cat="cpu_op", **{"Sequence number": 7, "Fwd thread id": 0}),
                               zone("b", 5, 1, cat="cpu_op", **{"Sequence number": 4_000_000_000, "Fwd thread id": 1})])
    assert kymo.value(run, "SELECT count(*) FROM trace.links") == 0


def test_breakdown_overlap_and_steps(made):
    """Kernels of 90 µs and 120 µs do not overlap; all_reduce runs 3 ms from 6 ms on, above backward until 7.8 ms."""
    kymo, run, _ = made
    computed = STEPS * make_trace.LAYERS * (90_000 + 120_000)
    (row,) = kymo.rows(run, "FROM device.breakdown")
    assert row["computation_ns"] == computed and row["memory_ns"] == STEPS * 60_000
    (overlap,) = kymo.rows(run, "FROM device.overlap")
    assert overlap["communication_ns"] == STEPS * 3_000_000
    assert overlap["hidden_ns"] + row["communication_ns"] == overlap["communication_ns"]
    for step in kymo.rows(run, "FROM device.steps"):
        assert step["computation_ns"] == computed // STEPS
        assert step["total_ns"] == make_trace.STEP_NS
        assert step["hidden_ns"] == overlap["hidden_ns"] // STEPS


def test_launches_waits_memory_and_collectives(made):
    kymo, run, _ = made
    assert kymo.rows(run, "SELECT call, launches, call_ns FROM device.launch_stats ORDER BY 1") == [
        {"call": "cudaLaunchKernel", "launches": STEPS * (2 * make_trace.LAYERS + 1),
         "call_ns": STEPS * (2 * make_trace.LAYERS + 1) * 5_000},
        {"call": "cudaMemcpyAsync", "launches": STEPS, "call_ns": STEPS * 5_000}]
    assert kymo.rows(run, "SELECT DISTINCT duration_ns FROM device.waits") == [{"duration_ns": 1_500_000}]
    assert kymo.rows(run, "SELECT device, live_bytes, count(*) AS n FROM device.memory GROUP BY ALL") == [
        {"device": "GPU 0", "live_bytes": 1 << 20, "n": STEPS * make_trace.LAYERS}]
    assert kymo.rows(run, "SELECT DISTINCT op, dtype, bytes, group_name, end_ns - start_ns AS ns FROM dist.collectives") == [
        {"op": "all_reduce", "dtype": "float32", "bytes": 4 << 20, "group_name": "0", "ns": 3_000_000}]
    assert kymo.value(run, "SELECT max(depth) FROM device.queue_depth") >= 1
    assert kymo.value(run, "SELECT count(*) FROM device.kernels WHERE class = 'communication'") == 1


def test_secrets_of_a_trace_are_not_kept(made):
    _, run, _ = made
    assert not [path for path in run.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]


def test_overlapping_zones_get_lanes(kymo):
    run = kymo.take("overlap", [zone("a", 0, 10), zone("b", 5, 10), zone("c", 6, 2), zone("d", 8, 20)])
    assert kymo.rows(run, "SELECT name, depth, thread, tid FROM trace.zones ORDER BY name") == [
        {"name": "a", "depth": 0, "thread": "thread 1", "tid": 1},
        {"name": "b", "depth": 0, "thread": "thread 1 (lane 2)", "tid": 1},
        {"name": "c", "depth": 1, "thread": "thread 1", "tid": 1},
        {"name": "d", "depth": 0, "thread": "thread 1 (lane 3)", "tid": 1}]


def test_ranks_with_equal_pids_stay_apart(kymo):
    for rank in range(3):
        make_trace.write(kymo.home / f"trace{rank}.json", 1, rank, 3)
    kymo("import", *(f"trace{rank}.json" for rank in range(3)), "-o", "job")
    assert kymo.rows("job", "SELECT rank, ranks FROM kymo.processes ORDER BY rank") == [{"rank": r, "ranks": 3} for r in range(3)]
    assert kymo.value("job", "SELECT count(DISTINCT pid) FROM kymo.processes") == 3
    assert kymo.rows("job", "SELECT rank, device, computation_ns FROM device.breakdown") == [
        {"rank": r, "device": f"GPU 0 of rank {r}", "computation_ns": make_trace.LAYERS * 210_000} for r in range(3)]
    assert kymo.rows("job", "SELECT seq, count(*) AS n, max(wait_ns) AS wait FROM dist.collectives GROUP BY 1") == [
        {"seq": 1, "n": 3, "wait": 0}]


def test_rank_comes_from_the_name_of_the_file(kymo):
    (kymo.home / "worker_rank-12.json").write_text(json.dumps([zone("a", 0, 1)]))
    kymo("import", "worker_rank-12.json", "-o", "run")
    assert kymo.value("run", "SELECT rank FROM kymo.processes") == 12


def test_a_directory_is_all_of_its_traces(kymo):
    folder = kymo.home / "traces"
    folder.mkdir()
    for rank in (0, 2, 10):
        make_trace.write(folder / f"rank{rank}.json.gz", 1, rank, 16)
    (folder / "notes.txt").write_text("[not a trace]")
    kymo("import", "traces", "-o", "run")
    assert [row["rank"] for row in kymo.rows("run", "SELECT rank FROM kymo.processes ORDER BY rank")] == [0, 2, 10]


def test_begin_and_end_async_counters_and_marks(kymo):
    run = kymo.take("chrome", [
        {"ph": "B", "pid": 1, "tid": 2, "ts": 1, "name": "outer"}, {"ph": "B", "pid": 1, "tid": 2, "ts": 2, "name": "inner"},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 3}, {"ph": "E", "pid": 1, "tid": 2, "ts": 4.5},
        {"ph": "E", "pid": 1, "tid": 2, "ts": 9}, {"ph": "B", "pid": 1, "tid": 2, "ts": 10, "name": "open"},
        {"ph": "b", "cat": "q", "id": 1, "pid": 1, "tid": 3, "ts": 1, "name": "request"},
        {"ph": "e", "cat": "q", "id": 1, "pid": 1, "tid": 4, "ts": 7, "name": "request"},
        {"ph": "C", "pid": 1, "tid": 2, "ts": 5, "name": "queue", "args": {"size": 3}},
        {"ph": "C", "pid": 1, "tid": 2, "ts": 5, "name": "cache", "args": {"hit": 1.5, "miss": 2}},
        {"ph": "i", "pid": 1, "tid": 2, "ts": 6, "name": "saved"}])
    assert kymo.rows(run, "SELECT name, duration_ns, depth FROM trace.zones ORDER BY name") == [
        {"name": "inner", "duration_ns": 1000, "depth": 1}, {"name": "outer", "duration_ns": 3500, "depth": 0},
        {"name": "request", "duration_ns": 6000, "depth": 0}]
    assert kymo.rows(run, "SELECT name, value FROM trace.counters ORDER BY name") == [
        {"name": "cache hit", "value": 1.5}, {"name": "cache miss", "value": 2.0}, {"name": "queue", "value": 3.0}]
    assert kymo.rows(run, "SELECT name FROM trace.marks") == [{"name": "saved"}]
    assert kymo.rows(run, "SELECT phase, became FROM kymo.imports WHERE became LIKE 'skipped%' ORDER BY phase") == [
        {"phase": "B", "became": "skipped: a begin without an end"}, {"phase": "E", "became": "skipped: an end without a begin"}]


def test_a_graph_is_one_execution(kymo):
    run = kymo.take("graph", [
        zone("cudaGraphLaunch", 0, 5, cat="cuda_runtime", correlation=9),
        *(zone(f"k{i}", 10 + i, 1, 7, 0, "kernel", correlation=9, device=0, stream=7) for i in range(4))])
    assert kymo.rows(run, "SELECT kind, count(*) AS n, min(start_ns) AS first, max(end_ns) AS last, execution FROM device.ops "
                          "GROUP BY kind, execution ORDER BY kind") == [
        {"kind": "execution", "n": 1, "first": 10000, "last": 14000, "execution": 1},
        {"kind": "kernel", "n": 4, "first": 10000, "last": 14000, "execution": 1}]


def test_users_name_kernels_that_communicate(kymo):
    (kymo.home / "t.json").write_text(json.dumps([zone("my_allreduce", 0, 5, 7, 0, "kernel", device=0, stream=7)]))
    kymo("import", "t.json", "--comm", "my_*", "-o", "run")
    assert kymo.value("run", "SELECT class FROM device.kernels") == "communication"


def test_torch_profiler_on_the_cpu(kymo):
    pytest.importorskip("torch")
    program = """
import torch
from torch.profiler import profile, schedule, record_function
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
with profile(schedule=schedule(wait=0, warmup=0, active=5), with_stack=True, record_shapes=True, profile_memory=True) as p:
    for _ in range(3):
        with record_function("my part"):
            model(torch.ones(4, 8)).sum().backward()
        p.step()
p.export_chrome_trace("trace.json.gz")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300, cwd=kymo.home)
    kymo("import", "trace.json.gz", "-o", "run")
    with gzip.open(kymo.home / "trace.json.gz") as file:
        events = json.load(file)["traceEvents"]
    assert kymo.value("run", "SELECT sum(events)::BIGINT FROM kymo.imports") == len(events)
    assert kymo.rows("run", "FROM kymo.imports WHERE became LIKE 'skipped%'") == []
    assert kymo.value("run", "SELECT count(*) FROM trace.zones") == sum(
        e.get("ph") == "X" and e.get("cat") in ("cpu_op", "user_annotation", "python_function") for e in events)
    assert kymo.value("run", "SELECT count(*) FROM trace.steps") == sum(e["name"].startswith("ProfilerStep#") for e in events)
    assert kymo.value("run", "SELECT count(*) FROM trace.zones WHERE source = 'mark' AND name = 'my part'") == 3
    assert kymo.value("run", "SELECT count(*) FROM device.memory WHERE device = 'cpu'") > 0


# ---- without kymo import ---------------------------------------------------------------------------------------------------


def test_commands_take_a_trace_directly_and_import_it_once(kymo):
    make_trace.write(kymo.home / "a.json.gz", 12)
    assert kymo.value("a.json.gz", "SELECT count(*) FROM trace.steps") == 12
    (cached,) = (kymo.home / "cache/kymo/imports").iterdir()
    before = cached.stat().st_ino
    assert "Linear" in kymo("report", "a.json.gz").stdout
    kymo("compare", "a.json.gz", "a.json.gz")
    kymo("export", "a.json.gz", "-o", "out.json", "-f", "chrome")
    kymo("pack", "a.json.gz", "packed.kymo")
    assert kymo.value("packed.kymo", "SELECT count(*) FROM device.ops") == 12 * (2 * make_trace.LAYERS + 2)
    (again,) = (kymo.home / "cache/kymo/imports").iterdir()
    assert again.stat().st_ino == before
    assert (kymo.home / "cache/kymo/imports").stat().st_mode & 0o777 == 0o700


def test_several_traces_and_a_directory_of_them_are_one_target(kymo):
    folder = kymo.home / "job"
    folder.mkdir()
    for rank in range(2):
        make_trace.write(folder / f"rank{rank}.json.gz", 2, rank, 2)
    (folder / "notes.txt").write_text("no trace")
    for words in (["job/rank0.json.gz", "job/rank1.json.gz"], ["job"], ["job/rank0.json.gz", "job/rank1.json.gz", "-o", "report.json"]):
        done = kymo("report", *words)
        assert "report.json" in words or done.stdout.startswith("rank0.json.gz  imported  "), done.stdout
        assert "report.json" in words or "2 processes of 2 ranks" in done.stdout.split("\n")[0]
    assert json.loads((kymo.home / "report.json").read_text())["run"]["program"] == "rank0.json.gz"
    assert kymo.value("job", "SELECT count(DISTINCT rank) FROM device.breakdown") == 2
    kymo("report", "job/rank0.json.gz", "report.json")  # a report of kymo is written again
    assert json.loads((kymo.home / "report.json").read_text())["run"]["program"] == "rank0.json.gz"
    make_trace.write(folder / "rank2.json.gz", 2, 2, 3)
    assert kymo.value("job", "SELECT count(DISTINCT rank) FROM device.breakdown") == 3


def test_a_changed_trace_is_imported_again(kymo):
    (kymo.home / "t.json").write_text(json.dumps([zone("a", 0, 1)]))
    assert kymo.value("t.json", "SELECT name FROM trace.zones") == "a"
    (kymo.home / "t.json").write_text(json.dumps([zone("other", 0, 1)]))
    assert kymo.value("t.json", "SELECT name FROM trace.zones") == "other"


# ---- bad input -------------------------------------------------------------------------------------------------------------


def test_what_comes_before_a_cut_is_kept(kymo):
    make_trace.write(kymo.home / "whole.json", 1)
    text = (kymo.home / "whole.json").read_text()
    for cut in range(300, len(text), len(text) // 23):
        (kymo.home / "cut.json").write_text(text[:cut])
        done = kymo("import", "cut.json", "-o", "cut", "--force")
        assert "is truncated at byte" in done.stderr
        kept = kymo.value("cut", "SELECT coalesce(sum(events), 0)::BIGINT FROM kymo.imports")
        assert abs(kept - text[:cut].count('"ph"')) <= 1


@pytest.mark.parametrize("bytes_of_file, sentence", [
    (b"", "it is empty"), (b"   \n", "it is empty"), (b"{}", "it has no list of events"), (b"hello", "it has no list of events"),
    (b"\x1f\x8b\x08\x00rubbish", "compressed bytes"), (b'{"a": 1}', "it has no list of events"),
    (gzip.compress(b"[]")[:-11], "compressed bytes")])
def test_a_file_that_is_no_trace_is_an_error(kymo, bytes_of_file, sentence):
    (kymo.home / "bad.json").write_bytes(bytes_of_file)
    done = kymo("import", "bad.json", "-o", "run", status=1)
    assert sentence in done.stderr and done.stderr.count("\n") == 1
    assert not (kymo.home / "run").exists() and not list(kymo.home.glob(".run*"))


def test_strange_values_are_counted_not_obeyed(kymo):
    deep = "[" * 100000 + "]" * 100000
    run = kymo.take("strange", '{"traceEvents": [' + ",".join([
        '{"ph":"X","name":"twice","name":"last","ts":1,"dur":2,"pid":1,"tid":1}',
        '{"ph":"X","name":"far","ts":99999999999999999999,"dur":2,"pid":1,"tid":1}',
        '{"ph":"X","name":"back","ts":5,"dur":-2,"pid":1,"tid":1}', '{"ph":"X","name":"none","pid":1,"tid":1}',
        '{"ph":"?","name":"odd","ts":1,"pid":1,"tid":1}', "7", '"text"', "null", deep,
        '{"ph":"X","name":"deep","ts":2,"dur":1,"pid":1,"tid":1,"args":{"a":' + deep + "}}",
        '{"ph":"X","name":"bad \\ud800 \\u0000 \\q\x01","ts":20,"dur":1e0,"pid":1,"tid":1}',
        '{"ph":"X","name":"exponent","ts":1.5e3,"dur":25e-1,"pid":1,"tid":1}']) + "]}")
    assert kymo.rows(run, "SELECT name, start_ns, duration_ns FROM trace.zones ORDER BY start_ns") == [
        {"name": "last", "start_ns": 0, "duration_ns": 2000}, {"name": "deep", "start_ns": 1000, "duration_ns": 1000},
        {"name": "bad � � q\x01", "start_ns": 19000, "duration_ns": 1000},
        {"name": "exponent", "start_ns": 1499000, "duration_ns": 2500}]
    assert kymo.rows(run, "SELECT became, sum(events)::BIGINT AS n FROM kymo.imports WHERE NOT kept GROUP BY 1 ORDER BY 1") == [
        {"became": "skipped: a time out of range", "n": 2}, {"became": "skipped: an unknown phase", "n": 1},
        {"became": "skipped: no time", "n": 1}, {"became": "skipped: not an event", "n": 4}]


@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("first, count", [("", 2000), ("a", 2000), ("ab", 1365), ("ab", 2000)])
def test_a_long_name_is_cut_between_characters(kymo, first, count, escaped):
    trace = json.dumps([zone(first + count * "\u20ac", 1, 1)], ensure_ascii=escaped)
    name = kymo.value(kymo.take("long", trace), "SELECT name FROM trace.zones")
    assert set(name) <= set("ab\u20ac") and 4090 < len(name.encode()) <= 4096, name[-8:]


def test_bytes_that_are_not_utf8_are_replaced(kymo):
    (kymo.home / "t.json").write_bytes(b'[{"ph":"X","name":"a\xff\xfe","ts":0,"dur":1,"pid":1,"tid":1}]')
    kymo("import", "t.json", "-o", "run")
    assert "�" in kymo.value("run", "SELECT name FROM trace.zones")


def test_a_gzip_bomb_ends_early(kymo):
    event = json.dumps(zone("a", 1, 1)).encode()
    with gzip.open(kymo.home / "bomb.json.gz", "wb") as out:
        out.write(b"[" + event)
        for _ in range(160):
            out.write(b" " * (1 << 20))
    done = kymo("import", "bomb.json.gz", "-o", "run")
    assert "300 times its size" in done.stderr
    assert kymo.value("run", "SELECT count(*) FROM trace.zones") == 1


def test_an_existing_recording_is_replaced_only_with_force(kymo):
    kymo.take("run", [zone("a", 0, 1)])
    done = kymo("import", "run.json", "-o", "run", status=1)
    assert "exists" in done.stderr
    kymo("import", "run.json", "-o", "run", "--force")


def test_wrong_use(kymo):
    assert "no FILE" in kymo("import", status=2).stderr
    assert "cannot open" in kymo("import", "missing.json", status=1).stderr


def test_time_that_no_zone_covers_is_not_named_as_something_to_make_cheaper(kymo):
    """Two launches far apart, without operators: most of the critical path is outside of zones."""
    run = kymo.take("sparse_host", [
        *(zone("cudaLaunchKernel", at, 20, cat="cuda_runtime", correlation=at + 1) for at in (0, 900_000)),
        *(zone("k", at + 30, 50, 7, 0, "kernel", correlation=at + 1, device=0, stream=7) for at in (0, 900_000))])
    assert kymo.value(run, "SELECT arg_max(name, duration_ns) FROM trace.critical_path") == "outside of zones"
    assert "outside of zones is" not in kymo("report", run).stdout
