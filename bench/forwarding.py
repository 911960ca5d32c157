#!/usr/bin/env python3
"""Finds loads that a processor cannot serve from its store buffer.

A load of bytes that several stores wrote shortly before, or a store and what was in memory, waits until the stores have
reached the cache: some 15 cycles. This runs a program under valgrind's lackey, looks at each load and the stores before
it, and prints the pairs, the most frequent first:

    python3 bench/forwarding.py -- build/release/bench/costs --act deadline --of wheel --times 200

Not each of them costs time: a locked instruction in between empties the buffer anyway, and a load that only a branch
depends on, which is predicted, holds up nobody. Needs valgrind and binutils, and a program that has line numbers (-g).
"""

import argparse
import bisect
import collections
import re
import subprocess
import sys
import tempfile

EVENT = re.compile(r"^(I | [LSM]) ?\s*([0-9a-f]+),(\d+)")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read_events(trace):
    for line in trace:
        if event := EVENT.match(line):
            yield event[1].strip(), int(event[2], 16), int(event[3])


def find_pairs(trace, within):
    """Counts (address of the load, its size, addresses and sizes of the stores), and notes what was executed."""
    pairs, executed = collections.Counter(), set()
    written = {}  # by byte: when, by which store, from where, how many bytes
    done, instruction, stores = 0, 0, 0
    for kind, address, size in read_events(trace):
        if kind == "I":
            instruction, done = address, done + 1
            executed.add(address)
            continue
        touched = range(address, address + size)
        if kind in "LM":
            found = {written[b][1:] if b in written and done - written[b][0] <= within else None for b in touched}
            recent = {store[1:] for store in found if store}
            if recent and len(found) > 1:
                pairs[instruction, size, tuple(sorted(recent))] += 1
        if kind in "SM":
            stores += 1
            for b in touched:
                written[b] = done, stores, instruction, size
    return pairs, executed


class Program:
    """Names addresses of a program. Valgrind loads it at a page of its own choice."""

    def __init__(self, path, executed):
        self.path = path
        lines = (line.split(" ", 2) for line in output_of("nm", "-C", "--defined-only", path).splitlines())
        self.functions = sorted((int(address, 16), name) for address, kind, name in lines if kind in "tTwW")
        self.starts = [address for address, _ in self.functions]
        bases = range(0x100000, 0x120000, 0x1000)
        self.base = max([0, *bases], key=lambda base: sum(base + start in executed for start in self.starts))

    def describe(self, address):
        offset = address - self.base
        at = bisect.bisect(self.starts, offset) - 1
        if at < 0 or offset > self.starts[-1]:
            return "elsewhere"
        line = output_of("addr2line", "-e", self.path, hex(offset)).split("/")[-1].strip()
        return f"{line} in {self.functions[at][1][:90]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--within", type=int, default=120, metavar="N", help="instructions from store to load [120]")
    parser.add_argument("--least", type=int, default=100, metavar="N", help="leave out what is rarer [100]")
    parser.add_argument("command", nargs="+", help="the program with its arguments, behind --")
    options = parser.parse_args()

    with tempfile.NamedTemporaryFile("r") as log:
        run = subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={log.name}", *options.command])
        if run.returncode != 0:
            sys.exit(f"{options.command[0]} failed with {run.returncode}")
        pairs, executed = find_pairs(log, options.within)
    program = Program(options.command[0], executed)
    for (load, size, stores), times in pairs.most_common():
        if times < options.least:
            break
        print(f"{times} times, {size} bytes at {program.describe(load)}")
        for store, stored in stores:
            print(f"    {stored} bytes by {program.describe(store)}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except FileNotFoundError as e:
        sys.exit(f"{e.filename} is needed")
