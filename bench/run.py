#!/usr/bin/env python3
"""Runs the benchmarks: every measurement in a process of its own, contenders taking turns, several rounds.

    python3 bench/run.py --build build/release            everything; takes hours
    python3 bench/run.py --build build/release --quick    a first impression, a quarter of an hour
    python3 bench/run.py --build build/release --targets  only what bench/README.md's targets and charts need

A ratio is taken within a round, where both contenders ran seconds apart; the table shows the median of the rounds and,
in brackets, the least and the greatest.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # leave no __pycache__ among the sources
import charts  # noqa: E402
import plan  # noqa: E402
import report  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def rounds(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def numbers(text):
    try:
        return {int(float(n)) for n in text.split(",")}
    except OverflowError:
        raise ValueError from None


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build/release", help="where the programs were built [%(default)s]")
    p.add_argument("--out", default="bench-results.json", help="the file for the JSON [%(default)s]")
    p.add_argument("--rounds", type=rounds, help="how often each measurement is made [5]")
    p.add_argument("--quick", action="store_true", help="1e4 and 1e5 waits, 3 rounds, shorter measurements")
    p.add_argument("--targets", action="store_true", help="only what a target, its reference or a chart needs")
    p.add_argument("--suite", choices=list(plan.SUITES), help="only this one")
    p.add_argument("--workload", help="only these, separated by commas")
    p.add_argument("--contender", help="only these, separated by commas")
    p.add_argument("--n", type=numbers, help="only these numbers of waits, as 1e4,1e5")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--wheel", default="", help="options for the wheel, as '--tick-us 1000 --shards 4'")
    p.add_argument("--dry-run", action="store_true", help="say what would be run")
    args = p.parse_args()
    args.rounds = args.rounds or (3 if args.quick else 5)
    return args


def find_program(build, name):
    for folder in (build, build / "bench", build / "bin"):
        if os.access(folder / name, os.X_OK):
            return folder / name
    return None


def ask(program, question):
    return json.loads(subprocess.run([program, question], check=True, capture_output=True, text=True).stdout)


def find_programs(build):
    """program name -> (path, {contender: [workloads]}); says which are missing."""
    found = {}
    for name in dict.fromkeys(program for suite in plan.SUITES.values() for program in suite.values()):
        path = find_program(build, name)
        if path:
            found[name] = path, ask(path, "--list")
        else:
            print(f"{name} is not in {build}: left out", file=sys.stderr)
    return found


def needed_by_targets():
    """{(suite, workload, contender, n)}"""
    cells = set()
    for t in plan.TARGETS:
        cells.update((t.suite, t.workload, c, t.n) for c in (t.contender, t.floor) if c)
        if isinstance(t.what, tuple) and t.what[0] == "of":
            cells.add((t.suite, *t.what[1:]))
        elif isinstance(t.what, tuple):
            cells.update((t.suite, t.workload, other, t.n) for other in t.what[1:])
    return cells


def needed_by_charts():
    """{(suite, workload, contender, n)}"""
    return {(c.suite, c.workload, contender, n) for c in charts.CHARTS for contender in c.contenders
            for w in plan.WORKLOADS if (w.suite, w.name) == (c.suite, c.workload) for n in w.sizes}


def chosen(args, programs):
    """[(workload, n, [contenders])]: what will be run."""
    pick = lambda text: set(text.split(",")) if text else None
    workloads, contenders = pick(args.workload), pick(args.contender)
    wanted = needed_by_targets() | needed_by_charts() if args.targets else None
    cells = []
    for w in plan.WORKLOADS:
        if (args.suite and w.suite != args.suite) or (workloads and w.name not in workloads):
            continue
        for n in w.sizes:
            if args.n and n not in args.n or args.quick and not args.n and n not in (1, 64, plan.E4, plan.E5):
                continue
            names = [c for c, program in w.programs.items()
                     if program in programs and w.name in programs[program][1].get(plan.program_contender(c)[0], [])]
            if w.contenders:
                names = [c for c in names if c in w.contenders]
            if contenders:
                names = [c for c in names if c in contenders]
            if wanted is not None:
                names = [c for c in names if (w.suite, w.name, c, n) in wanted]
            if names:
                cells.append((w, n, names))
    return cells


def command(args, programs, workload, n, contender):
    name, variant = plan.program_contender(contender)
    line = [programs[workload.programs[contender]][0], "--contender", name, *variant, "--workload", workload.name,
            "--n", n, "--seed", args.seed]
    line += ["--steps", max(workload.steps, n // 2) // (4 if args.quick else 1)]
    line += ["--seconds", min(workload.seconds.get(n, 1), 5) if args.quick else workload.seconds.get(n, 3)]
    if contender.startswith("wheel"):
        line += shlex.split(args.wheel)
    return [str(word) for word in line]


def measure(line):
    """The metrics of one process. A machine that was busy at the wrong moment gets two more chances."""
    for _ in range(3):
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            problem = "took more than ten minutes"
            break
        if done.returncode == 0:
            metrics = json.loads(done.stdout)["metrics"]
            return {name: float(f"{value:.6g}") for name, value in metrics.items()}
        problem = done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit code {done.returncode}"
    print(f"\n{' '.join(line)}\n  {problem}", file=sys.stderr)
    return None


class Progress:
    def __init__(self, total):
        self.total, self.done, self.begin, self.shown = total, 0, time.monotonic(), 0

    def step(self, what):
        now = time.monotonic()
        left = (now - self.begin) / self.done * (self.total - self.done) if self.done else 0
        self.done += 1
        text = f"[{self.done}/{self.total}] {what}, {left / 60:.0f} min left"
        if sys.stderr.isatty():
            print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)
        elif now - self.shown > 30:  # into a log: a line now and then
            self.shown = now
            print(text, file=sys.stderr, flush=True)


def record(workload, n, contender, runs):
    """What the rounds measured, by metric; None where a round failed."""
    names = next((run for run in runs if run), {})
    return {"suite": workload.suite, "workload": workload.name, "contender": contender, "n": n,
            "metrics": {name: [run and run[name] for run in runs] for name in names}}


def as_text(out):
    """JSON with a line for each result: short, and fit for a repository."""
    compact = lambda value: json.dumps(value, separators=(",", ":"))
    head = json.dumps({key: value for key, value in out.items() if key != "results"}, indent=1).removesuffix("\n}")
    return head + ',\n "results": [\n' + ",\n".join(compact(result) for result in out["results"]) + "\n]}\n"


def machine():
    cpu, memory = platform.processor(), 0
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])
    huge = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_gb": round(memory / 2**20),
            "kernel": platform.release(),
            "system": platform.freedesktop_os_release().get("PRETTY_NAME", "") if hasattr(platform, "freedesktop_os_release") else "",
            "huge_pages": re.search(r"\[(\w+)\]", huge.read_text())[1] if huge.exists() else "none"}


def commit():
    git = lambda *words: subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True)
    head = git("rev-parse", "--short", "HEAD")
    if head.returncode:
        return "unknown"
    return head.stdout.strip() + ("+changes" if git("status", "--porcelain", "--untracked-files=no").stdout.strip() else "")


def versions(programs):
    merged = {}
    for path, _ in programs.values():
        merged.update(ask(path, "--versions"))
    return merged


def main():
    args = arguments()
    programs = find_programs(pathlib.Path(args.build))
    cells = chosen(args, programs)
    if not cells:
        sys.exit("nothing to run: see --help")
    if args.dry_run:
        for workload, n, names in cells:
            print(f"{workload.suite} {workload.name} {n}: {' '.join(names)}")
        return
    if not report.is_writable(pathlib.Path(args.out)):  # said now, not when the first figures are there
        sys.exit(f"{args.out} cannot be written")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the program that runs, as Ctrl-C does
    out = {"date": datetime.date.today().isoformat(), "commit": commit(), "machine": machine(),
           "versions": versions(programs), "rounds": args.rounds, "seed": args.seed, "wheel_options": args.wheel,
           "quick": args.quick, "results": []}
    progress = Progress(args.rounds * sum(len(names) for _, _, names in cells))
    for workload, n, names in cells:
        rounds = {name: [] for name in names}
        for _ in range(args.rounds):
            for name in names:
                progress.step(f"{workload.name} {n} {name}")
                rounds[name].append(measure(command(args, programs, workload, n, name)))
        out["results"] += [record(workload, n, name, runs) for name, runs in rounds.items()]
        # Written after every cell: whoever stops a long run keeps what it had measured.
        pathlib.Path(args.out).write_text(as_text(out))
    print(file=sys.stderr)
    print(report.text(out))
    print(f"written to {args.out}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
