"""Timers, metrics, memory and reports for training code, under plain `python`.

>>> from kymo.profiler import CUDATimer, MetricsCollector, Reporter
>>> timer = CUDATimer()
>>> with timer.measure("forward"):
...     total = sum(range(1000))
>>> timer.stats("forward")["count"]
1
>>> timer.get_elapsed("forward") > 0
True

Numbers are exact over any number of samples, kept in C in this process, and answered in microseconds; each sample is
also a row of the recording (`trace.zones`, `trace.counters`, with the timer's or collector's number as `instance`),
where SQL finds the same numbers. The first timer or collector turns recording on; KYMO=off keeps it off, and everything
here answers all the same.

    CUDATimer, DeviceTimer    how long: device events where there is an accelerator, the host's clock elsewhere
    MetricsCollector          times and values of a training loop, its report and its bottleneck
    MemoryTracker             memory while a block runs
    StreamProfiler            how busy threads or queues are, and how much they overlap
    Reporter, compare_runs    files to keep, and whether it is faster now

Samples belong to the process that took them: the child of a fork begins at nothing, and what its parent has open is
the parent's to end.
"""
from kymo.profiler._collector import MetricsCollector
from kymo.profiler._compare import compare_runs
from kymo.profiler._memory import MemoryTracker
from kymo.profiler._reporter import Reporter
from kymo.profiler._streams import StreamProfiler
from kymo.profiler._timer import CUDATimer, DeviceTimer

__all__ = [
    "CUDATimer",
    "DeviceTimer",
    "MemoryTracker",
    "MetricsCollector",
    "Reporter",
    "StreamProfiler",
    "compare_runs",
]
