"""Reports as text that fits 80 columns."""
from __future__ import annotations

from typing import Any

WIDTH = 80


def ms(value: float) -> str:
    """A duration in a suitable unit."""
    for limit, unit, scale in ((1e-3, "ns", 1e6), (1.0, "µs", 1e3), (1e3, "ms", 1.0)):
        if abs(value) < limit:
            return f"{value * scale:.3g} {unit}"
    return f"{value / 1e3:.4g} s"


def size(bytes_: float) -> str:
    value = float(bytes_)
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} GiB"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"


def fit(text: str, width: int) -> str:
    """One line of at most `width` printable characters."""
    clean = "".join(char if char.isprintable() else "?" for char in text)
    return clean if len(clean) <= width else clean[: width - 1] + "…"


def table(title: str, columns: list[str], rows: list[tuple[str, list[str]]]) -> list[str]:
    """Lines with the names on the left and columns of the needed width on the right, at most WIDTH in all."""
    widths = [max(len(column), *(len(row[i]) for _, row in rows)) for i, column in enumerate(columns)]
    room = max(8, WIDTH - sum(widths) - 2 * len(widths))
    room = min(room, max(len(title), *(len(name) for name, _ in rows)))
    lines = [(title, columns), *rows]
    return [(fit(name, room).ljust(room) + "".join("  " + cell.rjust(width) for cell, width in zip(row, widths))).rstrip()
            for name, row in lines]


def report(data: dict[str, Any]) -> str:
    """A report of report_of() as text."""
    lines = [_headline(data)]
    timing = sorted(data["timing"].items(), key=lambda item: -item[1]["total"])
    if timing:
        lines += ["", *table("Timing", ["count", "total", "self", "mean", "std", "p50", "p99"], [
            (name, [str(row["count"]), *(ms(row[key]) for key in ("total", "self", "mean", "std", "p50", "p99"))])
            for name, row in timing])]
    if data["metrics"]:
        lines += ["", *table("Metrics", ["count", "mean", "std", "min", "max", "last"], [
            (name, [str(row["count"]), *(number(row[key]) for key in ("mean", "std", "min", "max", "last"))])
            for name, row in data["metrics"].items()])]
    if not timing and not data["metrics"]:
        lines += ["", "Nothing has been measured or recorded."]
    lines += ["", f"Memory: peak {size(data['memory']['peak_allocated'])} ({data['memory']['source']})"]
    if data["losses"]["zones_dropped"]:
        lines.append(f"Lost: {data['losses']['zones_dropped']} zones are not in the recording; the numbers above include them.")
    return "\n".join(lines)


def _headline(data: dict[str, Any]) -> str:
    speed = data["throughput"]
    parts = [f"{data['time']:.4g} s"]
    if speed["iterations_per_sec"] is not None:
        parts.append(f"{speed['iterations_per_sec']:.4g} iterations/s")
    if speed["samples_per_sec"] is not None:
        parts.append(f"{speed['samples_per_sec']:.4g} samples/s")
    return "Profile: " + ", ".join(parts)


def comparison(result: dict[str, Any]) -> str:
    """The result of compare_runs() as text; a is the baseline."""
    lines = [_verdict(result)]
    rows = sorted(result["per_metric"].items(), key=lambda item: not item[1]["significant"])
    lines += ["", *table("Compared", ["baseline", "now", "ratio", "95 % interval", ""], [
        (name, [number(row["a"]), number(row["b"]), number(row["ratio"]), interval(row["ci"]),
                "real" if row["significant"] else ""]) for name, row in rows])]
    for note in result["notes"]:
        lines += wrap(f"Note: {note}")
    return "\n".join(lines)


def interval(ci: tuple[float, float] | None) -> str:
    return "-" if ci is None else f"{ci[0]:.3g} to {ci[1]:.3g}"


def _verdict(result: dict[str, Any]) -> str:
    sure = f" (95 %: {interval(result['ci'])})" if result["ci"] else ""
    real = "" if result["significant"] else "; not significant"
    return f"Speedup against the baseline: {number(result['speedup'])}{sure}{real}"


def wrap(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, WIDTH, subsequent_indent="  ")
