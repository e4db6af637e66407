"""MemoryTracker: memory use of a block, its call sites, and the live blocks at the peak."""
from __future__ import annotations

import os
import threading
import time
import weakref
from types import TracebackType
from typing import Any

from kymo._metrics import Metrics, resident
from kymo.profiler import _text
from kymo.profiler._device import in_use

SITES = 64  # call sites that are read
SHOWN = 5  # and printed
# Redirection misses this: libraries loaded later call the real functions until their constructors are done.
MISSED = " (missed: constructors of libraries loaded later)"
TIMELINE_MAX = 8192  # samples; then every second one is dropped, and the rate is halved

_active: weakref.ref[MemoryTracker] | None = None
_last: dict[str, Any] | None = None


class _Process:
    """The resident memory of the process, from the kernel."""

    source, device = "rss samples", "cpu"

    def __init__(self) -> None:
        self._peak_before = resident()[1]

    def read(self) -> dict[str, int]:
        now, most = resident()
        # The kernel's peak is exact if it was reached inside the block.
        peak = max(now, most if most > self._peak_before else 0)
        return {"allocated": now, "reserved": now, "peak_allocated": peak, "peak_reserved": peak,
                "num_allocs": 0, "num_frees": 0, "total_allocated": 0}

    def end(self) -> None:
        pass


class _Host(_Process):
    """The allocators of the process: malloc, related functions and mappings. Counted from the start of the block."""

    def __init__(self, memory: Any) -> None:
        super().__init__()
        self._memory = memory
        self._number, self._ticks, self._first = memory.start(False)
        self._last: dict[str, Any] = {}
        self._events = b""
        self.sites: list[tuple[int, int, int, int, int]] = []
        how = memory.stats(self._number)
        self.source = f"malloc, {how['mode']}, {'from the start' if how['preloaded'] else 'calls redirected' + MISSED}"

    def totals(self) -> dict[str, Any]:
        return self._last or self._memory.stats(self._number)

    def read(self) -> dict[str, int]:
        now, process = self.totals(), super().read()
        return {**process, "allocated": now["live"], "peak_allocated": now["peak"], "num_allocs": now["allocs"],
                "num_frees": now["frees"], "total_allocated": now["total"]}

    def end(self) -> None:
        """Copies what is needed after the end."""
        self._last = self._memory.stats(self._number)
        self.sites = self._memory.sites(SITES)
        self._events = self._memory.events(self._first)[0]
        self._memory.stop(self._number)

    def events(self) -> list[dict[str, Any]]:
        raw = self._events if self._last else self._memory.events(self._first)[0]
        rows: list[dict[str, Any]] = self._memory.decode(raw, self._ticks, 0)
        return rows

    def peak_after_ns(self) -> int:
        return int(self._memory.nanoseconds(max(0, self.totals()["peak_ticks"] - self._ticks)))

    def rows(self) -> list[tuple[int, str]]:
        """Bytes live at the peak by Python line or function, largest first."""
        found: dict[str, int] = {}
        for node, at_peak, *_ in self.sites or self._memory.sites(SITES):
            site = _site(self._memory.stack(node))
            found[site] = found.get(site, 0) + at_peak
        return sorted(((size, site) for site, size in found.items() if size > 0), reverse=True)


def _site(stack: list[str]) -> str:
    """The innermost Python line, else the innermost function."""
    for frame in stack:
        name, _, place = frame.rpartition(" (")
        if place[:-1].rpartition(":")[2].isdigit():
            return f"{place[:-1].rpartition('/')[2]} in {name}"
    return next((frame for frame in stack if not frame.startswith("operator new")), "(unknown)")


def _host() -> _Process:
    try:
        from kymo import _memory

        return _Host(_memory)
    except (ImportError, OSError, RuntimeError):  # another C library, or no extension for this Python
        return _Process()


class _Device:
    """The counters of torch's allocator for an accelerator; they are read, never reset."""

    def __init__(self, name: str, api: Any) -> None:
        self.source, self.device = f"torch.{name} allocator", name
        self._api = api
        self._before = self._counters()

    def _counters(self) -> dict[str, int]:
        stats = self._api.memory_stats()
        names = {"allocated": "allocated_bytes.all.current", "reserved": "reserved_bytes.all.current",
                 "peak_allocated": "allocated_bytes.all.peak", "peak_reserved": "reserved_bytes.all.peak",
                 "num_allocs": "allocation.all.allocated", "num_frees": "allocation.all.freed",
                 "total_allocated": "allocated_bytes.all.allocated"}
        return {key: int(stats.get(name, 0)) for key, name in names.items()}

    def read(self) -> dict[str, int]:
        now, before = self._counters(), self._before
        for key in ("num_allocs", "num_frees", "total_allocated"):
            now[key] -= before[key]
        for key in ("allocated", "reserved"):  # a peak before this block does not count
            if now["peak_" + key] <= before["peak_" + key]:
                now["peak_" + key] = now[key]
        return now

    def end(self) -> None:
        pass


class MemoryTracker:
    """Memory use of a block.

    >>> tracker = MemoryTracker(interval=10)
    >>> with tracker:
    ...     data = bytearray(50_000_000)
    >>> stats = tracker.get_stats()
    >>> stats["source"], 50_000_000 <= stats["peak_allocated"] < 60_000_000
    ('malloc, sampled, calls redirected (missed: constructors of libraries loaded later)', True)
    >>> "sample" in [row["kind"] for row in tracker.get_allocation_timeline()]
    True

    If the program uses an accelerator through torch, the counters of torch's allocator are read. Otherwise malloc and
    related functions are tracked, in all threads and libraries of the process, from the start of the block: samples 64 KiB
    apart on average, and every allocation of 64 KiB or more. Earlier memory does not count. In addition, memory is read at
    the start, at the end and every `interval` ms, by a thread that ends with the block. `source` names what was tracked.
    """

    def __init__(self, track_allocations: bool = True, track_timeline: bool = True, interval: int = 100) -> None:
        if interval <= 0:
            raise ValueError(f"MemoryTracker: interval must be a number of ms above 0, not {interval}")
        self.track_allocations, self.track_timeline, self.interval = track_allocations, track_timeline, interval
        self._metrics = Metrics()
        self._depth = 0
        self._clear(_Process())

    def _clear(self, source: _Process | _Device) -> None:
        self._source = source
        self._timeline: list[dict[str, Any]] = []
        self._every, self._skip = 1, 0
        self._began = time.monotonic_ns()
        self._stats: dict[str, Any] = {}
        self._growth, self._before = 0, source.read()["allocated"]

    def __enter__(self) -> MemoryTracker:
        global _active
        self._depth += 1
        if self._depth > 1:
            return self
        found = in_use()
        self._clear(_Device(*found) if found else _host() if self.track_allocations else _Process())
        self._look()
        _active = weakref.ref(self)
        self._pid, self._stop = os.getpid(), threading.Event()
        self._thread = threading.Thread(target=_watch, args=(weakref.ref(self), self._stop, self.interval / 1e3),
                                        name="kymo-memory", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        global _active, _last
        self._depth -= 1
        if self._depth:
            return
        if self._pid == os.getpid():  # the child of a fork has no such thread, and its lock may be held forever
            self._stop.set()
            self._thread.join()
        self._skip = 0
        self._source.end()
        self._look()
        _active, _last = None, self.get_stats()

    def _look(self) -> None:
        now = self._source.read()
        self._growth += max(0, now["allocated"] - self._before)
        self._before = now["allocated"]
        if type(self._source) is _Process:
            now["total_allocated"] = self._growth
        for key in ("peak_allocated", "peak_reserved"):
            now[key] = max(now[key], now[key[5:]], self._stats.get(key, 0))
        self._stats = now
        self._metrics.record(f"memory: {self._source.device}", now["allocated"])
        if (self.track_timeline or self.track_allocations) and self._skip == 0:
            self._keep(now["allocated"])
        self._skip = (self._skip + 1) % self._every

    def _look_again(self) -> None:
        """Updates the numbers while the block runs; keeps no row."""
        now = self._source.read()
        if type(self._source) is _Host:
            self._stats = now

    def _keep(self, allocated: int) -> None:
        self._timeline.append({"ts_ns": time.monotonic_ns() - self._began, "kind": "sample", "ptr": 0, "size": 0,
                               "allocated": allocated, "device": self._source.device, "stack": []})
        if len(self._timeline) >= TIMELINE_MAX:
            del self._timeline[1::2]
            self._every *= 2

    def get_stats(self) -> dict[str, Any]:
        """peak_allocated, peak_reserved, current_allocated, current_reserved, num_allocs, num_frees, total_allocated, in bytes,
        and source. On the host, allocated is what was allocated in the block and not freed, reserved what is in RAM; without
        track_allocations both are the latter, and total_allocated is its growth from reading to reading."""
        if self._depth:
            self._look_again()
        stats = self._stats or {**self._source.read()}
        return {
            "peak_allocated": stats["peak_allocated"], "peak_reserved": stats["peak_reserved"],
            "current_allocated": stats["allocated"], "current_reserved": stats["reserved"],
            "num_allocs": stats["num_allocs"], "num_frees": stats["num_frees"],
            "total_allocated": stats["total_allocated"], "source": self._source.source,
        }

    def get_allocation_timeline(self) -> list[dict[str, Any]]:
        """The events in order: dicts of ts_ns (since the block began), kind, ptr, size, allocated, device, stack."""
        if self.track_allocations and isinstance(self._source, _Host):
            looks = self._timeline if self.track_timeline else []
            return sorted(self._source.events() + looks, key=lambda row: row["ts_ns"])
        return list(self._timeline)

    def print_summary(self) -> None:
        stats, source = self.get_stats(), self._source
        print(f"Memory ({stats['source'].removesuffix(MISSED)})")
        if isinstance(source, _Host):
            self._print_host(stats, source)
            return
        for label, key in (("peak", "peak_allocated"), ("now", "current_allocated"), ("grew by", "total_allocated")):
            print(f"  {label:<10}{_text.size(stats[key]):>12}")
        if self._timeline:
            print(f"  {len(self._timeline)} readings, {self.interval} ms apart")
        print("  call sites: not recorded (single allocations are not tracked here)")

    def _print_host(self, stats: dict[str, Any], source: _Host) -> None:
        totals = source.totals()
        print(f"  {'peak':<10}{_text.size(stats['peak_allocated']):>12}{_error(totals['peak_variance'])}, "
              f"{_text.ms(source.peak_after_ns() / 1e6)} after the start")
        print(f"  {'now':<10}{_text.size(stats['current_allocated']):>12}{_error(totals['variance'])}")
        print(f"  {'allocated':<10}{_text.size(stats['total_allocated']):>12} in {stats['num_allocs']:,} allocations, "
              f"{stats['num_frees']:,} of them freed")
        print(f"  {'in RAM':<10}{_text.size(stats['current_reserved']):>12}, at most {_text.size(stats['peak_reserved'])}")
        rows = source.rows()
        whole = max(1, sum(size for size, _ in rows))
        if rows:
            print("  live at the peak")
        for size, site in rows[:SHOWN]:
            print(f"    {_text.size(size):>12} {100 * size / whole:5.1f} %  {_text.fit(site, 54)}")
        if len(rows) > SHOWN:
            print(f"    {_text.size(sum(size for size, _ in rows[SHOWN:])):>12}          {len(rows) - SHOWN} more sites")
        if source.source.endswith(MISSED):
            print(" " + MISSED.replace("(", "").replace(")", ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.track_allocations, self.track_timeline, self.interval)


def _error(variance: float) -> str:
    """ ± two standard deviations; empty if exact."""
    return f" ± {_text.size(2 * variance ** 0.5)}" if variance > 0 else ""


def _watch(tracker: weakref.ref[MemoryTracker], stop: threading.Event, seconds: float) -> None:
    """Ends with the block or the tracker, whichever comes first."""
    while not stop.wait(seconds):
        alive = tracker()
        if alive is None:
            return
        alive._look()
        del alive


def latest() -> dict[str, Any]:
    """The numbers of the active tracker, else of the last one, else of this process now."""
    active = _active() if _active else None
    if active is not None:
        return active.get_stats()
    if _last is not None:
        return _last
    now, peak = resident()
    return {"peak_allocated": peak, "peak_reserved": peak, "current_allocated": now, "current_reserved": now,
            "num_allocs": 0, "num_frees": 0, "total_allocated": 0, "source": "process"}
