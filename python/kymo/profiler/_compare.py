"""compare_runs: whether b is faster than a, by how much, and with what confidence."""
from __future__ import annotations

import json
import math
import os
from typing import Any

import kymo
from kymo._metrics import Metrics, judge, warmup
from kymo._query import find_program
from kymo.profiler import _report

SAMPLES_LEAST = 10


def compare_runs(a: Any, b: Any) -> dict[str, Any]:
    """Compares two runs: collectors or timers, reports (dicts, or paths of JSON), recordings, or {'time': seconds}.

    >>> compare_runs({"time": 10.0}, {"time": 5.0})["speedup"]
    2.0
    >>> before, after = MetricsCollector(), MetricsCollector()
    >>> for i in range(40):
    ...     before.record("loss", 1 + i % 3)
    ...     after.record("loss", 1 + i % 3)
    >>> compare_runs(before, after)["per_metric"]["loss"]["significant"]
    False

    Returns speedup (mean iteration time of a / of b, else that of the whole run), ci (its 95 % interval, None if there is
    too little data), significant (corrected for the number of metrics), per_metric: {name: {a, b, ratio, ci, p_value,
    significant}} with ratio b / a, memory_ratio and throughput_ratio (b / a, None if unknown), and notes with all
    reservations. Raises ValueError if the two have no metric in common.
    """
    if _is_recording(a) and _is_recording(b):
        return _compare_recordings(a, b)
    left, right = _side(a), _side(b)
    notes: list[str] = []
    rows = _rows(left, right)
    if not rows and not _times(left, right):
        raise ValueError(f"compare_runs: no metric in common: a has {_names(left)}, b has {_names(right)}")
    per_metric = _judged(rows, notes)
    result = {**_speedup(left, right, per_metric, notes), "per_metric": per_metric,
              "memory_ratio": _ratio(left, right, "memory", "peak_allocated"),
              "throughput_ratio": _ratio(left, right, "throughput", "samples_per_sec")
              or _ratio(left, right, "throughput", "iterations_per_sec"), "notes": notes}
    _add_doubts(left, right, notes)
    return result


# --- sides ------------------------------------------------------------------------------------------------------

def _is_recording(run: Any) -> bool:
    if not isinstance(run, (str, os.PathLike)):
        return False
    path = os.fspath(run)
    if os.path.isdir(path) or not os.path.exists(path):
        return True  # a path that does not exist may be a pid or `latest`: the program reports it if not
    with open(path, "rb") as file:
        return file.read(64).lstrip()[:1] != b"{"


def _side(run: Any) -> dict[str, Any]:
    if isinstance(run, Metrics):
        return _report.report_of(run)
    if isinstance(run, dict):
        return run
    if _is_recording(run):
        return _side_of_recording(os.fspath(run))
    if isinstance(run, (str, os.PathLike)):
        with open(run, encoding="utf-8") as file:
            data = json.load(file)
        if isinstance(data, dict):
            return data
        raise ValueError(f"compare_runs: {os.fspath(run)} is not a report: its JSON is not an object")
    raise TypeError(f"compare_runs takes collectors, reports, paths and recordings, not {type(run).__name__}")


def _side_of_recording(target: str) -> dict[str, Any]:
    """For comparison with a report: the totals of timers and regions, without single samples."""
    rows = kymo.query("SELECT name, sum(count) AS count, sum(total_ns) / 1e6 AS total, sum(total_ns) / sum(count) / 1e6 AS mean, "
                      "CASE WHEN count(*) = 1 THEN any_value(stddev_ns) / 1e6 END AS std FROM trace.regions GROUP BY name", target)
    return {"timing": {row["name"]: {key: row[key] for key in ("count", "total", "mean", "std")} for row in rows}}


def _names(side: dict[str, Any]) -> str:
    names = [*side.get("timing", {}), *side.get("metrics", {})]
    return ", ".join(sorted(map(str, names))[:8]) + (", …" if len(names) > 8 else "") or "none"


def _times(left: dict[str, Any], right: dict[str, Any]) -> tuple[float, float] | None:
    """The seconds of both, if at least one has nothing else or they have metrics in common."""
    a, b = left.get("time"), right.get("time")
    if a is None or b is None:
        return None
    named = [side.get("timing") or side.get("metrics") for side in (left, right)]
    return (float(a), float(b)) if not all(named) or _shared(left, right, "timing") or _shared(left, right, "metrics") else None


def _shared(left: dict[str, Any], right: dict[str, Any], section: str) -> list[str]:
    return [name for name in left.get(section) or {} if name in (right.get(section) or {})]


# --- metrics ----------------------------------------------------------------------------------------------------

def _rows(left: dict[str, Any], right: dict[str, Any]) -> dict[str, tuple[Any, Any, Any, Any, float]]:
    """name: rows of both, values of both, weight. A value with the name of a time is called `metrics.NAME`."""
    rows = {}
    timing, metrics = _shared(left, right, "timing"), _shared(left, right, "metrics")
    whole = sum(_total(left["timing"][name]) for name in timing) or 1.0
    for section, names in (("timing", timing), ("metrics", metrics)):
        for name in names:
            a, b = left[section][name], right[section][name]
            weight = _total(a) / whole if section == "timing" else 0.25 / len(metrics)
            label = f"metrics.{name}" if section == "metrics" and name in rows else name
            rows[label] = (a, b, _values(left, section, name, a), _values(right, section, name, b), max(weight, 1e-6))
    return rows


def _total(row: dict[str, Any]) -> float:
    return float(row.get("total") or row["mean"] * (row.get("count") or 1))


def _values(side: dict[str, Any], section: str, name: str, row: dict[str, Any]) -> list[float]:
    """Samples in order; if only count, mean and std are known, that many values with that mean and std."""
    kept = side.get("samples", {}).get(section, {}).get(name)
    if kept:
        return [float(value) for value in kept["means"]]
    count, std = row.get("count") or 0, row.get("std")
    if count < 2 or std is None:
        return []
    pairs = min(int(count), 10000) // 2
    spread = std * math.sqrt((2 * pairs - 1) / (2 * pairs)) * math.sqrt(2 * pairs / count)
    return [row["mean"] + spread, row["mean"] - spread] * pairs


def _judged(rows: dict[str, Any], notes: list[str]) -> dict[str, dict[str, Any]]:
    answers = judge([(x, y, weight) for _, _, x, y, weight in rows.values()])
    result, few = {}, []
    for (name, (a, b, x, y, _)), (low, high, _, corrected, could_see, significant) in zip(rows.items(), answers):
        known = math.isfinite(low) and math.isfinite(high)
        result[name] = {"a": a["mean"], "b": b["mean"], "ratio": b["mean"] / a["mean"] if a["mean"] else None,
                        "ci": (low, high) if known else None, "p_value": None if math.isnan(corrected) else corrected,
                        "significant": significant, "could_see": None if math.isnan(could_see) else could_see}
        if math.isnan(corrected) or (could_see > 1 and not significant):  # not even twice the time would have been detected
            few.append(name)
        for which, values in (("a", x), ("b", y)) if "total" in a else ():
            first = warmup(values) if len(values) >= SAMPLES_LEAST else 0
            if first:
                notes.append(f"the first {first} samples of {name} in {which} look like warm-up; the means include them")
    if few:
        notes.append(f"too little data for a confidence interval: {', '.join(few[:8])}{', …' if len(few) > 8 else ''}")
    return result


# --- the whole ----------------------------------------------------------------------------------------------------

def _speedup(left: dict[str, Any], right: dict[str, Any], per_metric: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    row, times = per_metric.get("iteration"), _times(left, right)
    if row and "iteration" in left.get("timing", {}) and row["ratio"]:
        ci = (1 / row["ci"][1], 1 / row["ci"][0]) if row["ci"] and row["ci"][0] > 0 else None
        return {"speedup": row["a"] / row["b"], "ci": ci, "significant": row["significant"]}
    if times is None or not times[1]:
        shared = _shared(left, right, "timing")
        times = (sum(_total(left["timing"][name]) for name in shared), sum(_total(right["timing"][name]) for name in shared))
        notes.append("the runs have no timer named iteration in common: speedup is that of all common timers together")
    else:
        notes.append("the runs have no timer named iteration in common: speedup is that of the whole runs, one sample each, "
                     "which gives no confidence interval")
    return {"speedup": times[0] / times[1] if times[1] else math.nan, "ci": None, "significant": False}


def _ratio(left: dict[str, Any], right: dict[str, Any], section: str, key: str) -> float | None:
    a, b = ((side.get(section) or {}).get(key) for side in (left, right))
    return b / a if a and b is not None else None


def _add_doubts(left: dict[str, Any], right: dict[str, Any], notes: list[str]) -> None:
    for what, key in (("hosts", "host"), ("versions of Python", "python"), ("versions of torch", "torch")):
        a, b = ((side.get("run") or {}).get(key) for side in (left, right))
        if a and b and a != b:
            notes.append(f"the runs have different {what}: {a} and {b}")
    sources = [(side.get("memory") or {}).get("source") for side in (left, right)]
    if all(sources) and sources[0] != sources[1]:
        notes.append(f"memory was measured in different ways: {sources[0]} and {sources[1]}")


# --- recordings ---------------------------------------------------------------------------------------------------

def _compare_recordings(a: Any, b: Any) -> dict[str, Any]:
    """By `kymo compare`, which compares steps, regions and modules; with its sentences."""
    import subprocess

    command = [find_program(), "compare", "-f", "json", "--anyway", os.fspath(a), os.fspath(b)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env={**os.environ, "KYMO": "off"}, check=False)
    try:
        data = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode(errors="replace").strip()
        raise kymo.Error(f"compare_runs: cannot compare the recordings: {said or 'kymo compare printed no message'}") from None
    rows = {row["name"]: {"a": _ms(row["a"]), "b": _ms(row["b"]), "ratio": row["ratio"],
                          "ci": (row["lo"], row["hi"]) if row["lo"] is not None and row["hi"] is not None else None,
                          "p_value": row["p_corrected"], "significant": row["significant"], "could_see": row["could_see"]}
            for row in data.get("rows", [])}
    notes = [text for text in (data.get("why"), data.get("sentence")) if text]
    whole = next((row for row in data.get("rows", []) if row["kind"] == "step" and row["ratio"]), None)
    if not rows:
        raise ValueError(f"compare_runs: the recordings have no metric in common: {'; '.join(notes) or 'nothing was compared'}")
    ci = rows[whole["name"]]["ci"] if whole else None
    return {"speedup": 1 / whole["ratio"] if whole else math.nan,
            "ci": (1 / ci[1], 1 / ci[0]) if ci and ci[0] > 0 else None,
            "significant": bool(whole and whole["significant"]), "per_metric": rows,
            "memory_ratio": (data.get("memory") or {}).get("ratio"),
            "throughput_ratio": (data.get("throughput") or {}).get("ratio"), "notes": notes}


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / 1e6
