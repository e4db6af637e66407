"""docs/performance.svg: the cost of other tools relative to kymo, and of kymo relative to its bars, on logarithmic scales.
Made of the same values and lines as docs/performance.md, with Python's standard library only; the same values give the
same bytes. It has its own background, light or dark as the reader prefers.
"""
import html
import math

# What is measured, kymo's keys (summed), unit and its scale, and for each peer its name and key.
PEERS = [
    ("A zone in C", ["zone.flight.one.1.ns"], "ns", 1, [
        ("the floor: clock twice, 32 bytes", "zone.flight.one.1.base_ns"), ("uftrace, a call", "peer.uftrace.ns"),
        ("LTTng-UST", "peer.lttng.ns"), ("LTTng-UST with the thread's id", "peer.lttng_thread.ns"),
        ("Tracy", "peer.tracy.ns"), ("Perfetto SDK", "peer.perfetto.ns")]),
    *[(f"A call of Python {version}", [f"python.{version}.kymo.ns"], "ns", 1, [
        (name, f"python.{version}.{key}.ns") for name, key in
        (("cProfile", "cprofile"), ("VizTracer", "viztracer"), ("yappi", "yappi"))]) for version in ("3.11", "3.12", "3.13")],
    ("A line of Python 3.12", ["python.3.12.kymo_lines.ns"], "ns", 1, [("sys.settrace", "python.3.12.settrace.ns")]),
    ("A PyTorch module, forward and backward", ["torch.event.forward", "torch.event.backward"], "µs", 1e-3, [
        ("torch's hooks in Python", "torch.event.hooks")]),
    ("A sample of a Python stack", ["stacks.cpu"], "µs", 1e-3, [("py-spy", "stacks.py_spy_cpu")]),
    *[(f"Every allocation of {name}", [f"memory.{name}.kymo"], "s", 1, [
        (peer, f"memory.{name}.{peer}") for peer in peers])
      for name, peers in (("perl", ["heaptrack"]), ("sqlite3", ["heaptrack"]), ("python", ["heaptrack", "memray"]))],
    ("GROUP BY over 10 million rows", ["query.group.s"], "s", 1, [
        ("DuckDB, its own table", "query.group.own_s"), ("SQLite", "peer.sqlite_group_s")]),
]

WIDTH, MARGIN, LABEL, NUMBER = 960, 24, 300, 150
LEFT, RIGHT = MARGIN + LABEL, WIDTH - MARGIN - NUMBER
ROW = 20
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 } .group { font-weight: 600 } .quiet { fill: #59636e; font-size: 12px }
.ground { fill: #ffffff; stroke: #d1d9e0 } .grid { stroke: #d1d9e0 } .line { stroke: #1f2328; stroke-width: 1.5 }
.good { fill: #0969da } .bad { fill: #bc4c00 } .faint { fill: #0969da; opacity: .22 } .faintbad { fill: #bc4c00; opacity: .22 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .quiet { fill: #9198a1 } .ground { fill: #0d1117; stroke: #3d444d } .grid { stroke: #3d444d }
.line { stroke: #e6edf3 } .good { fill: #4493f8 } .bad { fill: #f0883e } .faint { fill: #4493f8 } .faintbad { fill: #f0883e }
}"""


class Scale:
    """A logarithmic scale from low to high across the middle of the picture; values beyond it are drawn at the edge."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def x(self, ratio):
        low, high = math.log10(self.low), math.log10(self.high)
        at = math.log10(min(max(ratio, self.low), self.high)) if ratio > 0 else low
        return LEFT + (at - low) / (high - low) * (RIGHT - LEFT)

    def ticks(self):
        return [10.0**power for power in range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)]


class Drawing:
    def __init__(self):
        self.out, self.y = [], MARGIN

    def text(self, x, words, kind="", anchor="start", y=None):
        attributes = f' class="{kind}"' if kind else ""
        attributes += f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.out.append(f'<text x="{x:.1f}" y="{(self.y if y is None else y):.1f}"{attributes}>{html.escape(str(words))}</text>')

    def bar(self, scale, begin, end, kind):
        a, b = sorted((scale.x(begin), scale.x(end)))
        self.out.append(f'<rect x="{a:.1f}" y="{self.y - 11:.1f}" width="{max(b - a, 1):.1f}" height="13" rx="2" class="{kind}"/>')

    def dot(self, scale, ratio, kind):
        self.out.append(f'<circle cx="{scale.x(ratio):.1f}" cy="{self.y - 4.5:.1f}" r="4" class="{kind}"/>')

    def heading(self, title, words):
        self.y += 18
        self.text(MARGIN, title, "title")
        self.y += 20
        self.text(MARGIN, words, "quiet")
        self.y += 30

    def axis(self, scale, first_y, at_one):
        """Drawn behind the rows, so it comes before them in the file."""
        lines = []
        for tick in scale.ticks():
            kind = "line" if tick == 1 else "grid"
            x = scale.x(tick)
            lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{first_y:.1f}" y2="{self.y - 8:.1f}" class="{kind}"/>')
            self.text(x, at_one if tick == 1 else f"{tick:g} ×", "quiet", "middle", first_y - 6)
        return lines


def short(value):
    """Three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def draw_peers(drawing, values):
    drawing.heading("Cost of other tools, relative to kymo",
                    "Measured in one run, alternating. To the right: higher cost than kymo; to the left: lower cost.")
    scale, first, at = Scale(0.1, 100), drawing.y, len(drawing.out)
    drawing.y += 8
    for what, keys, unit, factor, peers in PEERS:
        ours = sum(values[key] for key in keys) if all(key in values for key in keys) else None
        drawing.y += ROW
        drawing.text(MARGIN, what, "group")
        drawing.text(WIDTH - MARGIN, f"kymo {short(ours * factor)} {unit}" if ours else "not measured", "quiet", "end")
        for name, key in peers:
            drawing.y += ROW
            drawing.text(LEFT - 12, name, "", "end")
            if not ours or key not in values:
                drawing.text(WIDTH - MARGIN, "not measured", "quiet", "end")
                continue
            ratio = values[key] / ours
            drawing.bar(scale, 1, ratio, "good" if ratio >= 1 else "bad")
            drawing.text(WIDTH - MARGIN, f"{short(values[key] * factor)} {unit}, {short(ratio)} ×", "", "end")
        drawing.y += 6
    drawing.y += ROW
    drawing.out[at:at] = drawing.axis(scale, first, "kymo")


def of_bar(line):
    """The measured value relative to the bar; a bar of 0 is reached or missed by far."""
    return line.value / line.row.bar if line.row.bar else math.inf if line.value > 0 else 0


def lane_of(title, titles):
    """The part before the colon, if no other section has the same; shortened to fit."""
    first = title.split(":")[0]
    words = first if [other.split(":")[0] for other in titles].count(first) == 1 else title
    return words if len(words) < 42 else words[:40].rsplit(" ", 1)[0] + " …"


def draw_bars(drawing, sections):
    drawing.heading("Cost of kymo, relative to its bars",
                    "A dot is a row of the tables below; a strip extends to the worst one. Left of the line: the bar is reached.")
    scale, first, at = Scale(0.01, 10), drawing.y, len(drawing.out)
    drawing.y += 8
    for title, lines in sections:
        barred = [line for line in lines if line.row.bar is not None]
        found = [line for line in barred if line.value is not None]
        if not barred:
            continue
        drawing.y += ROW
        drawing.text(LEFT - 12, lane_of(title, [other for other, _ in sections]), "", "end")
        reached = [line for line in found if line.verdict == "reached"]
        drawing.text(WIDTH - MARGIN, f"{len(reached)} of {len(barred)}" if found else "not measured", "" if found else "quiet", "end")
        if found:
            drawing.bar(scale, scale.low, max(map(of_bar, found)), "faint" if len(reached) == len(found) else "faintbad")
        for line in sorted(found, key=of_bar):
            drawing.dot(scale, of_bar(line), "good" if line.verdict == "reached" else "bad")
    drawing.y += ROW
    drawing.out[at:at] = drawing.axis(scale, first, "the bar")


def picture(values, sections):
    drawing = Drawing()
    draw_peers(drawing, values)
    drawing.y += 12
    draw_bars(drawing, sections)
    height = drawing.y + MARGIN - ROW
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img">',
        "<title>Cost of kymo, compared with other tools and with its own bars</title>", f"<style>{STYLE}</style>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8" class="ground"/>', *drawing.out, "</svg>", ""])
