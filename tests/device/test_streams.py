"""StreamProfiler of kymo.profiler, on queues of devices."""
import ast
import sys

import pytest

TOLD = """
import ctypes, time
from kymo.profiler import CUDATimer, StreamProfiler
lib = ctypes.CDLL("libkymo.so.0")

class Adapter(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("name", ctypes.c_char_p), ("context", ctypes.c_void_p), ("now", ctypes.c_void_p),
                ("flush", ctypes.c_void_p)]

class Launch(ctypes.Structure):
    _fields_ = [("ticks", ctypes.c_uint64), ("zone_start_ticks", ctypes.c_uint64), ("zone", ctypes.c_uint32),
                ("thread", ctypes.c_uint32), ("step", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]

class Op(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t), ("queue", ctypes.c_uint32), ("model", ctypes.c_uint32), ("kind", ctypes.c_uint32),
                ("name", ctypes.c_uint32), ("queued", ctypes.c_uint64), ("submit", ctypes.c_uint64), ("start", ctypes.c_uint64),
                ("end", ctypes.c_uint64), ("moved_bytes", ctypes.c_uint64), ("correlation", ctypes.c_uint64), ("launch", Launch),
                ("execution", ctypes.c_uint64), ("status", ctypes.c_int32), ("flags", ctypes.c_uint32)]

KERNEL, MARKER, EXECUTION, WAIT, HOST_TICKS, NO_TIME = 0, 8, 12, 13, 2, 2**64 - 1

def ticks():
    launch = Launch()
    lib.kymo_device_launch(ctypes.byref(launch))
    return launch.ticks

def tell(queue, kind, start, end):
    op = Op(bytes=ctypes.sizeof(Op), queue=queue, kind=kind, queued=NO_TIME, submit=NO_TIME, start=start, end=end, flags=HOST_TICKS)
    assert lib.kymo_device_op(ctypes.byref(op)) == 0

adapter = Adapter(ctypes.sizeof(Adapter), b"told", None, None, None)
card = lib.kymo_device_add(ctypes.byref(adapter), 0, b"card")
one, two = (lib.kymo_device_queue_add(card, name, 2**32 - 1) for name in (b"one", b"two"))
"""

BLOCK = """
before = ticks()
with StreamProfiler(num_streams=4) as profiler:
    start = ticks()
    time.sleep(0.02)
    eighth = (ticks() - start) // 8
    at = lambda n: start + n * eighth
    tell(two, KERNEL, at(6), at(7))     # told in no order
    tell(one, KERNEL, at(0), at(4))
    tell(two, KERNEL, at(2), at(4))
    tell(one, KERNEL, at(1), at(3))     # within the other: busy once
    tell(two, MARKER, at(0), at(8))
    tell(two, EXECUTION, at(0), at(8))
    tell(two, WAIT, at(0), at(8))
    tell(two, KERNEL, before - 1000, before)
after = profiler.get_stats()
tell(one, KERNEL, at(4), at(8))         # nobody looks any more
"""


def run(lab, name, text, options=("--device",)):
    program = lab.folder / f"{name}.py"
    program.write_text(text)
    done, _ = lab.record(name, sys.executable, program, options=options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def told(lab):
    pytest.importorskip("kymo")
    return run(lab, "told", TOLD + BLOCK + """
assert [row["ops"] for row in after["streams"]] == [row["ops"] for row in profiler.get_stats()["streams"]]
unit = eighth * after["busy_ms"] / (7 * eighth)
print({**after, "unit": unit})
profiler.print_stream_efficiency()
""").splitlines()


def test_queues_are_rows_with_what_ran_in_the_block(told):
    stats = ast.literal_eval(told[0])
    assert [(row["kind"], row["device"], row["name"], row["ops"], round(row["busy_ms"] / stats["unit"], 3))
            for row in stats["streams"]] == [
        ("device", "card", "one", 2, 4.0), ("device", "card", "two", 2, 3.0), ("none", None, "(idle)", 0, 0.0),
        ("none", None, "(idle)", 0, 0.0)]
    for row in stats["streams"]:
        assert row["busy_ms"] + row["idle_ms"] == pytest.approx(stats["wall_ms"])
    # one: before and after its operation; two: before, between and after
    assert [row["gaps"] for row in stats["streams"][:2]] == [2, 3]
    assert stats["streams"][1]["longest_gap_ms"] >= 2 * stats["unit"] * 0.999


def test_queues_overlap_by_the_time_that_both_are_busy(told):
    stats = ast.literal_eval(told[0])
    assert stats["overlap"] == stats["device_overlap"] == pytest.approx(7 / 5, rel=1e-4)
    assert stats["notes"] == []


def test_the_table_has_queues(told):
    assert told[1].startswith("Streams: ") and told[1].endswith("overlap 1.40, of devices 1.40")
    assert [line.split()[:2] for line in told[3:5]] == [["0", "one"], ["1", "two"]]
    assert max(map(len, told[1:])) <= 80


def test_queues_come_before_threads_and_both_count(lab):
    pytest.importorskip("kymo")
    said = run(lab, "both", TOLD + """
timer = CUDATimer()
with StreamProfiler(num_streams=1) as profiler:
    with timer.measure("host"):
        start = ticks()
        time.sleep(0.01)
        tell(one, KERNEL, start, ticks())
stats = profiler.get_stats()
print(stats["streams"][0]["name"], len(stats["streams"]), stats["notes"], 1 < stats["overlap"] < 2, stats["device_overlap"])
""")
    assert said == "one 1 ['1 more are not shown; use StreamProfiler(num_streams=2)'] True 1.0\n"


def test_without_device_recording_there_is_no_queue_and_it_says_so(lab):
    pytest.importorskip("kymo")
    said = run(lab, "off", TOLD + BLOCK + 'print([row["kind"] for row in after["streams"]], after["notes"][0][:12])', options=())
    assert said == "['none', 'none', 'none', 'none'] no activity:\n"


OPENCL = """
import ctypes
from kymo.profiler import StreamProfiler
cl = ctypes.CDLL("libOpenCL.so.1")
for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
    getattr(cl, name).restype = ctypes.c_void_p

def check(status):
    assert status == 0, status

platform, device = ctypes.c_void_p(), ctypes.c_void_p()
check(cl.clGetPlatformIDs(1, ctypes.byref(platform), None))
check(cl.clGetDeviceIDs(platform, ctypes.c_uint64(2**32 - 1), 1, ctypes.byref(device), None))
context = ctypes.c_void_p(cl.clCreateContext(None, 1, ctypes.byref(device), None, None, None))
queues = [ctypes.c_void_p(cl.clCreateCommandQueue(context, device, ctypes.c_uint64(0), None)) for _ in range(2)]
data = ctypes.create_string_buffer(1 << 20)
buffer = ctypes.c_void_p(cl.clCreateBuffer(context, ctypes.c_uint64(1), ctypes.c_size_t(len(data)), None, None))
with StreamProfiler(num_streams=3) as profiler:
    for queue, times in zip(queues, (5, 3)):
        for _ in range(times):
            check(cl.clEnqueueWriteBuffer(queue, buffer, 0, ctypes.c_size_t(0), ctypes.c_size_t(len(data)), data, 0, None, None))
    for queue in queues:
        check(cl.clFinish(queue))
streams = profiler.get_stats()["streams"]
print(sorted((row["kind"], row["name"], row["ops"]) for row in streams), all(row["busy_ms"] > 0 for row in streams[:2]))
"""


def test_queues_of_an_opencl_program_are_seen(opencl):
    pytest.importorskip("kymo")
    assert run(opencl, "opencl_streams", OPENCL) == (
        "[('device', 'queue 0', 5), ('device', 'queue 1', 3), ('none', '(idle)', 0)] True\n")
