#!/usr/bin/env python3
"""Shows a file that run.py wrote: tables of medians, spreads and ratios, and the targets.

    python3 bench/report.py bench-results.json              for the screen
    python3 bench/report.py bench-results.json --markdown   for bench/README.md
"""

import json
import pathlib
import sys

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


def cell_text(workload, result):
    """The median, the spread, and how much better than the reference it is."""
    m = result["metrics"][workload.metric]
    text = f"{number(m['median'])} ({number(m['min'])}-{number(m['max'])})"
    ratio = result["better_than"].get(workload.reference_of(result["contender"]))
    if ratio and result["contender"] != workload.reference:
        text += f" {number(ratio['median'])}x"
    extra = [f"{number(result['metrics'][name]['median'])} {unit}" for name, unit in workload.more.items()
             if name in result["metrics"]]
    return text, ", ".join(extra)


def table(workload, results):
    """Rows of strings: the head, then one per contender; a second row where there are more metrics."""
    sizes = sorted({r["n"] for r in results})
    rows = [["", *[f"n = {size(n)}" for n in sizes]]]
    for contender in workload.programs:
        mine = {r["n"]: r for r in results if r["contender"] == contender}
        if not mine:
            continue
        cells = [cell_text(workload, mine[n]) if n in mine else ("", "") for n in sizes]
        rows.append([contender, *[c[0] for c in cells]])
        if any(c[1] for c in cells):
            rows.append(["", *[c[1] for c in cells]])
    return rows


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def marked_down(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def measured(target, find):
    """The value, its least and its greatest; None if it was not measured."""
    result = find(target.suite, target.workload, target.contender, target.n)
    if not result:
        return None
    if isinstance(target.what, str):
        m = result["metrics"].get(target.what)
        return m and (m["median"], m["min"], m["max"])
    if target.what[0] == "against":
        m = result["better_than"].get(target.what[1])
        return m and (m["median"], m["min"], m["max"])
    if target.what[0] == "added":
        base, unit = (find(target.suite, target.workload, name, target.n) for name in target.what[1:])
        if not base or not unit:
            return None
        runs = [r["metrics"]["cpu_ns"]["runs"] for r in (result, base, unit)]
        return ordered([(a - b) / u for a, b, u in zip(*runs)])
    other = find(target.suite, *target.what[1:])
    if not other:
        return None
    metric = next(w.metric for w in plan.WORKLOADS if (w.suite, w.name) == (target.suite, target.workload))
    pairs = zip(result["metrics"][metric]["runs"], other["metrics"][metric]["runs"])
    return ordered([a / b for a, b in pairs if b])


def ordered(values):
    """Median, least and greatest; None of nothing."""
    values = sorted(values)
    return (values[len(values) // 2], values[0], values[-1]) if values else None


def targets(data):
    index = {(r["suite"], r["workload"], r["contender"], r["n"]): r for r in data["results"]}
    rows = [["target", "wanted", "measured (min-max)", ""]]
    for t in plan.TARGETS:
        wanted = ("at least " if t.at_least else "at most ") + number(t.bound)
        value = measured(t, lambda *key: index.get(key))
        if value is None:
            continue  # not measured in this run
        met = value[0] >= t.bound if t.at_least else value[0] <= t.bound
        rows.append([t.text, wanted, f"{number(value[0])} ({number(value[1])}-{number(value[2])})", "met" if met else "MISSED"])
    return rows


def text(data, markdown=False):
    show = marked_down if markdown else aligned
    title = (lambda s: f"### {s}\n") if markdown else (lambda s: s)
    parts = [provenance(data) + ".", "Median (min-max) of the rounds; 3x: three times better than the reference, which is "
             "steady_timer, or std::multimap for the wheel alone.\n"]
    for w in plan.WORKLOADS:
        results = [r for r in data["results"] if (r["suite"], r["workload"]) == (w.suite, w.name)]
        if results:
            parts += [title(w.title), show(table(w, results)), ""]
    rows = targets(data)
    parts += [title(f"Targets ({len(rows) - 1} of {len(plan.TARGETS)} measured)"), show(rows), ""]
    return "\n".join(parts)


def load(name):
    """What run.py wrote to a file; ends the program if there is no such thing."""
    try:
        return json.loads(pathlib.Path(name).read_text())
    except OSError as e:
        sys.exit(f"{name}: {e.strerror}")
    except ValueError as e:
        sys.exit(f"{name} was not written by run.py: {e}")


def main():
    files = [a for a in sys.argv[1:] if not a.startswith("-")]
    if len(files) != 1:
        sys.exit(__doc__)
    print(text(load(files[0]), "--markdown" in sys.argv))


if __name__ == "__main__":
    main()
