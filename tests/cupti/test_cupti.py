"""CUDA programs under kymo, unmodified. CUDA and CUPTI are a stand-in: no test here has seen a GPU."""
import os
import re
import signal
import struct
import subprocess

import pytest
from conftest import KYMO, LIBRARY

MS = 1_000_000


def about(ns, expected):
    """Times are converted to ticks and back: each has an error of some ns."""
    return abs(ns - expected) <= 20 + expected / 1e5


@pytest.fixture(scope="module")
def train(lab):
    done, recording = lab.record("train", lab.program("workload"), "train")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return recording


def test_operations_have_their_stream_kind_bytes_call_zone_and_step(lab, train):
    step = [("stream 7", "write", "Memcpy HtoD (Pageable -> Device)", 4096, "load", "cudaMemcpyAsync"),
            ("stream 7", "kernel", "gemm(float*, float*, int)", 0, "forward", "cudaLaunchKernel"),
            ("stream 7", "kernel", "relu(float*)", 0, "forward", "cuLaunchKernel"),
            ("stream 13", "kernel", "ncclDevKernel_AllReduce_Sum_f32", 0, "backward", "cudaLaunchKernel"),
            ("stream 7", "fill", "Memset (Device)", 1024, None, "cudaMemsetAsync")]
    assert lab.rows(train, "SELECT queue, kind, name, bytes, zone, call, step, device FROM device.ops ORDER BY queued_ns") == [
        (*row, number, "GPU 0") for number in range(3) for row in step]
    assert lab.rows(train, "SELECT count(*) FROM device.ops WHERE call_ns IS NULL OR queued_ns > start_ns OR correlation IS NULL"
                    ) == [(0,)]


def test_durations_are_those_of_the_device(lab, train):
    expected = {"write": 0.2 * MS, "fill": 0.05 * MS, "gemm(float*, float*, int)": 2 * MS, "relu(float*)": 0.5 * MS,
                "ncclDevKernel_AllReduce_Sum_f32": 1 * MS}
    rows = lab.rows(train, "SELECT if(kind = 'kernel', name, kind), end_ns - start_ns FROM device.ops")
    assert len(rows) == 15 and all(about(ns, expected[name]) for name, ns in rows)


def test_the_zone_of_a_launch_is_the_row_of_trace_zones(lab, train):
    assert lab.rows(train, "SELECT count(*) FROM device.ops o JOIN trace.zones z ON z.tid = o.tid AND z.name = o.zone "
                    "AND z.start_ns = o.zone_start_ns") == [(12,)]
    assert lab.rows(train, "SELECT DISTINCT zone, path FROM device.launches WHERE zone = 'forward'") == [("forward", ["forward"])]


def test_an_error_of_zero_is_never_stated(lab, train):
    assert lab.rows(train, "SELECT min(error_ns) >= 1000 FROM device.ops") == [(True,)]


def test_waits_are_zones_and_rows(lab, train):
    assert lab.rows(train, "SELECT name, count FROM trace.regions WHERE source = 'device'") == [("cudaDeviceSynchronize", 3)]
    assert lab.rows(train, "SELECT count(*) FROM device.waits WHERE device = 'GPU 0'") == [(3,)]


def test_an_operation_after_a_stream_waits_depends(lab, train):
    assert lab.rows(train, "SELECT DISTINCT name FROM device.ops WHERE depends") == [("ncclDevKernel_AllReduce_Sum_f32",)]


def test_memory_of_the_device_comes_and_goes(lab, train):
    assert lab.rows(train, "SELECT kind, bytes, live_bytes, pool, device FROM device.memory ORDER BY ts_ns") == [
        ("allocation", 1 << 20, 1 << 20, "device", "GPU 0"), ("free", 1 << 20, 0, "device", "GPU 0")]
    first, last, end = lab.rows(train, "SELECT min(ts_ns), max(ts_ns), (SELECT max(end_ns) FROM device.ops) FROM device.memory")[0]
    assert first < end - 3 * 10 * MS and last >= end


def test_the_tables_of_devices_add_up(lab, train):
    """As for an imported trace: what computed, communicated and copied is known, and what is left was idle."""
    computation, communication, memory, idle, total = lab.rows(
        train, "SELECT computation_ns, communication_ns, memory_ns, idle_ns, total_ns FROM device.breakdown")[0]
    assert about(computation, 3 * 2.5 * MS) and about(memory, 3 * 0.2 * MS)  # the memset runs beside the collective
    assert about(communication, 3 * 1 * MS) and idle == total - computation - communication - memory
    assert idle >= 2 * 10 * MS  # "load" sleeps, twice between operations
    assert lab.rows(train, "SELECT class, name, count FROM device.kernels ORDER BY total_ns DESC LIMIT 2") == [
        ("computation", "gemm(float*, float*, int)", 3), ("communication", "ncclDevKernel_AllReduce_Sum_f32", 3)]
    assert lab.rows(train, "SELECT call, launches, call_ns > 0 FROM device.launch_stats ORDER BY 1") == [
        ("cuLaunchKernel", 3, True), ("cudaLaunchKernel", 6, True), ("cudaMemcpyAsync", 3, True), ("cudaMemsetAsync", 3, True)]
    assert lab.rows(train, "SELECT queue, ops FROM device.queues ORDER BY core") == [("stream 7", 12), ("stream 13", 3)]


def test_gaps_have_their_causes(lab):
    done, recording = lab.record("gaps", lab.program("workload"), "gaps")
    assert done.returncode == 0
    rows = lab.rows(recording, "SELECT cause, duration_ns FROM device.gaps ORDER BY start_ns")
    # Ten kernels and nine gaps: after a wait, then after a pause of 20 ms, of which the kernel takes 4. A machine that is
    # busy may hold the host up between the wait and the launch.
    assert len(rows) == 9 and [cause for cause, ns in rows[1::2]] == ["host late"] * 4
    assert min(ns for _, ns in rows[1::2]) >= 15 * MS
    assert "synchronisation" in {cause for cause, _ in rows[::2]} <= {"synchronisation", "host late"}


def test_the_report_and_the_page_show_them(lab):
    done, recording = lab.record("gaps-report", lab.program("workload"), "gaps")
    report = lab.plain(KYMO, "report", recording)
    assert done.returncode == 0 and report.returncode == 0, report.stderr
    assert re.search(r"stream 7 +", report.stdout) and "work" in report.stdout
    page = lab.folder / "report.html"
    made = lab.plain(KYMO, "report", "--force", "-o", page, recording)
    assert made.returncode == 0, made.stderr
    assert "stream 7" in page.read_text()


def test_a_finding_names_what_the_device_waits_for(lab):
    done, recording = lab.record("findings", lab.program("workload"), "gaps")
    assert done.returncode == 0
    found = lab.plain(KYMO, "report", "-f", "json", recording)
    assert found.returncode == 0, found.stderr
    assert re.search(r"GPU 0 was idle for \d+ % of the time", found.stdout), found.stdout[:3000]


def test_a_graph_is_an_execution_that_contains_its_kernels(lab):
    done, recording = lab.record("graphs", lab.program("workload"), "graphs")
    assert done.returncode == 0
    assert lab.rows(recording, "SELECT kind, name, model, zone, call, count(*) FROM device.ops GROUP BY ALL ORDER BY 1, 2") == [
        ("execution", "graph 5", "graph 5", "replay", "cudaGraphLaunch", 4),
        ("kernel", "gemm(float*, float*, int)", None, "replay", "cudaGraphLaunch", 8),
        ("kernel", "relu(float*)", None, "replay", "cudaGraphLaunch", 4)]
    assert lab.rows(recording, "SELECT execution = correlation, count(*) FROM device.ops GROUP BY 1") == [(True, 16)]
    assert all(about(ns, 4.5 * MS) for ns, in lab.rows(
        recording, "SELECT end_ns - start_ns FROM device.ops WHERE kind = 'execution'"))
    assert lab.rows(recording, "SELECT model, executions FROM device.models") == [("graph 5", 4)]


def test_copies_that_wait_are_marked_and_are_waits(lab):
    done, recording = lab.record("copies", lab.program("workload"), "copies")
    assert done.returncode == 0
    assert lab.rows(recording, "SELECT kind, bytes, blocking, name FROM device.ops ORDER BY queued_ns") == [
        ("copy", 100, False, "Memcpy DtoD (Device -> Device)"), ("read", 200, False, "Memcpy DtoH (Device -> Pinned)"),
        ("write", 300, True, "Memcpy HtoD (Pageable -> Device)"), ("read", 400, True, "Memcpy DtoH (Device -> Pageable)")]
    assert lab.rows(recording, "SELECT count(*), min(duration_ns) >= 5000000 FROM device.waits") == [(2, True)]
    assert lab.rows(recording, "SELECT name, count FROM trace.regions WHERE source = 'device'") == [("cudaMemcpy", 2)]


def test_several_threads_streams_and_devices_lose_nothing(lab):
    done, recording = lab.record("threads", lab.program("workload"), "threads")
    assert done.returncode == 0
    assert lab.rows(recording, "SELECT device, queue, name, zone, count(*), count(DISTINCT tid) FROM device.ops GROUP BY ALL "
                    "ORDER BY 2") == [
        ("GPU 0", "stream 20", "tiny", "drive", 250, 1), ("GPU 1", "stream 21", "tiny", "drive", 250, 1),
        ("GPU 0", "stream 22", "tiny", "drive", 250, 1), ("GPU 1", "stream 23", "tiny", "drive", 250, 1)]
    assert lab.rows(recording, "SELECT count(*) FROM kymo.gaps WHERE cause NOT LIKE '%before their launch%'") == [(0,)]


def test_errors_of_calls_are_marks_and_the_program_gets_them(lab):
    done, recording = lab.record("errors", lab.program("workload"), "errors")
    assert (done.returncode, done.stdout) == (0, "719\n")
    assert lab.rows(recording, "SELECT name, text FROM trace.marks ORDER BY ts_ns") == [
        ("kymo.cuda", f"cudaLaunchKernel returned error 719 (failed calls so far: {n})") for n in (1, 2, 4)]
    assert lab.rows(recording, "SELECT name FROM device.ops") == [("gemm(float*, float*, int)",)]


def test_a_hang_in_a_wait_is_an_open_zone(lab):
    recording = lab.folder / "run-hang"
    child = subprocess.Popen([KYMO, "run", "-q", "-o", recording, "--device", "--", lab.program("workload"), "hang"],
                             stdout=subprocess.PIPE, text=True, env={**lab.environment, "LD_LIBRARY_PATH": str(lab.folder / "one")})
    try:
        assert child.stdout.readline() == "at work\n"
        for _ in range(200):
            rows = lab.rows(recording, "SELECT source, name FROM trace.open_zones WHERE name <> 'step'")
            if rows:
                break
        assert rows == [("device", "cudaDeviceSynchronize")]
        pid = int(lab.rows(recording, "SELECT pid FROM kymo.processes WHERE role = 'target'")[0][0])
        os.kill(pid, signal.SIGKILL)
        assert child.wait(60) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()
    assert lab.rows(recording, "SELECT name FROM trace.open_zones ORDER BY depth") == [("step",), ("cudaDeviceSynchronize",)]


def test_a_forked_child_leaves_cuda_alone(lab):
    done, recording = lab.record("forks", lab.program("workload"), "forks")
    assert done.returncode == 0
    assert lab.rows(recording, "SELECT name, count(*), count(DISTINCT pid) FROM device.ops GROUP BY 1") == [
        ("gemm(float*, float*, int)", 2, 1)]


@pytest.mark.parametrize("result", ["15", "999"])
def test_without_a_driver_the_program_runs_and_a_mark_says_so(lab, result):
    done, recording = lab.record(f"refused-{result}", lab.program("workload"), "train", STANDIN_SUBSCRIBE=result)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert lab.rows(recording, "SELECT name, text FROM trace.marks") == [
        ("kymo.cuda", f"CUDA work is not recorded: cuptiSubscribe failed: of the stand-in ({result})")]
    assert lab.rows(recording, "SELECT count(*) FROM device.ops") == [(0,)]


def test_nothing_is_loaded_without_the_option(lab):
    done, recording = lab.record("without", lab.program("workload"), "graphs", options=())
    assert done.returncode == 0
    assert lab.rows(recording, "SELECT count(*) FROM device.ops") == [(0,)]


def test_a_variable_of_the_user_is_kept(lab):
    done = lab.plain(KYMO, "run", "--no-summary", "-o", lab.folder / "run-kept", "--device", "--", "sh", "-c",
                     "echo $CUDA_INJECTION64_PATH", CUDA_INJECTION64_PATH="/of/the/user.so")
    assert done.stdout == "/of/the/user.so\n"
    assert "--device does not record CUDA: CUDA_INJECTION64_PATH is set, so another tool is loaded" in done.stderr
    done = lab.plain(KYMO, "run", "-q", "-o", lab.folder / "run-set", "--device", "--", "sh", "-c", "echo $CUDA_INJECTION64_PATH")
    assert done.stdout == f"{LIBRARY}\n"


def test_another_profiler_gets_what_it_gets_without_kymo_and_kymo_comes_back(lab):
    program = lab.program("profiler", "one")
    alone = lab.plain(program)
    assert alone.stdout == "40 kernels, 0 others, calls seen, clock right\n"
    done, recording = lab.record("profiler", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, alone.stdout, "")
    assert lab.rows(recording, "SELECT name, zone, count(*) FROM device.ops GROUP BY ALL ORDER BY 1") == [
        ("after", "loop", 35), ("before", "loop", 10)]
    assert lab.rows(recording, "SELECT cause, events, duration_ns > 0 FROM kymo.gaps WHERE cause LIKE 'another%'") == [
        ("another user of CUPTI had the buffers", 23, True)] * 2
    # Its waits are seen while it has the buffers, too.
    assert lab.rows(recording, "SELECT name, count FROM trace.regions WHERE source = 'device'") == [("cudaDeviceSynchronize", 7)]


def test_a_profiler_that_ends_cupti_is_not_disturbed(lab):
    done, recording = lab.record("finalize", lab.program("profiler", "one"), "finalize")
    assert (done.returncode, done.stdout, done.stderr) == (0, "40 kernels, 0 others, calls seen, clock right\n", "")
    assert lab.rows(recording, "SELECT name, count(*) FROM device.ops GROUP BY ALL ORDER BY 1") == [("after", 30), ("before", 10)]
    assert lab.rows(recording, "SELECT text FROM trace.marks") == [
        ("another user of CUPTI has ended it: kymo records no more CUDA work",)]


def test_where_cupti_has_several_subscribers_nothing_is_lost(lab):
    done, recording = lab.record("several", lab.program("profiler", "several"), cupti="several")
    assert (done.returncode, done.stdout, done.stderr) == (0, "40 kernels, 0 others, calls seen, clock right\n", "")
    assert lab.rows(recording, "SELECT name, zone, count(*), min(error_ns) >= 1000 FROM device.ops GROUP BY ALL ORDER BY 1") == [
        ("after", "loop", 35, True), ("before", "loop", 16, True), ("during", "loop", 40, True)]
    assert lab.rows(recording, "SELECT count(*) FROM kymo.gaps WHERE cause LIKE 'another%'") == [(0,)]


def test_sigkill_keeps_every_record_that_cupti_has_returned(lab):
    """Only buffers that are being read when the signal comes may be lost: one by CUPTI's thread, one by a thread that flushes."""
    recording, counts = lab.folder / "run-killed", lab.folder / "counts"
    child = subprocess.Popen([KYMO, "run", "-q", "-o", recording, "--device", "--", lab.program("workload"), "endless", "/dev/null"],
                             stdout=subprocess.PIPE, text=True,
                             env={**lab.environment, "LD_LIBRARY_PATH": str(lab.folder / "one"), "STANDIN_COUNTS": str(counts)})
    try:
        assert child.stdout.readline() == "at work\n"
        pid = int(lab.rows(recording, "SELECT pid FROM kymo.processes WHERE role = 'target'")[0][0])
        os.kill(pid, signal.SIGKILL)
        assert child.wait(60) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()
    handed, returned = struct.unpack("QQ", counts.read_bytes())
    kept, bad = lab.rows(recording, "SELECT count(*), count(*) FILTER (name <> 'tiny' OR end_ns < start_ns OR call IS NULL) "
                         "FROM device.ops")[0]
    assert bad == 0 and returned > 10000
    assert returned <= kept <= handed and handed - returned <= 2 * 262144 // 160, (returned, kept, handed)
