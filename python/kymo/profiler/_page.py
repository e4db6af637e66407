"""A small HTML report: sortable tables, samples over time, bars against a baseline. One file, no network."""
from __future__ import annotations

from html import escape
from typing import Any

from kymo.profiler import _text

_STYLE = """
:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #8884}
th:first-child,td:first-child{text-align:left;word-break:break-word}th button{font:inherit;font-weight:600;background:none;border:0;
cursor:pointer;color:inherit;padding:0}svg{width:100%;height:90px;display:block}polyline{fill:none;stroke:#3b82f6;stroke-width:1.5;
vector-effect:non-scaling-stroke}.note{color:#888}.bar{fill:#3b82f6}.slower{fill:#dc2626}
"""
_SORT = """
for (const table of document.querySelectorAll('table')) table.querySelectorAll('th button').forEach((button, at) =>
  button.addEventListener('click', () => {
    const body = table.tBodies[0], key = row => row.cells[at].dataset.value ?? row.cells[at].textContent;
    const down = button.dataset.down = button.dataset.down === '1' ? '0' : '1', sign = down === '1' ? -1 : 1;
    body.append(...[...body.rows].sort((a, b) => {
      const x = key(a), y = key(b), n = Number(x) - Number(y);
      return sign * (Number.isNaN(n) ? x.localeCompare(y) : n);
    }));
  }));
"""


def html(data: dict[str, Any], why: str) -> str:
    """The page; `why` is the reason why it is not the full report."""
    parts = [f"<h1>{escape(_text.report(data).splitlines()[0])}</h1>",
             f"<p class=note>The numbers of one collector. Timeline and flame graph need the report of a recording; "
             f"not available: {escape(why)}.</p>",
             _table("Timing, ms", ("count", "total", "self", "mean", "std", "min", "max", "p50", "p90", "p99"), data["timing"]),
             _table("Metrics", ("count", "mean", "std", "min", "max", "p50", "p90", "p99", "last"), data["metrics"]),
             f"<p>Memory: peak {_text.size(data['memory']['peak_allocated'])} ({escape(data['memory']['source'])})</p>"]
    if "comparison" in data:
        parts.append(_comparison(data["comparison"]))
    for section in ("timing", "metrics"):
        parts += [_chart(name, samples) for name, samples in data["samples"][section].items()]
    return ("<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
            f"<title>Profile</title><style>{_STYLE}</style><body>{''.join(parts)}<script>{_SORT}</script></body></html>\n")


def _cell(value: Any) -> str:
    return f"<td data-value='{'' if value is None else value}'>{_text.number(value)}</td>"


def _table(title: str, columns: tuple[str, ...], rows: dict[str, Any]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th><button type=button>{escape(column)}</button></th>" for column in (title, *columns))
    body = "".join(f"<tr><td>{escape(name)}</td>{''.join(_cell(row[key]) for key in columns)}</tr>" for name, row in rows.items())
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _chart(name: str, samples: dict[str, Any]) -> str:
    """Samples in order."""
    values = [value for value in samples["means"] if value is not None]
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    points = " ".join(f"{100 * i / (len(values) - 1):.2f},{88 - 86 * ((value - low) / (high - low) if high > low else .5):.2f}"
                      for i, value in enumerate(values))
    of = f", means of {samples['size']}" if samples["size"] > 1 else ""
    return (f"<figure><figcaption>{escape(name)}: {_text.number(low)} to {_text.number(high)}{of}</figcaption>"
            f"<svg viewBox='0 0 100 90' preserveAspectRatio=none role=img><polyline points='{points}'/></svg></figure>")


def _comparison(result: dict[str, Any]) -> str:
    """Bars of b / a around 1."""
    rows = {name: row for name, row in result["per_metric"].items() if row["ratio"] is not None}
    lines = []
    for i, (name, row) in enumerate(rows.items()):
        width = min(abs(row["ratio"] - 1), 1) * 40
        kind = "slower" if row["ratio"] > 1 else "bar"
        left = 50 if row["ratio"] > 1 else 50 - width
        lines.append(f"<rect class={kind} x={left:.2f}% y={26 * i + 4} width={max(width, .2):.2f}% height=16 "
                     f"opacity={1 if row['significant'] else .4}><title>{escape(name)}</title></rect>"
                     f"<text x=0 y={26 * i + 17} fill=currentColor>{escape(_text.fit(name, 40))} {row['ratio']:.3f}</text>")
    notes = "".join(f"<li>{escape(note)}</li>" for note in result["notes"])
    height = max(26 * len(rows), 1)
    return (f"<h2>{escape(_text.comparison(result).splitlines()[0])}</h2><p class=note>now / baseline; pale: not significant</p>"
            f"<svg style='height:{height}px' role=img>{''.join(lines)}</svg><ul>{notes}</ul>")
