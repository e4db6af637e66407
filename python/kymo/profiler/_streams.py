"""StreamProfiler: utilisation and overlap of queues and threads."""
from __future__ import annotations

from types import TracebackType
from typing import Any

from kymo._metrics import Queues
from kymo.profiler import _text
from kymo.profiler._device import thread_name


class StreamProfiler:
    """Utilisation of device queues and of the threads of this process while a block runs.

    >>> timer = CUDATimer()
    >>> with StreamProfiler(num_streams=2) as profiler:
    ...     with timer.measure("work"):
    ...         total = sum(range(10000))
    >>> stats = profiler.get_stats()
    >>> len(stats["streams"]), stats["streams"][0]["ops"], stats["overlap"]
    (2, 1, 1.0)

    A device queue is busy while one of its operations runs: queues that kymo records (`kymo run --device` for OpenCL, or an
    adapter of <kymo/device.h>), with the operations finished by the end of the block. A thread is busy while any timer or
    collector measures on it; nested measurements count once. overlap is the sum of busy times divided by the time in which
    at least one was busy: 1 means no overlap. device_overlap is that of the queues alone. There are num_streams rows:
    queues before threads, the busiest first, filled up with idle ones.
    """

    def __init__(self, num_streams: int = 4) -> None:
        if num_streams < 1:
            raise ValueError(f"StreamProfiler: num_streams must be at least 1, not {num_streams}")
        self.num_streams = num_streams
        self._queues = Queues()
        self._depth = 0

    def __enter__(self) -> StreamProfiler:
        self._depth += 1
        if self._depth == 1:
            self._queues.start(thread_name)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._queues.stop()

    def get_stats(self) -> dict[str, Any]:
        """wall_ms, busy_ms (sum), union_ms, overlap, device_overlap (0.0 without a queue), notes, and streams: a list of dicts of
        stream, name, kind (device, thread, none), device (its name, or None), busy_ms, idle_ms, utilisation (0 to 1), ops, gaps,
        longest_gap_ms."""
        seen = self._queues.totals()
        rows = sorted(seen["queues"], key=lambda row: ("device" not in row, -row["busy_ms"]))
        busy = sum(row["busy_ms"] for row in rows)
        streams = [_stream(i, row, seen["wall_ms"]) for i, row in enumerate(rows[: self.num_streams])]
        streams += [_stream(i, None, seen["wall_ms"]) for i in range(len(streams), self.num_streams)]
        return {"wall_ms": seen["wall_ms"], "busy_ms": busy, "union_ms": seen["union_ms"],
                "overlap": _overlap(busy, seen["union_ms"]),
                "device_overlap": _overlap(sum(row["busy_ms"] for row in rows if "device" in row), seen["device_union_ms"]),
                "streams": streams, "notes": self._notes(seen, rows)}

    def _notes(self, seen: dict[str, Any], rows: list[Any]) -> list[str]:
        notes = []
        if not rows:
            notes.append("no activity: no device operation was recorded (kymo run --device), and nothing was measured on any "
                         "thread while the block ran; put `with timer.measure(name):` around the work of each")
        if len(rows) > self.num_streams:
            notes.append(f"{len(rows) - self.num_streams} more are not shown; use StreamProfiler(num_streams={len(rows)})")
        if seen["not_exact"]:
            notes.append(f"union and overlap omit parts of {seen['not_exact']} very long measurements or operations")
        if seen["not_seen"]:
            notes.append(f"{seen['not_seen']} measurements or operations are omitted: more than 1,024 threads or 256 queues")
        return notes

    def print_stream_efficiency(self) -> None:
        """Prints the statistics as a table, 80 columns wide."""
        stats = self.get_stats()
        of_devices = f", of devices {stats['device_overlap']:.2f}" if stats["device_overlap"] else ""
        print(f"Streams: {_text.ms(stats['wall_ms'])} in all, overlap {stats['overlap']:.2f}{of_devices}")
        for line in _text.table("stream", ["busy", "idle", "utilisation", "ops", "gaps", "longest gap"], [
                (f"{row['stream']} {row['name']}", [
                    _text.ms(row["busy_ms"]), _text.ms(row["idle_ms"]), f"{100 * row['utilisation']:.1f} %", str(row["ops"]),
                    str(row["gaps"]), _text.ms(row["longest_gap_ms"])]) for row in stats["streams"]]):
            print(line)
        for note in stats["notes"]:
            print("\n".join(_text.wrap(f"Note: {note}")))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.num_streams,)


def _overlap(busy: float, union: float) -> float:
    return round(busy / union, 6) if union else 0.0


def _stream(number: int, row: dict[str, Any] | None, wall: float) -> dict[str, Any]:
    if row is None:
        return {"stream": number, "name": "(idle)", "kind": "none", "device": None, "busy_ms": 0.0, "idle_ms": wall,
                "utilisation": 0.0, "ops": 0, "gaps": 0, "longest_gap_ms": wall}
    device = row.get("device")
    return {"stream": number, "name": row["name"] or f"thread {row['tid']}", "kind": "thread" if device is None else "device",
            "device": device, "busy_ms": row["busy_ms"], "idle_ms": max(0.0, wall - row["busy_ms"]),
            "utilisation": row["busy_ms"] / wall if wall else 0.0, "ops": row["count"], "gaps": row["gaps"],
            "longest_gap_ms": row["longest_gap_ms"]}
