"""kymo.profiler on every CPython that the extensions are built for."""
import pytest
from conftest import ROOT, run
from pythons import PYTHONS

PROGRAM = """
import gc, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
import kymo
from kymo.profiler import CUDATimer, MetricsCollector, MemoryTracker, StreamProfiler, Reporter, compare_runs

timer, collector = CUDATimer(), MetricsCollector()
def deep(n):
    with timer.measure("deep"):
        return deep(n - 1) if n else 0
def steps():
    with timer.measure("generator"):
        yield
def work():
    for _ in range(300):
        deep(3)
    one, two = steps(), steps()
    next(one), next(two), list(one), list(two)
with MemoryTracker(interval=5) as memory, StreamProfiler(num_streams=3) as streams:
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
for i in range(20):
    with collector.measure_time("iteration"):
        collector.record("loss", i)
pid = os.fork()
with timer.measure("after"):
    pass
if not pid:
    assert {name: row["count"] for name, row in timer.all_times().items()} == {"after": 1}
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert {name: row["count"] for name, row in timer.all_times().items()} == {"deep": 3600, "generator": 6, "after": 1}
assert sum(row["ops"] for row in streams.get_stats()["streams"]) >= 900
assert memory.get_stats()["peak_allocated"] > 0
Reporter(collector).save_json("r.json")
assert abs(compare_runs("r.json", collector)["speedup"] - 1) < 1e-3
for _ in range(50):
    again = MetricsCollector()
    again.itself = again
    with again.measure_time("x"): pass
del again
gc.collect()
for word in ("stop", "get_elapsed"):
    try:
        getattr(timer, word)("never")
    except ValueError:
        continue
    raise SystemExit(word)
print(kymo.query("SELECT count FROM trace.regions WHERE name = 'deep'")[0]["count"])
"""


@pytest.mark.parametrize("version", sorted(PYTHONS))
def test_the_profiler_works_on(version, home, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run([PYTHONS[version], "-W", "ignore", "program.py", ROOT / "build/python"], home, tmp_path)
    assert done.stdout == "3600\n"
