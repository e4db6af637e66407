"""What a measurement costs, less the empty loop: JSON lines for bench/run. Interleaved, the median of each."""
import json
import statistics
import sys
import time

import kymo
from kymo.profiler import CUDATimer, MetricsCollector

CALLS = 1_000  # less than a turn on a busy processor
timer, collector = CUDATimer(), MetricsCollector()
region = kymo.region("region")


def nothing():
    for _ in range(CALLS):
        pass


def measure():
    for _ in range(CALLS):
        with timer.measure("x"):
            pass


def get_elapsed():
    for _ in range(CALLS):
        timer.get_elapsed("x")


def stats():
    for _ in range(CALLS):
        timer.stats("x")


def record():
    for _ in range(CALLS):
        collector.record("loss", 0.5)


def a_region():
    for _ in range(CALLS):
        with region:
            pass


ROWS = [nothing, measure, get_elapsed, stats, record, a_region]
times = {function.__name__: [] for function in ROWS}
for _ in range(int(sys.argv[1])):
    for function in ROWS:
        start = time.perf_counter_ns()
        function()
        times[function.__name__].append((time.perf_counter_ns() - start) / CALLS)
empty = statistics.median(times["nothing"])
for name, values in times.items():
    print(json.dumps({"key": f"profiler.{name}", "value": statistics.median(values) - (name != "nothing") * empty}))
