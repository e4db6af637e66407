"""Reporter: report files, and a printed summary."""
from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import subprocess
from typing import Any

import kymo
from kymo._metrics import Metrics
from kymo._query import find_program, own_recording
from kymo.profiler import _page, _text
from kymo.profiler._compare import compare_runs
from kymo.profiler._report import report_of

Path = str | os.PathLike[str]
CSV_COLUMNS = ("section", "name", "unit", "count", "mean", "std", "min", "max", "p50", "p90", "p99")


class Reporter:
    """Reports of a collector or timer.

    >>> collector = MetricsCollector()
    >>> collector.record("loss", 0.5)
    >>> reporter = Reporter(collector)
    >>> reporter.save_json("metrics.json")
    >>> reporter.save_csv("metrics.csv")
    >>> open("metrics.csv").readline().strip()
    'section,name,unit,count,mean,std,min,max,p50,p90,p99'

    A baseline is anything that compare_runs() takes; every report then includes the comparison. An existing file is
    replaced atomically, or unchanged on error.
    """

    def __init__(self, collector: Metrics, baseline: Any = None) -> None:
        if not isinstance(collector, Metrics):
            raise TypeError(f"Reporter takes a collector or a timer, not {type(collector).__name__}")
        self.collector, self.baseline = collector, baseline

    def report(self) -> dict[str, Any]:
        """The content of save_json()."""
        data = report_of(self.collector)
        if self.baseline is not None:
            data["comparison"] = compare_runs(self.baseline, data)
        return data

    def save_json(self, path: Path) -> None:
        """timing (ms), memory (bytes), throughput, metrics, samples, losses, run; valid JSON, NaN and infinity are null."""
        replace_file(path, json.dumps(_finite(self.report()), indent=1, allow_nan=False) + "\n")

    def save_csv(self, path: Path) -> None:
        """A row for each metric; safe to open in a spreadsheet."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        writer.writerows(_csv_rows(self.report()))
        replace_file(path, text.getvalue())

    def save_html(self, path: Path) -> None:
        """One file that opens offline, by `kymo report` from this process's recording. Without a recording, with a baseline,
        or if that program fails: a page with this collector's numbers and the reason."""
        why = "a baseline is given" if self.baseline is not None else _html_by_program(path)
        if why:
            replace_file(path, _page.html(_finite(self.report()), why))

    def print_summary(self) -> None:
        """To stdout, 80 columns wide."""
        data = self.report()
        print(_text.report(data))
        if "comparison" in data:
            print("\n" + _text.comparison(data["comparison"]))


def replace_file(path: Path, text: str) -> None:
    """Writes another file and renames it: readers see the old file or the new one; a full disk keeps the old one."""
    aside = f"{os.fspath(path)}.{os.getpid()}.part"
    try:
        with open(aside, "w", encoding="utf-8", newline="", errors="backslashreplace") as file:
            file.write(text)
        os.replace(aside, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None


def _finite(data: Any) -> Any:
    """JSON has no NaN and no infinity: they become None."""
    if isinstance(data, dict):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _csv_rows(data: dict[str, Any]) -> list[list[Any]]:
    rows = []
    for section, unit in (("timing", "ms"), ("metrics", "")):
        for name, row in data[section].items():
            rows.append([section, _safe(name), unit, *(row[key] for key in CSV_COLUMNS[3:])])
    single = [("memory", key, "bytes", data["memory"][key]) for key in ("peak_allocated", "peak_reserved")]
    single += [("throughput", key, "1/s", data["throughput"][key]) for key in ("samples_per_sec", "iterations_per_sec")]
    if "comparison" in data:
        single.append(("comparison", "speedup", "x", data["comparison"]["speedup"]))
    for section, name, unit, value in single:
        if value is not None:
            rows.append([section, name, unit, 1, value, 0, *[value] * 5])
    return rows


def _safe(text: str) -> str:
    """Escapes characters that begin a formula in a spreadsheet."""
    clean = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\u2400")
    return "'" + clean if clean[:1] in ("=", "+", "-", "@", "\t", "\r") else clean


def _html_by_program(path: Path) -> str | None:
    """None: the program has written it; else the reason why not."""
    target = own_recording()
    if target is None or not kymo.enabled():
        return "nothing is recorded (KYMO=off, or no room)"
    aside = f"{os.fspath(path)}.{os.getpid()}.part"
    try:
        done = subprocess.run([find_program(), "report", "-f", "html", "-o", aside, target], stdin=subprocess.DEVNULL,
                              capture_output=True, env={**os.environ, "KYMO": "off"}, check=False)
    except (OSError, kymo.Error) as error:
        return f"cannot run the kymo program: {error}"
    if done.returncode == 0 and os.path.isfile(aside):
        os.replace(aside, path)
        return None
    with contextlib.suppress(OSError):
        os.unlink(aside)
    return "kymo report: " + (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[0]
