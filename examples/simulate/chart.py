#!/usr/bin/env python3
"""Draws what `simulate --json FILE` wrote, as one SVG that reads on light and on dark pages."""

import argparse
import json
import math
import pathlib
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 960, 600
PANEL_WIDTH, PANEL_HEIGHT = 372, 170
COLUMNS, ROWS = (76, 548), (108, 366)  # where the panels begin

STYLE = """
text{font:12px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
.page{fill:#fff}text{fill:#1f2328}.soft{fill:#59636e}.grid{stroke:#d9dee4}
.a{stroke:#0969da}.b{stroke:#bc4c00}text.a{stroke:none;fill:#0969da}text.b{stroke:none;fill:#bc4c00}
.title{font-size:18px;font-weight:600}.name{font-size:13px;font-weight:600}
@media(prefers-color-scheme:dark){
.page{fill:#0d1117}text{fill:#e6edf3}.soft{fill:#9198a1}.grid{stroke:#2b323b}
.a{stroke:#58a6ff}.b{stroke:#f0883e}text.a{fill:#58a6ff}text.b{fill:#f0883e}}
"""


def number(value):
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def steps(high):
    """About four round numbers from 0 to `high`."""
    rough = (high or 1) / 4
    decade = 10 ** math.floor(math.log10(rough))
    step = next(s * decade for s in (1, 2, 2.5, 5, 10) if s * decade >= rough)
    return [i * step for i in range(math.floor((high or 1) / step * 1.0001) + 1)]


def text(x, y, content, cls="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{cls}" text-anchor="{anchor}">{escape(content)}</text>'


def panel(place, name, unit_x, series):
    """`series`: {label: [(x, y)]}, one or two of them, from x = 0 and y = 0 up."""
    left, top = COLUMNS[place % 2], ROWS[place // 2]
    high_x = max(x for points in series.values() for x, _ in points) or 1
    high_y = max(y for points in series.values() for _, y in points) * 1.05 or 1

    def px(x):
        return left + PANEL_WIDTH * x / high_x

    def py(y):
        return top + PANEL_HEIGHT * (1 - y / high_y)

    parts = [text(left, top - 12, name, "name")]
    for y in steps(high_y):
        parts.append(f'<path d="M{left},{py(y):.1f}h{PANEL_WIDTH}" class="grid"/>')
        parts.append(text(left - 8, py(y) + 4, number(y), "soft", "end"))
    parts += [text(px(x), top + PANEL_HEIGHT + 18, f"{x:g}", "soft", "middle") for x in steps(high_x)]
    parts.append(text(left + PANEL_WIDTH, top + PANEL_HEIGHT + 34, unit_x, "soft", "end"))
    labels_end = left + PANEL_WIDTH
    for cls, (label, points) in zip("ab", series.items()):
        path = "L".join(f"{px(x):.1f},{py(y):.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" class="{cls}" fill="none" stroke-width="1.8" stroke-linejoin="round"/>')
        parts.append(text(labels_end, top - 12, label, cls, "end"))
        labels_end -= 6.2 * len(label) + 16
    return parts


def rates(samples, column):
    """Per second of simulated time, between one sample and the next."""
    return [(b["hours"], (b[column] - a[column]) / (3600 * (b["hours"] - a["hours"])))
            for a, b in zip(samples, samples[1:])]


def lateness(buckets):
    """Share of the waits that were no later than x ms."""
    total, below, points = sum(n for _, n in buckets), 0, [(0, 0)]
    for end, n in buckets:
        below += n
        points.append((end / 1e6, 100 * below / total))
    return points


def draw(data):
    def rows(table):
        return [dict(zip(table[0], values)) for values in table[1:]]

    samples = rows(data["samples"])
    buckets = data["lateness"][1:]

    def over_time(column):
        return [(s["hours"], s[column]) for s in samples]

    seconds = 3600 * data["hours"]
    title = f"{data['connections']:,} connections, {data['hours']:.4g} h simulated"
    subtitle = (f"{data['wheel']}; {number(data['memory']).strip()}B of memory; "
                f"{data['processor_seconds']:.0f} s of one processor, "
                f"{100 * data['processor_seconds'] / seconds:.2g} % of real time")
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
             f'aria-label="{escape(title)}">', f"<style>{STYLE}</style>",
             f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" class="page"/>',
             text(24, 34, title, "title"), text(24, 56, subtitle, "soft")]
    parts += panel(0, "Waits that end, per second", "h", {"cancelled": rates(samples, "cancelled"),
                                                          "expire": rates(samples, "expired")})
    parts += panel(1, "Wake-ups per second", "h", {"": rates(samples, "wakeups")})
    parts += panel(2, "At that moment", "h", {"requests in flight": over_time("in_flight"),
                                              "closed connections": over_time("closed")})
    if buckets:
        parts += panel(3, "% of the handlers called within", "ms after the deadline (estimated)",
                       {"": lateness(buckets)})
    return "\n".join(parts + ["</svg>", ""])


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("result", type=pathlib.Path, help="the file that simulate --json wrote")
    p.add_argument("--out", type=pathlib.Path, help="the SVG; by default next to the file")
    args = p.parse_args()
    out = args.out or args.result.with_suffix(".svg")
    try:
        drawing = draw(json.loads(args.result.read_text()))
        out.write_text(drawing)
    except OSError as error:
        p.exit(1, f"{p.prog}: {error.filename}: {error.strerror}\n")
    except (ValueError, KeyError, TypeError):
        p.exit(1, f"{p.prog}: {args.result} is not what simulate --json writes\n")
    print(out)


if __name__ == "__main__":
    main()
