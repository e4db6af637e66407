"""MetricsCollector, and its analysis of bottlenecks."""
from __future__ import annotations

from typing import Any

from kymo._metrics import Metrics
from kymo.profiler import _text
from kymo.profiler._report import report_of

# Words in a name, and advice if it takes most of the time. The first row that matches counts.
_ADVICE = (
    (("data", "load", "fetch", "batch", "read"),
     "more DataLoader workers (num_workers), pin_memory=True, prefetching, or data that is prepared once and cached"),
    (("transfer", "copy", "h2d", "to_device", "upload"),
     "pinned memory and non_blocking=True, or larger and fewer transfers"),
    (("backward",),
     "mixed precision (torch.autocast), fewer recomputed activations, or a larger batch for the same number of launches"),
    (("optim", "step", "update"),
     "a fused or foreach optimizer (fused=True), or fewer steps by accumulating gradients"),
    (("forward", "model", "inference", "predict"),
     "torch.compile, mixed precision (torch.autocast), or kymo run --torch to see which module takes the time"),
    (("save", "checkpoint", "write", "log"),
     "writing less often, or from another thread"),
    (("eval", "valid", "test"),
     "evaluating less often, in larger batches, under torch.inference_mode()"),
)
_GENERAL = "measuring its parts: with collector.measure_time(...) inside it, or kymo run --python for every call"


class MetricsCollector(Metrics):
    """Times and values of a training loop.

    >>> collector = MetricsCollector()
    >>> for step in range(3):
    ...     collector.record("batch_size", 32)
    ...     with collector.measure_time("iteration"):
    ...         loss = 1 / (step + 1)
    ...     collector.record("loss", loss)
    >>> "iteration" in collector.generate_report()
    True
    >>> collector.analyze_bottlenecks()["bottleneck"]
    'iteration'
    >>> collector["time"] > 0
    True

    Throughput is computed from the names `iteration` and `batch_size`. Every value is a row of trace.counters, every
    time a row of trace.zones; all numbers of reports are exact for any number of samples.
    """

    measure_time = Metrics.measure

    def generate_report(self) -> str:
        """The report as text, 80 columns wide."""
        return _text.report(report_of(self))

    def analyze_bottlenecks(self) -> dict[str, Any]:
        """The measurement with the most time of its own (without nested ones), and suggestions."""
        times = self.all_times()
        whole = sum(row["self"] for row in times.values())
        breakdown = {
            name: {"total_ms": row["total"], "self_ms": row["self"], "mean_ms": row["mean"], "count": row["count"],
                   "pct": 100 * row["self"] / whole if whole else 0.0}
            for name, row in sorted(times.items(), key=lambda item: -item[1]["self"])
        }
        first = next(iter(breakdown), None)
        return {
            "bottleneck": first,
            "bottleneck_time_ms": breakdown[first]["self_ms"] if first else 0.0,
            "bottleneck_pct": breakdown[first]["pct"] if first else 0.0,
            "breakdown": breakdown,
            "suggestions": _suggestions(times, breakdown, self.wall_ms()),
        }

    def __getitem__(self, key: str) -> Any:
        """collector["time"]: seconds from the start of the first sample to the end of the last. Other keys: those of the
        report."""
        if key == "time":
            return self.wall_ms() / 1e3
        return report_of(self)[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


def _advice(name: str) -> str:
    lower = name.lower()
    return next((advice for words, advice in _ADVICE if any(word in lower for word in words)), _GENERAL)


def _suggestions(times: dict[str, Any], breakdown: dict[str, Any], wall_ms: float) -> list[str]:
    if not breakdown:
        return ["nothing has been measured: put `with collector.measure_time(name):` around the parts of a step"]
    name, row = next(iter(breakdown.items()))
    said = [f"{name} takes {row['pct']:.0f} % of the measured time ({_text.ms(row['self_ms'])} by itself): "
            f"try {_advice(name)}"]
    outside = wall_ms - sum(row["top_total"] for row in times.values())
    if wall_ms and outside / wall_ms > 0.2:
        said.append(f"{100 * outside / wall_ms:.0f} % of the wall time is not measured: measure the code in between")
    for other, row in times.items():
        if row["count"] >= 5 and row["max"] > 10 * row["p50"] and row["max"] > 0.2 * row["total"]:
            said.append(f"one {other} took {_text.ms(row['max'])}, the median is {_text.ms(row['p50'])}: warm-up, or "
                        "another program ran; exclude it from averages")
    return said
