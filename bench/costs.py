#!/usr/bin/env python3
"""Counts what an act costs: user instructions by callgrind, system calls by strace. Neither depends on how busy the
machine is.

    python3 bench/costs.py --build build/release               prints a table
    python3 bench/costs.py --json bench/costs.json             writes it to a file, too
    python3 bench/costs.py --check                             fails if an act has become more than 3 % dearer
    python3 bench/costs.py --renew                             makes these counts the ones that --check compares with

The acts are described in costs.cpp, and the act "stream" in stream_main.hpp. Needs valgrind, the table strace too.
bench/costs_baseline.json has the counts of the wheel that --check compares with, for each compiler. A compiler that is
not there is not checked (exit code 77).
"""

import argparse
import json
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no __pycache__ among the sources
import report  # noqa: E402

# what the table says, act, options, how often under callgrind, how often under strace, what the wheel is to cost at most.
# The acts of FLOORS are counted by a contender that does the least that they take, too (costs.cpp).
FLOORS = {"rearm"}
ROWS = [
    ("lone expiry, re-arming each ms", "rearm", [], 500, 500, "2,000; 3.1 calls"),
    ("10 timers re-arming each ms, an expiry", "rearm", ["--timers", "10"], 2_000, 2_000, ""),
    ("100 timers", "rearm", ["--timers", "100"], 10_000, 10_000, ""),
    ("1,000 timers", "rearm", ["--timers", "1000"], 50_000, 50_000, ""),
    ("lone expiry, wheel of 64 shards", "rearm", ["--shards", "64"], 500, 500, "1.3 times that of 2"),
    ("a wait that is over at once", "rearm", ["--delay", "0"], 10_000, 10_000, ""),
    ("churn at 1e3, a step", "churn", [], 64_000, 64_000, "520"),
    ("coroutine's wait, cancelled and started again by deferred", "deferred", [], 64_000, 64_000, "800"),
    ("the same by an awaiter in a coroutine that is not Asio's", "awaiter", [], 64_000, 64_000, ""),
    ("operation of one post, with a deadline", "deadline", [], 50_000, 50_000, "320 more than without"),
    ("start of a wait on the wheel", "start", [], 64_000, 64_000, ""),
    ("expiry in a burst of 6,400", "burst", [], 6_400, 6_400, "260"),
    ("cancel_one() and a start, 10 waits on the timer", "cancel_one", ["--timers", "10"], 64_000, 64_000, ""),
    ("the same, 40,000 waits", "cancel_one", ["--timers", "40000"], 64_000, 64_000, ""),
    ("sign of life: touch()", "touch", [], 64_000, 64_000, ""),
]
# A message to and fro, beyond what a bare socket takes in the same program (stream_main.hpp): programs, and what they do.
STREAMS = [
    ("message on a stream, an expiry for each operation", {"steady": "stream_beast", "wheel": "stream_wheel"}, "expiry"),
    ("message on a socket, guard() and touch() for each operation", {"wheel": "stream_guard"}, "expiry"),
]
MESSAGES = (2_000, 12_000)  # the difference of two runs is counted
OF = ("steady", "wheel")
# How often an act meets the clock is not the same in every run.
UNSTEADY = {"10 timers re-arming each ms, an expiry", "100 timers", "1,000 timers"}
BASELINE = pathlib.Path(__file__).with_name("costs_baseline.json")
MOST = 1.03  # times the baseline
NOT_CHECKED = 77


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build/release", help="where the programs were built [%(default)s]")
    p.add_argument("--act", help="only this one")
    p.add_argument("--json", help="a file for the figures")
    p.add_argument("--check", action="store_true", help="compare with the baseline instead")
    p.add_argument("--renew", action="store_true", help="write the baseline instead")
    return p.parse_args()


def output_of(line):
    done = subprocess.run([str(word) for word in line], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"costs.py: {' '.join(map(str, line))}: exit code {done.returncode}\n{done.stderr.strip()}")
    return done.stderr


def instructions(program, inside="run_measured"):
    """What a function and all that it calls execute; without a function, the whole program."""
    said = output_of(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                      *([f"--toggle-collect={inside}"] if inside else []), *program])
    return int(re.search(r"Collected : (\d+)", said)[1])


def system_calls(program):
    with tempfile.NamedTemporaryFile("r") as table:
        output_of(["strace", "-f", "-c", "-U", "calls,name", "-o", table.name, *program])
        return int(re.search(r"^\s*(\d+)\s+total$", table.read(), re.MULTILINE)[1])


def per_message(count, program, end):
    """What a message takes beyond a bare socket's."""
    def of(which):
        fewer, more = (count([program, "--end", which, "--n", n]) for n in MESSAGES)
        return (more - fewer) / (MESSAGES[1] - MESSAGES[0])
    return of(end) - of("bare")


def instructions_of_message(program, end):
    return per_message(lambda line: instructions(line, inside=None), program, end)


def compiler_of(program):
    """As the baseline names it: "g++ 12, Asio 1.26.0, x86_64"."""
    said = subprocess.run([str(program), "--compiler"], capture_output=True, text=True)
    if said.returncode:
        sys.exit(f"costs.py: {program} --compiler: exit code {said.returncode}\n{said.stderr.strip()}")
    return f"{said.stdout.strip()}, {platform.machine()}"


def counts_of_wheel(program, rows, streams):
    for text, act, options, counted, _, _ in rows:
        if text not in UNSTEADY:
            line = [program, "--act", act, "--of", "wheel", "--times", counted, *options]
            yield text, instructions(line) / counted
    for text, programs, end in streams:
        yield text, instructions_of_message(program.with_name(programs["wheel"]), end)


def check(program, rows, streams):
    """The exit code."""
    compiler = compiler_of(program)
    baseline = json.loads(BASELINE.read_text()) if BASELINE.is_file() else {}
    if compiler not in baseline:
        print(f"costs.py: {BASELINE.name} has nothing of {compiler}: not checked")
        return NOT_CHECKED
    dearer = []
    print("| per | baseline | now | |\n|---|--:|--:|---|")
    for text, now in counts_of_wheel(program, rows, streams):
        before = baseline[compiler].get(text)
        if before is None:
            sys.exit(f"costs.py: {BASELINE.name} does not have '{text}': --renew it")
        if now > MOST * before:
            dearer.append(text)
        print(f"| {text} | {before:,.1f} | {now:,.1f} | {100 * (now / before - 1):+.1f} %"
              f"{' **too dear**' if text in dearer else ''} |", flush=True)
    return 1 if dearer else 0


def renew(program, rows, streams):
    baseline = json.loads(BASELINE.read_text()) if BASELINE.is_file() else {}
    counts = baseline.setdefault(compiler_of(program), {})
    counts.update((text, round(count, 1)) for text, count in counts_of_wheel(program, rows, streams))
    BASELINE.write_text(json.dumps(baseline, indent=1) + "\n")


def main():
    args = arguments()
    for tool in ("valgrind",) if args.check or args.renew else ("valgrind", "strace"):
        if not shutil.which(tool):
            sys.exit(f"costs.py: {tool} is needed, and not found: apt-get install {tool}")
    build = pathlib.Path(args.build)
    program = next((p for p in (build / "bench" / "costs", build / "costs") if p.is_file()), None)
    if not program:
        sys.exit(f"costs.py: there is no program costs in {build}: build it, or say --build")
    rows = [row for row in ROWS if args.act in (None, row[1])]
    streams = STREAMS if args.act in (None, "stream") else []
    if not rows and not streams:
        sys.exit(f"costs.py: there is no act {args.act}")
    if args.check:
        return check(program, rows, streams)
    if args.renew:
        return renew(program, rows, streams)
    if args.json and not report.is_writable(pathlib.Path(args.json)):  # said now, not when there are figures
        sys.exit(f"costs.py: {args.json} cannot be written")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the program that runs, as Ctrl-C does
    print("| per | instructions: steady_timer | wheel | wanted, at most | floor | system calls: steady_timer | wheel |\n"
          + "|---" * 7 + "|")
    results = []

    def keep(result):  # after each row: whoever stops it keeps what was counted
        results.append(result)
        if args.json:
            pathlib.Path(args.json).write_text(json.dumps(results, indent=1) + "\n")

    for text, act, options, counted, called, wanted in rows:
        def line(of, times):
            return [program, "--act", act, "--of", of, "--times", times, *options]
        ran = [instructions(line(of, counted)) / counted for of in OF]
        # Twice as often, less once: what starting the program takes is not counted.
        asked = [max(0, system_calls(line(of, 2 * called)) - system_calls(line(of, called))) / called for of in OF]
        result = {"per": text, "instructions": dict(zip(OF, ran)), "system_calls": dict(zip(OF, asked))}
        note = ""
        if act == "deadline":
            result["instructions"]["none"] = instructions(line("none", counted)) / counted
            note = f" (without: {result['instructions']['none']:,.0f})"
        floor = ""
        if wanted and act in FLOORS:
            result["instructions"]["floor"] = instructions(line("floor", counted)) / counted
            floor = f"{result['instructions']['floor']:,.0f}"
        print(f"| {text}{note} | {ran[0]:,.0f} | {ran[1]:,.0f} | {wanted} | {floor} | {asked[0]:.2f} | {asked[1]:.2f} |",
              flush=True)
        keep(result)
    for text, programs, end in streams:
        result = {"per": text, "instructions": {}, "system_calls": {}}
        for of, name in programs.items():
            result["instructions"][of] = instructions_of_message(program.with_name(name), end)
            result["system_calls"][of] = max(0, per_message(system_calls, program.with_name(name), end))
        ran, asked = ([f"{counts[of]:,.{digits}f}" if of in counts else "" for of in OF]
                      for counts, digits in ((result["instructions"], 0), (result["system_calls"], 2)))
        print(f"| {text} | {ran[0]} | {ran[1]} | | | {asked[0]} | {asked[1]} |", flush=True)
        keep(result)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
