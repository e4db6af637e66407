"""System metrics: host.*"""
import re
import shutil
import subprocess

import pytest
from probe_tools import rows

THREADS = """
import threading, time
def spin():
    end = time.thread_time() + 0.3
    while time.thread_time() < end: pass
event = threading.Event()
for _ in range(5): threading.Thread(target=event.wait, daemon=True).start()
thread = threading.Thread(target=spin)
thread.start()
print(thread.native_id, flush=True)
thread.join()
"""

NVML = """
#include <stddef.h>
struct utilization { unsigned gpu, memory; };
struct memory { unsigned long long total, free, used; };
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *out) { *out = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out) { *out = (char *)NULL + i + 1; return 0; }
int nvmlDeviceGetUtilizationRates(void *d, struct utilization *out) { out->gpu = 40 + (char *)d - (char *)NULL; return 0; }
int nvmlDeviceGetMemoryInfo(void *d, struct memory *out) { out->total = 1000; out->free = 400; out->used = 600; return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *out) { *out = 250500; return d == (char *)NULL + 1 ? 0 : 3; }
"""


def record(kymo, *command, env=None, rate="0.05"):
    done = kymo("run", "-q", "-o", "run", "--", *command, env={"KYMO_SYSTEM_RATE": rate, **(env or {})})
    assert done.status == 0, done.err
    return done.out


def test_the_thread_that_worked_is_told_from_those_that_waited(kymo):
    tid = int(record(kymo, "python3", "-c", THREADS))
    busiest = rows(kymo, "run", "SELECT tid, max(cpu_ns) AS ns FROM host.threads GROUP BY tid ORDER BY ns DESC LIMIT 1")
    assert busiest[0]["tid"] == tid and 50e6 < busiest[0]["ns"] < 2e9
    states = rows(kymo, "run", "SELECT DISTINCT state FROM host.threads WHERE tid <> pid")
    assert {row["state"] for row in states} <= {"running", "sleeping", "blocked"}
    # Those that wait have a row when they are first seen, and one of 0 %; then no more.
    most = rows(kymo, "run", f"SELECT max(n) AS n FROM (SELECT count(*) AS n FROM host.threads WHERE tid NOT IN ({tid}, pid) "
                "GROUP BY tid)")
    assert most[0]["n"] <= 4


POOL = """
import multiprocessing, time
def work(size):
    block = bytearray(size)
    end = time.process_time() + 0.4
    while time.process_time() < end: pass
    time.sleep(0.5)
if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        pool.map(work, [100_000_000] * 3, chunksize=1)
"""


def test_memory_and_cpu_are_those_of_all_processes_together(kymo, tmp_path):
    (tmp_path / "pool.py").write_text(POOL)
    record(kymo, "python3", tmp_path / "pool.py")
    most = rows(kymo, "run", "SELECT max(rss_bytes) AS rss, max(processes) AS n FROM host.program")[0]
    alone = rows(kymo, "run", "SELECT max(peak_bytes) AS peak FROM host.process")[0]["peak"]
    assert most["n"] == 4 and most["rss"] > 300e6 and alone < 200e6
    memory = next(line for line in kymo("report", "run").out.splitlines() if line.startswith("  memory: "))
    assert memory.endswith("; 4 processes")
    assert float(re.search(r"peak (\d+) MB", memory)[1]) > 300
    # 1.2 s of CPU time, of which the parent itself used next to nothing.
    used = float(re.search(r"CPU ([\d.]+) % of a core", memory)[1]) / 100
    seconds = rows(kymo, "run", "SELECT duration_ns / 1e9 AS s FROM kymo.runs")[0]["s"]
    assert used * seconds > 1.0


FREED = """
import time
block = bytearray(400_000_000)
time.sleep(0.3)
del block
time.sleep(0.3)
"""


def test_memory_at_the_end_is_not_the_peak(kymo):
    record(kymo, "python3", "-c", FREED)
    memory = next(line for line in kymo("report", "run").out.splitlines() if line.startswith("  memory: "))
    found = re.search(r"peak (\d+) MB at .*, (\d+) MB at the end", memory)
    assert int(found[1]) > 400 and int(found[2]) < 100


PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'b = bytearray(500_000_000)'])"


def test_the_peak_of_a_child_is_not_its_parents(kymo):
    record(kymo, "python3", "-c", PARENT, rate="10")  # the child lives between two samples
    target = rows(kymo, "run", "SELECT max(peak_bytes) AS peak FROM host.process SEMI JOIN kymo.runs USING (pid)")[0]["peak"]
    assert target < 200e6


MANY = """
import threading
threading.stack_size(65536)
event = threading.Event()
threads = [threading.Thread(target=event.wait) for _ in range(1100)]
for thread in threads: thread.start()
event.wait(1)  # looked at meanwhile, some times
event.set()
for thread in threads: thread.join()
print("all ended")
"""


def test_of_more_threads_than_are_looked_at_the_rest_is_left_out_and_nothing_else(kymo):
    assert record(kymo, "python3", "-c", MANY, env={"MALLOC_PERTURB_": "85"}).endswith("all ended\n")
    seen, = rows(kymo, "run", "SELECT count(DISTINCT tid) AS n FROM host.threads")
    assert 0 < seen["n"] <= 1101


def test_cpu_of_the_threads_adds_up_to_that_of_the_process(kymo):
    record(kymo, "python3", "-c", THREADS)
    total, = rows(kymo, "run", "SELECT sum(ns) AS ns FROM (SELECT max(cpu_ns) AS ns FROM host.threads GROUP BY tid)")
    assert 150e6 < total["ns"] < 5e9


@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
def test_the_network_is_that_of_the_processs_own_namespace(kymo):
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode:
        pytest.skip("this user may not make a network namespace")
    record(kymo, "unshare", "-rn", "sleep", "0.5")
    last = rows(kymo, "run", "SELECT interface FROM host.network WHERE ts_ns > 200000000")
    assert {row["interface"] for row in last} <= {"lo"}


def test_the_groups_memory_and_pressure_are_there_where_the_kernel_tells(kymo):
    record(kymo, "sleep", "0.4")
    got = rows(kymo, "run", "FROM host.cgroup ORDER BY ts_ns")
    assert got and all(row["path"].startswith("/") or len(row["path"]) == 63 for row in got)
    for row in got:
        for name in ("cpu_some_pct", "cpu_full_pct", "memory_some_pct", "memory_full_pct", "io_some_pct", "io_full_pct"):
            assert row[name] is None or 0 <= row[name] <= 100
        assert row["memory_limit_bytes"] is None or row["memory_limit_bytes"] > 0


def test_gpus_are_read_through_the_vendors_library(kymo):
    """By a stand-in for it: there need be no GPU here."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler for the stand-in of libnvidia-ml.so.1")
    (kymo.cwd / "nvml.c").write_text(NVML)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", kymo.cwd / "libnvidia-ml.so.1", kymo.cwd / "nvml.c"], check=True)
    record(kymo, "sleep", "0.5", env={"LD_LIBRARY_PATH": str(kymo.cwd)})
    assert rows(kymo, "run", "SELECT DISTINCT device, util_pct, used_bytes, total_bytes, power_w FROM host.gpu "
                "ORDER BY device") == [
        {"device": 0, "util_pct": 41, "used_bytes": 600, "total_bytes": 1000, "power_w": 250.5},
        {"device": 1, "util_pct": 42, "used_bytes": 600, "total_bytes": 1000, "power_w": None}]


def test_a_gpu_library_that_hangs_holds_nothing_up(kymo):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler for the stand-in of libnvidia-ml.so.1")
    (kymo.cwd / "nvml.c").write_text(NVML.replace("nvmlInit_v2(void) {", "nvmlInit_v2(void) { for (;;) pause();")
                                     .replace("#include <stddef.h>", "#include <stddef.h>\n#include <unistd.h>"))
    subprocess.run([compiler, "-shared", "-fPIC", "-o", kymo.cwd / "libnvidia-ml.so.1", kymo.cwd / "nvml.c"], check=True)
    record(kymo, "sleep", "0.2", env={"LD_LIBRARY_PATH": str(kymo.cwd)})
    assert rows(kymo, "run", "SELECT count(*) AS n FROM host.gpu") == [{"n": 0}]
    assert rows(kymo, "run", "SELECT count(*) > 1 AS some FROM host.process") == [{"some": True}]
