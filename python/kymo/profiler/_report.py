"""The content of a report, from the numbers kept in C."""
from __future__ import annotations

import os
import platform
import sys
import time
from typing import Any

import kymo
from kymo._metrics import Metrics
from kymo._query import own_recording
from kymo.profiler import _memory
from kymo.profiler._timer import clock_of

SCHEMA_VERSION = 1
_TIMING = ("mean", "std", "min", "max", "count", "total", "self", "p50", "p90", "p99", "last")
_METRIC = ("count", "mean", "std", "min", "max", "last", "p50", "p90", "p99", "sum")


def report_of(metrics: Metrics) -> dict[str, Any]:
    """The report of a timer or collector. Times are in ms, memory in bytes, `time` in seconds."""
    times, values, seconds = metrics.all_times(), metrics.all_values(), metrics.wall_ms() / 1e3
    return {
        "schema_version": SCHEMA_VERSION,
        "timing": {name: {**{key: row[key] for key in _TIMING}, "clock": clock_of(metrics, row)}
                   for name, row in times.items()},
        "memory": _memory.latest(),
        "throughput": _throughput(times, values, seconds),
        "metrics": {name: {key: row[key] for key in _METRIC} for name, row in values.items()},
        "time": seconds,
        "samples": {
            "timing": {name: _samples(metrics.samples(name)) for name in times},
            "metrics": {name: _samples(metrics.value_samples(name)) for name in values},
        },
        "losses": {"zones_dropped": metrics.dropped(), "recorded": kymo.enabled()},
        "run": _run(metrics),
    }


def _samples(samples: tuple[list[float], int]) -> dict[str, Any]:
    means, size = samples
    return {"size": size, "means": means}


def iteration_name(times: dict[str, Any]) -> str | None:
    """`iteration`, else the longest timer that is not inside another."""
    if "iteration" in times:
        return "iteration"
    top = [(row["top_total"], name) for name, row in times.items() if row["top_count"]]
    return max(top)[1] if top else None


def _throughput(times: dict[str, Any], values: dict[str, Any], seconds: float) -> dict[str, Any]:
    name, sizes = iteration_name(times), values.get("batch_size")
    return {
        "samples_per_sec": sizes["sum"] / seconds if sizes and seconds else None,
        "iterations_per_sec": times[name]["count"] / seconds if name and seconds else None,
        "iteration": name,
    }


def _run(metrics: Metrics) -> dict[str, Any]:
    torch = sys.modules.get("torch")
    return {
        "pid": os.getpid(),
        "argv": list(sys.argv),
        "host": platform.node(),
        "python": platform.python_version(),
        "torch": str(getattr(torch, "__version__", "")) or None,
        "kymo": kymo.__version__,
        "written_unix_ns": time.time_ns(),
        "recording": own_recording(),
        "instance": metrics.instance or None,
    }
