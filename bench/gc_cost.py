"""What a garbage collection costs more while it is recorded: JSON lines for bench/run. By turns, the median of each."""
import gc
import json
import statistics
import sys
import time

from kymo import _auto

TIMES = 500  # less than a turn on a busy processor
gc.disable()
recorder = _auto.extension("_gc")
recorder.arm()
for _ in range(200):  # after a millisecond they are recorded
    gc.collect()


def collect():
    start = time.perf_counter_ns()
    for _ in range(TIMES):
        gc.collect(0)
    return (time.perf_counter_ns() - start) / TIMES


times = {"recorded": [], "plain": []}
for _ in range(int(sys.argv[1])):
    recorder.arm()
    times["recorded"].append(collect())
    recorder.disarm()
    times["plain"].append(collect())
plain = statistics.median(times["plain"])
print(json.dumps({"key": "gc.more", "value": statistics.median(times["recorded"]) - plain}))
print(json.dumps({"key": "gc.plain", "value": plain}))
recorder.arm()
kept, start = [[] for _ in range(10_000)], time.perf_counter_ns()
gc.collect(0)
print(json.dumps({"key": "gc.young", "value": time.perf_counter_ns() - start}))
