"""HTML of recordings and results for notebooks: nothing is loaded, names of others are escaped."""
from __future__ import annotations

import html
import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kymo._inside.recording import Recording
    from kymo._query import Result

ROWS_MAX = 50  # of a table
BARS_MAX = 240  # of the step chart; then a bar is the longest of several steps
CHART = "SELECT duration_ns FROM trace.steps ORDER BY start_ns"
_CELL_FILE = re.compile(r" \(\d+\.py:\d+\)")  # in a sentence: the place follows it


def _escaped(value: object) -> str:
    return html.escape(str(value))


def _is_cell(file: str) -> bool:
    """Cells are compiled as files of ipykernel that have no text for a reader."""
    return "/ipykernel_" in file or file.startswith("<ipython-input")


def place(finding: dict[str, Any]) -> tuple[str, str]:
    """The function of a finding, and where it is; "" and "": it has none."""
    where = finding.get("where") or {}
    if not where.get("function"):
        return "", ""
    file = where.get("file") or ""
    if _is_cell(file):
        return where["function"], f", line {where['line']} of its cell"
    return where["function"], f" {os.path.basename(file)}:{where['line']}" if file else ""


def sentence(finding: dict[str, Any]) -> str:
    return _CELL_FILE.sub("", str(finding.get("sentence", "")))


def _finding(finding: dict[str, Any]) -> str:
    advice = f" <i>Try: {_escaped(finding['try'])}.</i>" if finding.get("try") else ""
    function, at = place(finding)
    where = f"<code>{_escaped(function)}</code>{_escaped(at)}." if function else ""
    return f"<li><b>{_escaped(sentence(finding))}</b> {where}{advice}</li>"


def findings(record: Recording, found: list[dict[str, Any]]) -> str:
    rows = "".join(_finding(one) for one in found[:3]) or "<li>No finding: nothing stands out.</li>"
    return f"<p>kymo: {record.seconds or 0:.3g} s recorded in <code>{_escaped(record.path)}</code></p><ul>{rows}</ul>"


def findings_text(record: Recording, found: list[dict[str, Any]]) -> str:
    lines = [f"kymo: {record.seconds or 0:.3g} s recorded in {record.path}"]
    for one in found[:3]:
        lines.append("- " + " ".join(part for part in (sentence(one), "".join(place(one))) if part))
    return "\n".join(lines if found else [*lines, "- No finding: nothing stands out."])


def chart(durations: list[int]) -> str:
    """Bars of the durations of steps, in their order; "" without steps."""
    if not durations:
        return ""
    each = -(-len(durations) // BARS_MAX)
    bars = [max(durations[at:at + each]) for at in range(0, len(durations), each)]
    top, middle = max(bars) or 1, sorted(durations)[len(durations) // 2]
    drawn = "".join(f'<rect x="{4 * at}" y="{60 - 60 * bar / top:.1f}" width="3" height="{60 * bar / top:.1f}">'
                    f"<title>{bar / 1e6:.3g} ms</title></rect>" for at, bar in enumerate(bars))
    said = f"{len(durations)} steps, median {middle / 1e6:.3g} ms, longest {top / 1e6:.3g} ms"
    return (f'<figure style="margin:0"><svg role="img" aria-label="{said}" viewBox="0 0 {4 * len(bars)} 60" '
            f'preserveAspectRatio="none" style="width:100%;max-width:{4 * len(bars)}px;height:60px" fill="#4c78a8">{drawn}</svg>'
            f"<figcaption>{said}</figcaption></figure>")


def table(result: Result) -> str:
    """The first rows of a result, and how many there are."""
    rows = result.rows()
    head = "".join(f"<th>{_escaped(name)}</th>" for name in result.columns)
    body = "".join("<tr>" + "".join(f"<td>{'' if value is None else _escaped(value)}</td>" for value in row.values()) + "</tr>"
                   for row in rows[:ROWS_MAX])
    count = f"{len(rows)} row{'' if len(rows) == 1 else 's'}" + (f", the first {ROWS_MAX} shown" if len(rows) > ROWS_MAX else "")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{count}</p>"


def recording(record: Recording) -> str:
    """Findings and steps of a recording that has ended."""
    steps = [row["duration_ns"] for row in record.query(CHART)]
    return findings(record, record.findings()) + chart(steps)
