"""Timers, metrics, memory and reports for training code, under plain `python`.

>>> from kymo.profiler import CUDATimer, MetricsCollector, Reporter
>>> timer = CUDATimer()
>>> with timer.measure("forward"):
...     total = sum(range(1000))
>>> timer.stats("forward")["count"]
1
>>> timer.get_elapsed("forward") > 0
True

Numbers are exact over any number of samples, kept in C in this process, and available in microseconds. Each sample is
also a row of the recording (`trace.zones`, `trace.counters`, with the timer's or collector's number as `instance`), so
SQL returns the same numbers. The first timer or collector turns recording on; KYMO=off keeps it off, and everything
here still works.

    CUDATimer, DeviceTimer    durations: by device events if there is an accelerator, else by the host's clock
    MetricsCollector          times and values of a training loop, its report and its bottleneck
    MemoryTracker             memory use of a block
    StreamProfiler            utilisation and overlap of threads or queues
    Reporter, compare_runs    report files, and a statistical comparison of two runs

Samples belong to the process that took them: the child of a fork starts without samples, and measurements that its
parent has open end in the parent.
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
