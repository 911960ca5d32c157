#!/usr/bin/env python3
"""Draws the charts of README.md from a file that run.py wrote.

    python3 bench/charts.py bench/results.json --out doc

One SVG per chart: medians as lines; a point's title, which browsers show under the pointer, has the spread of the rounds.
Readable on light and on dark pages; the line below each says on which machine, when, and at which commit it was measured.
"""

import argparse
import math
import pathlib
import sys
from dataclasses import dataclass
from html import escape

sys.dont_write_bytecode = True  # leave no __pycache__ among the sources
import report  # noqa: E402

WIDTH, HEIGHT = 800, 450
LEFT, RIGHT, TOP, BOTTOM = 84, 192, 62, 90

# contender: label, colour on light, colour on dark, dashes
SERIES = {
    "wheel": ("wheel_timer", "#c2410c", "#fb923c", ""),
    "steady": ("steady_timer", "#1d4ed8", "#7aa8ff", ""),
    "wheel_coroutine": ("wheel_timer, coroutine", "#c2410c", "#fb923c", "6 4"),
    "steady_coroutine": ("steady_timer, coroutine", "#1d4ed8", "#7aa8ff", "6 4"),
    "libev": ("libev", "#4d7c0f", "#a3d94d", ""),
    "none": ("no deadline", "#57606a", "#9aa4af", ""),
    "cancel_after": ("cancel_after", "#c2410c", "#fb923c", ""),
    "cancel_after_coarse": ("the same, coarse clock", "#c2410c", "#fb923c", "2 4"),
    "steady_timer": ("a steady_timer each", "#1d4ed8", "#7aa8ff", ""),
    "cancel_after_awaited": ("cancel_after, awaited", "#c2410c", "#fb923c", "6 4"),
    "awaitable_or": ("|| a steady_timer", "#1d4ed8", "#7aa8ff", "6 4"),
}


@dataclass
class Chart:
    file: str
    title: str
    subtitle: str
    y: str  # what the vertical axis shows, with its unit
    workload: str
    metric: str
    contenders: tuple
    suite: str = "timers"
    n: str = "waits outstanding"
    unit: float = 1  # what the metric is divided by


RIVALS = ("wheel", "steady", "libev")
CHARTS = [
    Chart("churn", "Cancel a random wait and start it again", "delays 1 to 60 s; lower is better", "processor time per step, ns",
          "churn", "cpu_ns", RIVALS + ("wheel_coroutine", "steady_coroutine")),
    Chart("expire_cpu", "n waits expire within one second", "lower is better", "processor time per wait, ns",
          "expire", "cpu_ns", RIVALS),
    Chart("expire_lateness", "n waits expire within one second: how late",
          "lower is better", "after the deadline, 99th percentile, ms", "expire", "late_p99_us", RIVALS, unit=1000),
    Chart("deadline", "A deadline on an operation that completes by one post", "lower is better", "processor time per operation, ns",
          "post", "cpu_ns", ("none", "cancel_after", "cancel_after_coarse", "steady_timer", "cancel_after_awaited",
                             "awaitable_or"), "deadlines", "operations under way"),
]


class Axis:
    """A logarithmic axis from `low` to `high`, in whole or in thirds of decades, drawn from pixel `a` to `b`."""

    def __init__(self, low, high, a, b):
        self.low, self.high, self.a, self.b = math.log10(low), math.log10(high), a, b

    def __call__(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.a + share * (self.b - self.a)

    def marks(self):
        """(value, is a power of ten), as many as fit."""
        steps = (1, 2, 5) if self.high - self.low < 3 else (1,)
        for decade in range(math.floor(self.low), math.ceil(self.high) + 1):
            for step in steps:
                value = step * 10.0**decade
                if self.low - 1e-9 <= math.log10(value) <= self.high + 1e-9:
                    yield value, step == 1


def nice_below(x):
    decade = 10.0 ** math.floor(math.log10(x))
    return max(s * decade for s in (1, 2, 5) if s * decade <= x * 1.0001)


def nice_above(x):
    decade = 10.0 ** math.floor(math.log10(x))
    return min(s * decade for s in (1, 2, 5, 10) if s * decade >= x * 0.9999)


PAGE = {  # class and property: colour on light, colour on dark
    "rect.page{fill:%s}": ("#ffffff", "#0d1117"),
    "text{fill:%s}": ("#1f2328", "#e6edf3"),
    ".soft,.foot{fill:%s}": ("#59636e", "#9198a1"),
    ".grid{stroke:%s}": ("#d9dee4", "#2b323b"),
}


def style(contenders):
    """Plain rules and overrides, no variables: not every viewer of SVG knows those."""
    rules = dict(PAGE)
    for c in contenders:
        rules[f".{c}{{stroke:%s}}text.{c},circle.{c}{{stroke:none;fill:%s}}"] = SERIES[c][1:3]
    colours = ["".join(rule.replace("%s", both[scheme]) for rule, both in rules.items()) for scheme in (0, 1)]
    return ("text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
            ".soft,.mark{font-size:12px}.title{font-size:17px;font-weight:600}.foot{font-size:10.5px}"
            f".label{{font-size:12.5px;font-weight:600}}{colours[0]}@media(prefers-color-scheme:dark){{{colours[1]}}}")


def text(x, y, content, cls, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{cls}" text-anchor="{anchor}">{escape(content)}</text>'


def points_of(chart, data, contender):
    """[(n, median, min, max)]; what is not above zero has no place on a logarithmic axis."""
    found = [(r["n"], report.spread(r["metrics"].get(chart.metric, []))) for r in data["results"]
             if (r["suite"], r["workload"], r["contender"]) == (chart.suite, chart.workload, contender)]
    return sorted((n, *(value / chart.unit for value in s)) for n, s in found if s and s.median > 0)


def grid(chart, x, y):
    parts = []
    for value, main in y.marks():
        width = 1 if main else 0.5
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="grid" stroke-width="{width}"/>')
        parts.append(text(LEFT - 8, y(value) + 4, f"{value:,.10g}", "mark", "end"))
    for value, main in x.marks():
        if main:
            parts.append(f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="grid" stroke-width="0.5"/>')
            parts.append(text(x(value), HEIGHT - BOTTOM + 18, f"{value:,.0f}", "mark", "middle"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 36, f"n, {chart.n}; both axes are logarithmic", "soft", "middle"))
    parts.append(f'<g transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2:.1f}) rotate(-90)">{text(0, 0, chart.y, "soft", "middle")}</g>')
    return parts


def line(contender, points, x, y):
    _, _, _, dashes = SERIES[contender]
    path = " ".join(f"{x(n):.1f},{y(median):.1f}" for n, median, _, _ in points)
    width = 3 if contender.startswith("wheel") else 2
    parts = [f'<polyline points="{path}" fill="none" class="{contender}" stroke-width="{width}" stroke-dasharray="{dashes}" stroke-linejoin="round"/>']
    parts += [f'<circle cx="{x(n):.1f}" cy="{y(median):.1f}" r="3.2" class="{contender}"><title>{escape(SERIES[contender][0])}, n = {n:,}: '
              f'{report.number(median)} ({report.number(low)}-{report.number(high)})</title></circle>' for n, median, low, high in points]
    return parts


def labels(series, y):
    """Names at the ends of the lines, pushed apart where lines end close together."""
    apart = 16
    places = sorted([y(points[-1][1]), contender] for contender, points in series.items())
    for i in range(1, len(places)):
        places[i][0] = max(places[i][0], places[i - 1][0] + apart)
    overflow = places[-1][0] - (HEIGHT - BOTTOM)
    for i in range(len(places) - 1, -1, -1):
        limit = places[i + 1][0] - apart if i + 1 < len(places) else HEIGHT - BOTTOM
        places[i][0] = min(places[i][0], limit) if overflow > 0 else places[i][0]
    return [text(WIDTH - RIGHT + 12, at + 4, SERIES[c][0], f"label {c}") for at, c in places]


def draw(chart, data):
    series = {c: points_of(chart, data, c) for c in chart.contenders}
    series = {c: p for c, p in series.items() if p}
    if not series:
        return None
    every = [p for points in series.values() for p in points]
    x = Axis(min(p[0] for p in every), max(max(p[0] for p in every), 10 * min(p[0] for p in every)), LEFT + 14, WIDTH - RIGHT - 6)
    medians = [p[1] for p in every]
    low, high = nice_below(min(medians)), nice_above(max(medians))
    y = Axis(low, max(high, low * 10), HEIGHT - BOTTOM, TOP)
    m = data["machine"]
    v = data["versions"]
    where = f"{m['cpu']}, {m['cores']} cores, {m['system']}"
    what = (f"{v.get('compiler', '').removesuffix(' optimized')}, Boost {v.get('boost', '?').replace('_', '.')}; {data['date']}, commit "
            f"{data['commit']}; medians of {data['rounds']} rounds")
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(chart.title)}">',
             f"<style>{style(series)}</style>", f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" class="page"/>',
             text(20, 28, chart.title, "title"), text(20, 47, chart.subtitle, "soft")]
    parts += grid(chart, x, y)
    for contender, points in reversed(series.items()):
        parts += line(contender, points, x, y)
    parts += labels(series, y)
    parts += [text(20, HEIGHT - 28, where, "foot"), text(20, HEIGHT - 14, what, "foot"), "</svg>", ""]
    return "\n".join(parts)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results", help="the JSON that run.py wrote")
    p.add_argument("--out", default=".", help="the folder for the SVGs [%(default)s]")
    args = p.parse_args()
    data = report.load(args.results)
    folder = pathlib.Path(args.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for chart in CHARTS:
            drawing = draw(chart, data)
            if drawing is None:
                print(f"{chart.file}: nothing measured")
            else:
                (folder / f"{chart.file}.svg").write_text(drawing)
                print(folder / f"{chart.file}.svg")
    except OSError as e:
        sys.exit(f"{e.filename}: {e.strerror}")


if __name__ == "__main__":
    main()
