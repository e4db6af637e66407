"""CUDATimer and its alias DeviceTimer."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kymo._metrics import Metrics
from kymo.profiler._device import Events

STATS = ("count", "mean", "std", "min", "max", "p50", "p90", "p99")


class CUDATimer(Metrics):
    """Measures named regions of code, in ms.

    >>> timer = CUDATimer()
    >>> with timer.measure("forward"):
    ...     pass
    >>> timer.start("load"); timer.stop("load")
    >>> sorted(timer.stats("load"))
    ['clock', 'count', 'max', 'mean', 'min', 'p50', 'p90', 'p99', 'std']
    >>> timer.stats("load")["clock"]
    'host'
    >>> timer.benchmark(lambda: None)["count"]
    10

    If the program uses an accelerator through torch, time is measured by events on its stream, and get_elapsed() waits
    only for the last event of that name; otherwise by the host's clock. stats() returns which one. Each measurement is
    also a zone of the host in the recording; those of a device are rows with source 'device'.

    With synchronize, each measurement first waits for the device. warmup and repeat are for benchmark(). Measurements
    may nest, recurse, and be open on any number of threads at once. stop() without start() raises ValueError.
    """

    def __init__(self, synchronize: bool = True, warmup: int = 3, repeat: int = 10) -> None:
        if warmup < 0 or repeat < 1:
            raise ValueError(f"CUDATimer: warmup must be at least 0 and repeat at least 1, not {warmup} and {repeat}")
        self.synchronize, self.warmup, self.repeat = synchronize, warmup, repeat
        self._device = Events(synchronize)

    def stats(self, name: str) -> dict[str, Any]:
        """count, mean, std (n - 1), min, max, p50, p90, p99, in ms, and the clock."""
        times = self.times(name)
        return {**{key: times[key] for key in STATS}, "clock": clock_of(self, times)}

    def benchmark(self, fn: Callable[[], Any], name: str | None = None) -> dict[str, Any]:
        """Calls fn `warmup` times, then measures `repeat` calls; returns the stats() of this benchmark."""
        label: str = name or getattr(fn, "__name__", "") or type(fn).__name__
        own = type(self)(self.synchronize, self.warmup, self.repeat)
        for _ in range(self.warmup):
            fn()
        for _ in range(self.repeat):
            with own.measure(label):
                fn()
        return own.stats(label)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.synchronize, self.warmup, self.repeat)


DeviceTimer = CUDATimer


def clock_of(metrics: Metrics, times: dict[str, Any]) -> str:
    """The clock of these times."""
    device = getattr(metrics._device, "name", "") or "device"
    if not times["on_device"]:
        return "host"
    return f"{device} events" if times["on_device"] == times["count"] else f"{device} events and host"
