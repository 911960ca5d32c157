#!/usr/bin/env python3
"""Shows a file that run.py wrote.

    python3 bench/report.py bench-results.json              tables of medians, spreads and ratios, and the targets
    python3 bench/report.py bench-results.json --markdown   the targets as bench/README.md has them
"""

import json
import os
import pathlib
import statistics
import sys
from collections import namedtuple

sys.dont_write_bytecode = True  # leave no __pycache__ among the sources
import plan  # noqa: E402


def number(x):
    if x == 0 or abs(x) >= 100:
        return f"{x:,.0f}"
    return f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}"


def size(n):
    text = f"{n:.0e}"
    mantissa, exponent = text.split("e")
    return f"1e{int(exponent)}" if mantissa == "1" and n >= 1000 else str(n)


def provenance(data):
    m = data["machine"]
    libraries = ", ".join(f"{k} {v}" for k, v in data["versions"].items())
    options = f"; wheel options {data['wheel_options']}" if data["wheel_options"] else ""
    return (f"{m['cpu']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']}, kernel {m['kernel']}, huge pages: "
            f"{m['huge_pages']}; {libraries}; commit {data['commit']}, {data['date']}; {data['rounds']} rounds, seed "
            f"{data['seed']}{options}")


Spread = namedtuple("Spread", "median min max")


def spread(values):
    """Over the rounds that were measured; None if there was none."""
    good = [v for v in values if v is not None]
    return Spread(statistics.median(good), min(good), max(good)) if good else None


def quotients(over, under):
    """Round by round."""
    return [a / b if a is not None and b else None for a, b in zip(over, under)]


def with_spread(s):
    return f"{number(s.median)} ({number(s.min)}-{number(s.max)})"


class Results:
    def __init__(self, data):
        self.metrics = {(r["suite"], r["workload"], r["contender"], r["n"]): r["metrics"] for r in data["results"]}

    def runs(self, suite, workload, contender, n, metric):
        """One value for each round; none if it was not measured."""
        return self.metrics.get((suite, workload, contender, n), {}).get(metric, [])

    def better(self, workload, contender, other, n):
        """How many times better than the other."""
        mine, theirs = (self.runs(workload.suite, workload.name, c, n, workload.metric) for c in (contender, other))
        return spread(quotients(mine, theirs) if workload.higher_is_better else quotients(theirs, mine))

    def cell(self, w, contender, n):
        """The median, the spread, and how much better than the reference it is; then the other metrics."""
        value = spread(self.runs(w.suite, w.name, contender, n, w.metric))
        if not value:
            return "", ""
        text = with_spread(value)
        ratio = self.better(w, contender, w.reference_of(contender), n)
        if ratio and contender != w.reference:
            text += f" {number(ratio.median)}x"
        more = [(spread(self.runs(w.suite, w.name, contender, n, name)), unit) for name, unit in w.more.items()]
        return text, ", ".join(f"{number(m.median)} {unit}" for m, unit in more if m)

    def table(self, w):
        """Rows of strings: the head, then one per contender; a second row where there are more metrics. None of nothing."""
        measured = {(contender, n) for suite, name, contender, n in self.metrics if (suite, name) == (w.suite, w.name)}
        sizes = sorted({n for _, n in measured})
        rows = [["", *[f"n = {size(n)}" for n in sizes]]]
        for contender in w.programs:
            cells = [self.cell(w, contender, n) for n in sizes]
            rows += [row for row in ([contender, *[c[0] for c in cells]], ["", *[c[1] for c in cells]]) if any(row[1:])]
        return rows if sizes else None

    def of_target(self, t):
        """None if it was not measured."""
        return self.of_contender(t, t.contender)

    def floor_of(self, t):
        """None if there is none, or it was not measured."""
        return self.of_contender(t, t.floor) if t.floor else None

    def of_contender(self, t, contender):
        runs = lambda workload, contender, n, metric: self.runs(t.suite, workload, contender, n, metric)
        if isinstance(t.what, str):
            return spread(runs(t.workload, contender, t.n, t.what))
        workload = next(w for w in plan.WORKLOADS if (w.suite, w.name) == (t.suite, t.workload))
        kind, *others = t.what
        if kind == "against":
            return self.better(workload, contender, others[0], t.n)
        mine = runs(t.workload, contender, t.n, workload.metric)
        if kind == "of":
            return spread(quotients(mine, runs(*others, workload.metric)))
        base, unit = (runs(t.workload, other, t.n, workload.metric) for other in others)
        return spread(quotients([a - b if None not in (a, b) else None for a, b in zip(mine, base)], unit))


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def marked_down(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def targets(results, missed="MISSED"):
    """Rows of strings, for those that were measured."""
    rows = [["", "wanted", "measured", "", "floor"]]
    for t in plan.TARGETS:
        value = results.of_target(t)
        if value:
            met = value.median >= t.bound if t.at_least else value.median <= t.bound
            wanted = ("at least " if t.at_least else "at most ") + number(t.bound)
            floor = results.floor_of(t)
            rows.append([t.text, wanted, with_spread(value), "met" if met else missed, number(floor.median) if floor else ""])
    return rows


def text(data):
    results = Results(data)
    parts = [provenance(data) + ".", "Median (min-max) of the rounds; 3x: three times better than the reference, which is "
             "steady_timer, or what has no deadlines.\n"]
    for w in plan.WORKLOADS:
        rows = results.table(w)
        if rows:
            parts += [w.title, aligned(rows), ""]
    rows = targets(results)
    parts += [f"Targets ({len(rows) - 1} of {len(plan.TARGETS)} measured)", aligned(rows), ""]
    return "\n".join(parts)


def markdown(data):
    rows = targets(Results(data), missed="**missed**")
    return f"{provenance(data)}.\n\n{marked_down(rows)}"


def is_writable(file):
    return not file.is_dir() and os.access(file if file.exists() else file.absolute().parent, os.W_OK)


def load(name):
    """What run.py wrote to a file; ends the program if there is no such thing."""
    try:
        data = json.loads(pathlib.Path(name).read_text())
        provenance(data), Results(data)
        return data
    except OSError as e:
        sys.exit(f"{name}: {e.strerror}")
    except ValueError as e:
        sys.exit(f"{name} was not written by run.py: {e}")
    except (KeyError, TypeError):
        sys.exit(f"{name} was not written by run.py")


def main():
    files = [a for a in sys.argv[1:] if not a.startswith("-")]
    options = {a for a in sys.argv[1:] if a.startswith("-")}
    if options & {"-h", "--help"}:
        print(__doc__)
        return
    if len(files) != 1 or options - {"--markdown"}:
        sys.exit(__doc__)
    show = markdown if options else text
    print(show(load(files[0])))


if __name__ == "__main__":
    main()
