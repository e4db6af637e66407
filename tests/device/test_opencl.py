"""The layer for OpenCL: unmodified programs, on PoCL."""
import itertools
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import KYMO, ROOT


@pytest.fixture(scope="module")
def two_queues(opencl):
    """What OpenCL itself said of each operation, and the recording."""
    done, recording = opencl.record("two", opencl.program("two_queues"))
    assert (done.returncode, done.stderr) == (0, "")
    said = [line.split() for line in done.stdout.splitlines()]
    return [(int(queue), name, *map(int, times)) for queue, name, *times in said], recording


def recorded(opencl, recording):
    return opencl.rows(recording, "SELECT core, name, queued_ns, submit_ns, start_ns, end_ns, error_ns FROM device.ops "
                       "ORDER BY core, queued_ns")


def test_every_operation_has_the_times_that_opencl_gives_itself(opencl, two_queues):
    said, recording = two_queues
    rows = recorded(opencl, recording)
    assert [row[:2] for row in rows] == [row[:2] for row in said]
    for row, own in zip(rows, said):
        spans = [b - a for a, b in itertools.pairwise(row[2:6])]
        own_spans = [b - a for a, b in itertools.pairwise(own[2:6])]
        assert all(abs(a - b) <= 10 + b / 1e5 for a, b in zip(spans, own_spans)), (row, own)


def test_the_two_clocks_are_apart_by_the_same_for_all_within_the_stated_error(opencl, two_queues):
    said, recording = two_queues
    rows = recorded(opencl, recording)
    apart = [row[4] - own[4] for row, own in zip(rows, said)]
    assert max(apart) - min(apart) <= 2 * max(row[6] for row in rows) + 2


def test_queues_and_models_add_up(opencl, two_queues):
    _, recording = two_queues
    assert opencl.rows(recording, "SELECT queue, ops FROM device.queues ORDER BY core") == [("queue 0", 8), ("queue 1", 8)]
    assert opencl.rows(recording, "SELECT model, core, executions FROM device.models ORDER BY core") == [
        ("twice +1", 0, 6), ("twice +1", 1, 6)]
    for busy, idle, causes, outside in opencl.rows(
            recording, "SELECT busy_ns, idle_ns, host_late_ns + sync_ns + dependency_ns + launch_ns, first_ns - min(first_ns)"
            " OVER () + max(last_ns) OVER () - last_ns FROM device.queues"):
        assert busy > 0 and idle == causes + outside


def test_what_the_layer_costs_is_in_the_overhead(opencl, two_queues):
    _, recording = two_queues
    assert opencl.rows(recording, "SELECT events, cost_ns_per_event > 0, total_ns > 0, pct > 0 FROM kymo.overhead "
                       "WHERE source = 'device'") == [(18, True, True, True)]  # 16 operations, 2 waits


def test_a_wait_of_the_host_is_a_zone_and_a_row(opencl, two_queues):
    _, recording = two_queues
    assert opencl.rows(recording, "SELECT name, count FROM trace.regions WHERE source = 'device'") == [("clFinish", 2)]
    assert opencl.rows(recording, "SELECT count(*) FROM device.waits") == [(2,)]


KINDS = [("fill", "fill", 4096), ("kernel", "twice", 0), ("copy", "copy", 100), ("copy", "copy", 64),
         ("marker", "marker", 0), ("barrier", "barrier", 0), ("migrate", "migrate", 4096), ("native", "native", 0),
         ("map", "map", 512), ("unmap", "unmap", 0), ("read", "read", 4096), ("write", "write", 2048), ("read", "read", 64),
         ("write", "write", 64)]


@pytest.fixture(scope="module")
def kinds(opencl):
    done, recording = opencl.record("kinds", opencl.program("kinds"))
    assert (done.returncode, done.stderr) == (0, "")
    return done, recording


def test_each_kind_of_command_is_told_apart(opencl, kinds):
    assert opencl.rows(kinds[1], "SELECT kind, name, bytes FROM device.ops ORDER BY queued_ns") == KINDS


def test_memory_comes_and_goes(opencl, kinds):
    assert opencl.rows(kinds[1], "SELECT kind, bytes, live_bytes, pool FROM device.memory ORDER BY ts_ns") == [
        ("allocation", 4096, 4096, "buffer"), ("allocation", 4096, 8192, "buffer"), ("free", 4096, 4096, "buffer"),
        ("free", 4096, 0, "buffer")]


# Of each group that a device may lack: what it prints then, and its commands with kind, bytes, whether they depend and wait.
COMMANDS = [
    ("images: not supported", [
        ("clEnqueueWriteImage", "write", 512, False, False), ("clEnqueueFillImage", "fill", 64, False, False),
        ("clEnqueueCopyImage", "copy", 512, False, False), ("clEnqueueCopyImageToBuffer", "copy", 512, False, False),
        ("clEnqueueCopyBufferToImage", "copy", 512, False, False), ("clEnqueueMapImage", "map", 512, False, True),
        ("clEnqueueUnmapMemObject", "unmap", 0, False, False), ("clEnqueueReadImage", "read", 512, False, True)]),
    ("svm: not supported", [
        ("clEnqueueSVMMemFill", "fill", 4096, False, False), ("clEnqueueSVMMemcpy", "copy", 4096, False, True),
        ("clEnqueueSVMMap", "map", 256, False, True), ("clEnqueueSVMUnmap", "unmap", 0, False, False),
        ("clEnqueueSVMMigrateMem", "migrate", 4096, False, False), ("clEnqueueNDRangeKernel", "kernel", 0, False, False),
        ("clEnqueueSVMMemcpy", "copy", 4096, False, True), ("clEnqueueSVMFree", "other", 0, False, False)]),
    ("", [
        ("clEnqueueFillBuffer", "fill", 4096, False, False), ("clEnqueueBarrierWithWaitList", "barrier", 0, True, False),
        ("clEnqueueMarkerWithWaitList", "marker", 0, True, False), ("clEnqueueTask", "kernel", 0, False, False)]),
    ("native kernels: not supported", [("clEnqueueNativeKernel", "native", 0, False, False)]),
    ("", [
        ("clEnqueueFillBuffer", "fill", 512, True, False), ("clEnqueueCopyBuffer", "copy", 128, False, False),
        ("clEnqueueMigrateMemObjects", "migrate", 2048, False, False), ("clEnqueueReadBuffer", "read", 2048, False, True),
        ("clEnqueueReadBuffer", "read", 4096, False, True)]),
]


@pytest.fixture(scope="module")
def commands(opencl):
    """What the program printed, and the recording."""
    done, recording = opencl.record("commands", opencl.program("commands"), "times")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines(), recording


def supported(lines):
    return [command for lacking, group in COMMANDS if not lacking or lacking not in lines for command in group]


def test_commands_that_few_programs_use_have_their_kind_and_bytes(opencl, commands):
    lines, recording = commands
    assert opencl.rows(recording, "SELECT kind, bytes, depends, blocking FROM device.ops ORDER BY queued_ns") == [
        command[1:] for command in supported(lines)]


def test_their_times_are_those_that_opencl_gives_itself(opencl, commands):
    lines, recording = commands
    said = [(words[0], *map(int, words[1:])) for words in map(str.split, lines) if len(words) == 5 and words[0].startswith("cl")]
    rows = opencl.rows(recording, "SELECT queued_ns, submit_ns, start_ns, end_ns FROM device.ops ORDER BY queued_ns")
    assert [name for name, *_ in said] == [name for name, *_ in supported(lines)]
    for row, (name, *own) in zip(rows, said):
        for (a, b), (c, d) in zip(itertools.pairwise(row), itertools.pairwise(own)):
            assert abs((b - a) - (d - c)) <= 10 + (d - c) / 1e5, (name, row, own)


def test_images_and_shared_memory_come_and_go_and_a_part_of_a_buffer_takes_none(opencl, commands):
    lines, recording = commands
    expected = [("buffer", 1 if "images: not supported" in lines else 2, 0)]
    expected += [("image", 2, 0)] if "images: not supported" not in lines else []
    expected += [("svm", 2, 0)] if "svm: not supported" not in lines else []
    assert opencl.rows(recording, "SELECT pool, count(*) FILTER (kind = 'allocation'), sum(CASE kind WHEN 'free' THEN -bytes ELSE "
                       "bytes END)::BIGINT FROM device.memory GROUP BY 1 ORDER BY 1") == expected


def test_calls_that_wait_are_marked(opencl, kinds):
    assert opencl.rows(kinds[1], "SELECT kind, bytes FROM device.ops WHERE blocking ORDER BY queued_ns") == [
        ("map", 512), ("read", 4096)]


@pytest.mark.parametrize("name", ["kinds", "commands", "threads", "answers"])
def test_a_program_says_the_same_with_and_without(opencl, name):
    plain = opencl.plain(opencl.program(name))
    done, _ = opencl.record(f"same-{name}", opencl.program(name))
    assert plain.returncode == 0, plain.stderr
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr)


def test_threads_contexts_and_queues_out_of_order_lose_nothing(opencl):
    done, recording = opencl.record("threads", opencl.program("threads"))
    assert done.returncode == 0
    # A fill, 200 kernels and a read, of four queues; the kernels of two of them each depend on the one before, and of the
    # others the first on the user's event.
    assert opencl.rows(recording, "SELECT kind, count(*), sum(depends::INT) FROM device.ops GROUP BY 1 ORDER BY 1") == [
        ("fill", 4, 0), ("kernel", 800, 402), ("read", 4, 0)]
    assert opencl.rows(recording, "SELECT count(DISTINCT queue), count(DISTINCT tid), count(DISTINCT model), "
                       "sum((status <> 0)::INT), count(*) FILTER (start_ns IS NULL OR end_ns < start_ns) FROM device.ops "
                       "WHERE kind = 'kernel'") == [(4, 4, 2, 0, 0)]
    assert opencl.rows(recording, "SELECT count(*) FROM kymo.gaps") == [(0,)]


def test_operations_belong_to_the_zone_that_queued_them(opencl):
    done, recording = opencl.record("zones", opencl.program("zones"))
    assert done.returncode == 0, done.stderr
    assert opencl.rows(recording, "SELECT name, zone, step FROM device.ops ORDER BY queued_ns") == [
        ("write", "load", 0), ("twice", "forward", 0), ("twice", "forward", 1), ("twice", "forward", 2)]
    assert opencl.rows(recording, "SELECT count(*) FROM device.ops o JOIN trace.zones z ON z.tid = o.tid AND z.name = o.zone "
                       "AND z.start_ns = o.zone_start_ns") == [(4,)]


def test_a_launch_has_the_whole_path_of_zones(opencl):
    """One that was never left is in it, too; without a zone there is none."""
    done, recording = opencl.record("paths", opencl.program("launches"))
    assert done.returncode == 0, done.stderr
    answer = opencl.rows(recording, "SELECT step, path, zone, name, module, function FROM device.launches ORDER BY queued_ns")
    step = [(["load"], "load", "write"), (["load", "compute"], "compute", "twice"), (["compute"], "compute", "twice")]
    expected = [(0, ["compute"], "compute", "twice"), *[(0, *row) for row in step], *[(1, *row) for row in step],
                (1, None, None, "write"), (1, ["never ends", "compute"], "compute", "twice")]
    assert [row[:4] for row in answer] == expected
    assert {row[4:] for row in answer} == {(None, None)}
    assert opencl.rows(recording, "SELECT count(*) FROM device.launches l JOIN device.ops o ON o.queued_ns = l.queued_ns "
                       "AND o.start_ns = l.start_ns AND o.end_ns - o.start_ns = l.duration_ns") == [(9,)]


def test_a_kernel_that_lies_where_another_lay_has_its_own_name(opencl):
    done, recording = opencl.record("reused", opencl.program("reused"))
    assert done.returncode == 0, done.stderr
    assert opencl.rows(recording, "SELECT name FROM device.ops ORDER BY queued_ns") == [("twice",), ("spin",)] * 10


def test_nothing_is_recorded_without_the_option(opencl):
    done, recording = opencl.record("without", opencl.program("kinds"), options=())
    assert done.returncode == 0
    assert opencl.rows(recording, "SELECT count(*) FROM device.ops") == [(0,)]


def test_what_was_recorded_outlives_an_exit_in_the_midst(opencl):
    done, recording = opencl.record("exit", opencl.program("endless"), "once")
    assert done.returncode == 7
    assert opencl.rows(recording, "SELECT count(*) FROM device.ops WHERE name = 'twice'") == [(301,)]


def test_what_was_recorded_outlives_sigkill(opencl):
    recording = opencl.folder / "run-killed"
    child = subprocess.Popen([KYMO, "run", "-q", "-o", recording, "--device", "--", opencl.program("endless")],
                             stdout=subprocess.PIPE, text=True, env=opencl.environment)
    try:
        assert child.stdout.readline() == "at work\n"
        pid = int(opencl.rows(recording, "SELECT pid FROM kymo.processes WHERE role = 'target'")[0][0])
        os.kill(pid, signal.SIGKILL)
        assert child.wait(60) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()
    ops, bad = opencl.rows(recording, "SELECT count(*), count(*) FILTER (end_ns < start_ns OR name <> 'twice') "
                           "FROM device.ops")[0]
    assert ops >= 200 and bad == 0


def test_devices_are_turned_off_and_on_while_it_runs(opencl):
    recording = opencl.folder / "run-config"
    child = subprocess.Popen([KYMO, "run", "-q", "-o", recording, "--device", "--", opencl.program("endless")],
                             stdout=subprocess.PIPE, text=True, env=opencl.environment)

    def count():
        return opencl.rows(recording, "SELECT count(*) FROM device.ops")[0][0]

    def await_more(than):
        for _ in range(600):
            if count() > than:
                return True
            time.sleep(0.05)
        return False

    try:
        assert child.stdout.readline() == "at work\n"
        pid = opencl.rows(recording, "SELECT pid FROM kymo.processes WHERE role = 'target'")[0][0]
        assert opencl.plain(KYMO, "config", pid, "device=off").returncode == 0
        time.sleep(0.2)  # what was under way may end yet
        quiet = count()
        time.sleep(0.2)
        assert count() == quiet
        assert opencl.plain(KYMO, "config", pid, "device=on").returncode == 0
        assert await_more(quiet)
        os.kill(pid, signal.SIGKILL)
        child.wait(60)
    finally:
        child.kill()
        child.wait()


def test_clinfo_says_the_same(opencl):
    if opencl.plain("which", "clinfo").returncode:
        pytest.skip("clinfo is not installed")
    plain = opencl.plain("clinfo")
    done, _ = opencl.record("clinfo", "clinfo")
    assert (done.returncode, done.stdout) == (0, plain.stdout)


def test_clpeak_measures_and_every_kernel_of_it_is_there(opencl):
    if opencl.plain("which", "clpeak").returncode:
        pytest.skip("clpeak is not installed")
    done, recording = opencl.record("clpeak", "clpeak", "--kernel-latency")
    assert done.returncode == 0
    assert re.search(r"Kernel launch latency : [0-9.]+ us", done.stdout)
    assert opencl.rows(recording, "SELECT kind, count(*), max(error_ns) < 1000 FROM device.ops GROUP BY 1") == [
        ("kernel", 20002, True)]


def test_the_layer_that_the_user_has_set_stays(opencl):
    script = 'echo "$OPENCL_LAYERS"'
    done = subprocess.run([KYMO, "run", "-q", "--force", "-o", opencl.folder / "run-layers", "--device", "--", "sh", "-c",
                           script], capture_output=True, text=True,
                          env={**opencl.environment, "OPENCL_LAYERS": "/their/layer.so"}, timeout=60, check=False)
    assert done.stdout.endswith("libkymo_opencl.so:/their/layer.so\n")


@pytest.fixture(scope="module")
def sanitized(opencl):
    """The environment of a program whose layer is built with AddressSanitizer; all else is as it is."""
    layer = opencl.folder / "libkymo_opencl_asan.so"
    made = opencl.plain("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-fsanitize=address",
                        "-fvisibility=hidden", f"-I{ROOT}/include", f"-I{ROOT}/src",
                        "-o", layer, *sorted((ROOT / "src/record/opencl").glob("*.c")),
                        f"-L{ROOT}/build", "-lkymo", f"-Wl,-rpath,{ROOT}/build")
    runtime = opencl.plain("cc", "-print-file-name=libasan.so").stdout.strip()
    if made.returncode or "/" not in runtime:
        pytest.skip(f"cc builds nothing with -fsanitize=address here: {made.stderr[-200:]}")
    return {**opencl.environment, "LD_PRELOAD": runtime, "OPENCL_LAYERS": str(layer), "KYMO": "on", "KYMO_DEVICE": "on",
            "ASAN_OPTIONS": "detect_leaks=0:exitcode=77"}  # PoCL and LLVM keep what they have until the end


@pytest.mark.parametrize("name, ops", [("commands", 26), ("threads", 808)])
def test_the_layer_does_no_wrong_to_memory_under_pocl(opencl, sanitized, tmp_path, name, ops):
    live = tmp_path / "live"
    live.mkdir(mode=0o700)
    done = subprocess.run([opencl.program(name)], capture_output=True, text=True, env={**sanitized, "KYMO_DIR": str(live)},
                          timeout=120, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", opencl.plain(opencl.program(name)).stdout)
    (recording,) = live.iterdir()
    count = opencl.rows(recording, "SELECT count(*) FROM device.ops")[0][0]
    assert count == ops or "not supported" in done.stdout
