"""The critical path of made traces, whose dependencies are known, and of a real one beside HTA's."""
import json
import os
import pathlib
import subprocess

import pytest

import make_trace
from made_steps import Made

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = ROOT / "build" / "kymo"
TRACES = pathlib.Path(os.environ.get("KYMO_TRACES", ROOT.parent / "shared" / "traces"))
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def query(run, sql):
    made = subprocess.run([KYMO, "query", run, "-f", "json", sql], capture_output=True, text=True, timeout=120)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def path_of(run, columns="rank, kind, name, start_ns, duration_ns, would_win_ns"):
    """Rows in order, times in microseconds from the first."""
    rows = query(run, f"SELECT {columns} FROM trace.critical_path")
    first = min((row["start_ns"] for row in rows if "start_ns" in row), default=0)
    found = []
    for row in rows:
        if "start_ns" in row:
            row["start_ns"] -= first
        found.append(tuple(value / 1000 if key.endswith("_ns") and value is not None else value for key, value in row.items()))
    return found


def imported(tmp_path, *traces):
    files = [str(trace.write(tmp_path / f"rank{trace.rank}.json")) for trace in traces]
    subprocess.run([KYMO, "import", "-q", "-o", tmp_path / "run", *files], check=True, timeout=120)
    return tmp_path / "run"


def test_a_host_that_is_never_waited_for_is_the_path(tmp_path):
    """Kernels are short and end long before the host does: none is on the path."""
    made = Made()
    made.step(1, 0, 1000)
    for i in range(4):
        made.host("aten::slow", 100 + i * 200, 250 + i * 200)
        made.kernel("tiny", 200 + i * 200, 210 + i * 200, 20)
    rows = path_of(imported(tmp_path, made))
    assert {row[1] for row in rows} == {"host", "launch"}
    assert sum(row[4] for row in rows) == 1000
    assert sum(row[4] for row in rows if row[2] == "aten::slow") == 4 * 145
    assert sum(row[4] for row in rows if row[2] == "cudaLaunchKernel") == 4 * 5
    assert sum(row[4] for row in rows if row[2] == "between operators") == 400
    # Without 100 us of the host before a launch, the step is 100 us shorter: nothing else is as long.
    assert all(row[5] == row[4] for row in rows if row[3] < 800)


def test_kernels_that_the_host_waits_for_are_the_path(tmp_path):
    made = Made()
    made.step(1, 0, 850)
    made.host("aten::linear", 0, 60)
    for i in range(4):
        made.kernel("gemm", 10 + i * 10, 20 + i * 200, 200)
    made.sync(100, 830)
    run = imported(tmp_path, made)
    assert path_of(run) == [
        (0, "host", "aten::linear", 0, 10, 10),
        (0, "launch", "cudaLaunchKernel", 10, 10, 10),
        (0, "kernel", "gemm", 20, 200, 190),  # the second one is launched at 20 and starts 10 later
        (0, "kernel", "gemm", 220, 200, 200),
        (0, "kernel", "gemm", 420, 200, 200),
        (0, "kernel", "gemm", 620, 200, 200),
        (0, "wait", "cudaStreamSynchronize", 820, 10, 10),
        (0, "host", "between operators", 830, 20, 20),
    ]
    # All four at once: the last one would begin with its launch, at 40 + 10, and the wait that begins at 100 would return at once.
    all_wins = {row["kind"]: row["all_win_ns"] for row in query(run, "SELECT kind, any_value(all_win_ns) AS all_win_ns "
                                                                "FROM trace.critical_path GROUP BY kind")}
    assert all_wins["kernel"] == 730_000
    shares = query(run, "SELECT sum(share) AS share, max(position) AS last FROM trace.critical_path")
    assert shares == [{"share": pytest.approx(1, abs=0.001), "last": 8}]


def test_a_kernel_that_waits_for_another_stream_follows_it(tmp_path):
    """A third stream is busy until 180: it bounds what the others could win."""
    made = Made()
    made.step(1, 0, 500)
    made.kernel("first", 10, 20, 200, stream=7)
    made.kernel("beside", 20, 30, 150, stream=9)
    made.kernel("second", 40, 223, 100, stream=8)
    made.kernel("third", 60, 325, 20, stream=8)
    made.sync(90, 350, "cudaDeviceSynchronize")
    rows = [row for row in path_of(imported(tmp_path, made)) if row[1] not in ("host", "launch")]
    assert [row[1:5] for row in rows] == [
        ("kernel", "first", 20, 200),
        ("wait", "between queues", 220, 3),
        ("kernel", "second", 223, 100),
        ("wait", "between operations", 323, 2),
        ("kernel", "third", 325, 20),
        ("wait", "cudaDeviceSynchronize", 345, 5),
    ]
    # If first took no time, second would start with its launch at 40 + 10, and beside, which ends at 180, would be last.
    wins = {row[2]: row[5] for row in rows}
    assert wins["first"] == 170
    assert wins["third"] == 20


def test_a_call_that_copies_waits_for_the_copy(tmp_path):
    made = Made()
    made.step(1, 0, 400)
    made.host("aten::copy_", 5, 120)
    made.copy("Memcpy HtoD (Pageable -> Device)", 10, 15, 90, call_us=100)
    made.kernel("gemm", 130, 140, 200)
    made.sync(145, 345)
    rows = path_of(imported(tmp_path, made))
    assert [row[1:5] for row in rows] == [
        ("host", "between operators", 0, 5),
        ("host", "aten::copy_", 5, 5),
        ("launch", "cudaMemcpyAsync", 10, 5),
        ("copy", "Memcpy HtoD (Pageable -> Device)", 15, 90),
        ("wait", "cudaMemcpyAsync", 105, 5),
        ("host", "aten::copy_", 110, 10),
        ("host", "between operators", 120, 10),
        ("launch", "cudaLaunchKernel", 130, 10),
        ("kernel", "gemm", 140, 200),
        ("wait", "cudaStreamSynchronize", 340, 5),
        ("host", "between operators", 345, 55),
    ]


def test_a_wait_in_the_middle_brings_the_path_to_the_host(tmp_path):
    made = Made()
    made.python("train.py(12): train", 0, 800)
    made.step(1, 0, 800)
    made.kernel("first", 10, 20, 200)
    made.host("aten::item", 30, 240)
    made.sync(40, 230)
    made.host("aten::slow", 250, 500)
    made.kernel("second", 400, 410, 300)
    made.sync(520, 720)
    run = imported(tmp_path, made)
    rows = path_of(run, "kind, name, start_ns, duration_ns, function, file, line, zone")
    assert [row[:4] for row in rows] == [
        ("host", "train", 0, 10),
        ("launch", "cudaLaunchKernel", 10, 10),
        ("kernel", "first", 20, 200),
        ("wait", "cudaStreamSynchronize", 220, 10),
        ("host", "aten::item", 230, 10),
        ("host", "train", 240, 10),
        ("host", "aten::slow", 250, 150),
        ("launch", "cudaLaunchKernel", 400, 10),
        ("kernel", "second", 410, 300),
        ("wait", "cudaStreamSynchronize", 710, 10),
        ("host", "train", 720, 80),
    ]
    assert {row[4:7] for row in rows} == {("train", "train.py", 12)}
    assert [row[7] for row in rows if row[1] == "cudaStreamSynchronize"] == ["aten::item", None]


def test_a_thread_that_waits_for_another_leads_to_it(tmp_path):
    """Backward runs on its own thread, and the main thread waits for it without an event that tells."""
    made = Made()
    made.step(1, 0, 1000)
    made.host("aten::forward", 0, 200)
    for i in range(5):
        made.host("MulBackward0", 210 + i * 100, 300 + i * 100, tid=99)
    made.kernel("gemm", 650, 660, 10, tid=99)
    made.host("aten::optimize", 720, 1000)
    rows = path_of(imported(tmp_path, made))
    assert sum(row[4] for row in rows) == 1000
    assert sum(row[4] for row in rows if row[2] == "MulBackward0") == 445
    assert sum(row[4] for row in rows if row[2] == "between operators") == 10 + 40 + 10 + 10


def test_a_collective_leads_to_the_rank_that_came_last(tmp_path):
    ranks = []
    for rank in range(2):
        made = Made(rank, 2)
        late = 500 * rank
        made.step(1, 0, 1000)
        made.host("aten::load", 0, 100 + late)
        made.kernel("gemm", 110 + late, 120 + late, 50)
        made.all_reduce(180 + late, 190 + late, 610 - late)
        made.sync(210 + late, 810)
        ranks.append(made)
    run = imported(tmp_path, *ranks)
    rows = path_of(run, "rank, kind, name, start_ns, duration_ns, would_win_ns, path")
    assert len({row[6] for row in rows}) == 1
    last = rows[-1][0]  # both ranks end at the same moment
    assert [row[:5] for row in rows if row[1] == "collective"] == [(last, "collective", NCCL, 690, 110)]
    loads = [row for row in rows if row[2] == "aten::load"]
    assert [row[0] for row in loads] == [1]
    assert loads[0][4:6] == (600, 500)  # without it rank 0 is last, 500 us earlier
    assert sum(row[4] for row in rows) == 1000


def test_clocks_that_disagree_are_aligned_and_the_ranks_share_a_path(tmp_path):
    """Rank 0 ends before rank 1 arrives, by their own clocks."""
    ranks = []
    for rank in range(2):
        made = Made(rank, 2)
        shift = 5000 * rank
        made.step(1, shift, shift + 1000)
        made.all_reduce(shift + 100, shift + 110, 500)
        made.sync(shift + 200, shift + 620)
        ranks.append(made)
    rows = path_of(imported(tmp_path, *ranks), "rank, path, kind, duration_ns")
    assert [row[1:] for row in rows] == [(1, "host", 100), (1, "launch", 10), (1, "collective", 500), (1, "wait", 10), (1, "host", 380)]


def test_steps_of_a_device_that_lags_behind_keep_their_operations(tmp_path):
    """The host is two steps ahead: the path is the device's, and each kernel belongs to the step that launched it."""
    made = Made()
    for i in range(3):
        made.step(i + 1, i * 100, i * 100 + 100)
        made.kernel("gemm", i * 100 + 10, 20 + i * 500, 500)
    rows = query(imported(tmp_path, made), "SELECT step, sum(duration_ns) AS ns FROM trace.critical_path WHERE kind = 'kernel' "
                 "GROUP BY ALL ORDER BY step")
    assert rows == [{"step": i + 1, "ns": 500_000} for i in range(3)]


@pytest.mark.skipif(not (TRACES / "ref").is_dir(), reason=f"no traces of real GPUs in {TRACES}; set KYMO_TRACES")
def test_the_device_time_on_the_path_of_a_real_trace_is_that_of_hta(tmp_path):
    """HTA's path of the annotation measure|forward has 3.712 ms of kernels and copies, and so has ours. Its host part is shorter:
    HTA begins at the first operator inside the annotation and ends with the last, we follow the host to the annotation's end."""
    reference = json.loads((TRACES / "ref" / "hta.alexnet_cp.all_ns.json").read_text())["critical_path"]["value"]
    total_us = sum(reference["by_type"].values())
    kernels_us = total_us * reference["summary"]["gpu_compute_bound"] / 100
    trace = next((TRACES / "hta/critical_path/alexnet").glob("*.json.gz"))
    rows = query(trace, """
        WITH w AS (SELECT min(start_ns) AS from_ns, max(start_ns + duration_ns) AS to_ns FROM trace.zones
            WHERE name LIKE '%measure|forward]')
        SELECT sum(duration_ns) FILTER (kind IN ('kernel', 'copy')) / 1000 AS device_us, sum(duration_ns) / 1000 AS all_us
        FROM trace.critical_path, w
        WHERE start_ns >= from_ns AND start_ns < to_ns""")[0]
    assert rows["device_us"] == pytest.approx(kernels_us, abs=0.1)
    assert 0 <= rows["all_us"] - total_us < 0.03 * total_us


def test_a_recording_without_devices_and_ranks_has_no_path(tmp_path):
    made = Made()
    made.host("aten::slow", 0, 100)
    assert query(imported(tmp_path, made), "SELECT count(*) AS n FROM trace.critical_path") == [{"n": 0}]


def test_sums_are_those_of_the_rows(tmp_path):
    """trace.critical_sums and device.idle_sums, which the findings read, have the time and the number of all rows."""
    make_trace.write(tmp_path / "trace.json", 4)
    subprocess.run([KYMO, "import", "-q", "-o", tmp_path / "run", tmp_path / "trace.json"], check=True, timeout=120)
    place = "rank, name, function, file, line, module, zone, pid"
    for rows, sums, by, ns in (("trace.critical_path", "trace.critical_sums", "kind, queue, path", "duration_ns"),
                               ("device.idle", "device.idle_sums", "cause, device", "idle_ns")):
        found = query(tmp_path / "run", f"""
            SELECT {by}, {place}, sum({ns})::BIGINT AS ns, count(*) AS n FROM {rows} GROUP BY ALL ORDER BY ALL""")
        assert found and found == query(tmp_path / "run", f"""
            SELECT {by}, {place}, sum({ns})::BIGINT AS ns, sum(count)::BIGINT AS n FROM {sums} GROUP BY ALL ORDER BY ALL""")


def test_the_path_takes_little_memory(tmp_path):
    """At most 128 bytes for each event, beside DuckDB: the graph has 8 bytes for an edge and the rows 40."""
    events = make_trace.write(tmp_path / "trace.json", 1200)
    subprocess.run([KYMO, "import", "-q", "-o", tmp_path / "run", tmp_path / "trace.json"], check=True, timeout=120)
    least, most = (peak_of(tmp_path / "run", f"SELECT count(*) FROM {table}") for table in ("device.waits", "trace.critical_sums"))
    assert most - least <= 128 * events


def test_a_query_takes_one_core_while_one_thread_computes(tmp_path):
    """The path is computed by one thread; the others wait for it and do not ask for work again and again."""
    make_trace.write(tmp_path / "trace.json", 1200)
    subprocess.run([KYMO, "import", "-q", "-o", tmp_path / "run", tmp_path / "trace.json"], check=True, timeout=120)
    one, two = (min(cpu_of(tmp_path / "run", f"SET threads = {threads}; SELECT count(*) FROM trace.critical_sums") for _ in range(3))
                for threads in (1, 2))
    assert two <= 1.35 * one


def cpu_of(run, sql):
    """Seconds of CPU time of a query."""
    with subprocess.Popen([KYMO, "query", "--unsafe", run, sql], stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
    assert status == 0
    return usage.ru_utime + usage.ru_stime


def peak_of(run, sql):
    """The largest resident memory of a query, in bytes."""
    with subprocess.Popen([KYMO, "query", run, sql], stdout=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
    assert status == 0
    return usage.ru_maxrss * 1024


def test_a_report_of_many_operations_keeps_views_and_evaluates_every_verdict(tmp_path):
    """From 10,000 operations on, views that several verdicts read are computed once; the answers are the same."""
    make_trace.write(tmp_path / "trace.json", 260)
    subprocess.run([KYMO, "import", "-q", "-o", tmp_path / "run", tmp_path / "trace.json"], check=True, timeout=120)
    made = subprocess.run([KYMO, "report", tmp_path / "run"], capture_output=True, text=True, check=True, timeout=120).stdout
    (row,) = query(tmp_path / "run", "SELECT idle_ns, total_ns FROM device.breakdown")
    assert "problem " not in made and "The device waits for the host" in made
    evidence = f"busy {(row['total_ns'] - row['idle_ns']) / 1e9:.2f} s, idle {row['idle_ns'] / 1e9:.2f} s"
    assert evidence in made.replace("\n            ", " ")
