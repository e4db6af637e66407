"""MetricsCollector, and what it says of bottlenecks."""
from __future__ import annotations

from typing import Any

from kymo._metrics import Metrics
from kymo.profiler import _text
from kymo.profiler._report import report_of

# Words in a name, and what to try when it takes most of the time. The first row that fits speaks.
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
_GENERAL = "measuring its parts: with collector.measure_time(...) inside of it, or kymo run --python for every call"


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

    `iteration` and `batch_size` are the names that throughput is told by. Every value is a row of trace.counters, every
    time one of trace.zones; all numbers of reports are exact, however many there were.
    """

    measure_time = Metrics.measure

    def generate_report(self) -> str:
        """All of it as text, 80 columns wide."""
        return _text.report(report_of(self))

    def analyze_bottlenecks(self) -> dict[str, Any]:
        """What takes most time by itself, without what is measured inside of it, and what to try."""
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
        """collector["time"] is the seconds from the first sample's beginning to the last one's end; other keys are those of
        the report."""
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
        return ["nothing was measured yet: put `with collector.measure_time(name):` around the parts of a step"]
    name, row = next(iter(breakdown.items()))
    said = [f"{name} takes {row['pct']:.0f} % of the measured time ({_text.ms(row['self_ms'])} by itself): "
            f"try {_advice(name)}"]
    outside = wall_ms - sum(row["top_total"] for row in times.values())
    if wall_ms and outside / wall_ms > 0.2:
        said.append(f"{100 * outside / wall_ms:.0f} % of the wall time is in no measurement: measure what lies between")
    for other, row in times.items():
        if row["count"] >= 5 and row["max"] > 10 * row["p50"] and row["max"] > 0.2 * row["total"]:
            said.append(f"one {other} took {_text.ms(row['max'])}, the usual one {_text.ms(row['p50'])}: warm-up, or "
                        "something else ran; leave it out of averages")
    return said
