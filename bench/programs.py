#!/usr/bin/env python3
"""Whole programs with their deadlines on the wheel, and by an expert's hand in plain Asio: what they spend for a message.

    python3 bench/programs.py                                  a table, after some minutes
    python3 bench/programs.py --rounds 2 --seconds 1           does it run?
    python3 bench/programs.py --svg doc/programs.svg           draws a chart, too

  chat        chat.cpp, 28,000 messages a second: --of wheel, --of lazy, --of slot
  tcp_proxy   examples/tcp_proxy between wrk and nginx: --timer wheel, --timer steady
  http_costs  an HTTP server under wrk: contenders wheel_30, lazy_30, slot_30

By hand, handlers store time points, and one steady_timer for each connection looks at them. The floor (slot) is the same
where each operation can be cancelled by itself: what any deadline on an operation needs. In each round all run, one after
the other; the next round begins with the last. A ratio is taken within a round. Printed are medians, in brackets the
least and the greatest round. Needs wrk and nginx. Nothing else may run on the machine.
"""

import argparse
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from html import escape

WIDTH, ROW, LEFT, TOP = 800, 70, 150, 70
WAYS = ("wheel", "lazy")
FLOOR = "slot"
NAMES = {"chat": "chat server", "tcp_proxy": "proxy", "http_costs": "HTTP server"}
LABELS = {"wheel": ("on the wheel", "#c2410c", "#fb923c"), "lazy": ("by hand", "#1d4ed8", "#7aa8ff")}


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build/release", help="where the programs were built [%(default)s]")
    p.add_argument("--program", action="append", choices=PROGRAMS, help="only this one")
    p.add_argument("--rounds", type=int, default=6, help="[%(default)s]")
    p.add_argument("--seconds", type=int, default=5, help="that a run takes, at the least [%(default)s]")
    p.add_argument("--svg", help="a file for the chart")
    p.add_argument("--note", default="", help="below the chart: the machine, the compiler, the day, the commit")
    p.add_argument("--json", help="a file for the figures")
    return p.parse_args()


def ended_well(line):
    done = subprocess.run([str(word) for word in line], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"programs.py: {' '.join(map(str, line))}: exit code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


def chat(build, way, seconds):
    said = json.loads(ended_well([build / "bench/chat", "--of", way, "--seconds", seconds]))
    return said["user_ns"], said["system_ns"]


def http_costs(build, way, seconds):
    said = json.loads(ended_well([build / "bench/http_costs", "--workload", "keep_alive", "--contender", f"{way}_30",
                                  "--n", 100, "--steps", 50_000 * seconds]))
    return said["metrics"]["user_ns"], said["metrics"]["system_ns"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"programs.py: nobody listens on port {port}")


def spent_by(process):
    """User and system time in ns."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return [int(ticks) * 1_000_000_000 // os.sysconf("SC_CLK_TCK") for ticks in fields[11:13]]


def nginx_in(folder, port):
    (folder / "index.html").write_text("A page of some sixty characters, as short as a health check's.\n")
    (folder / "nginx.conf").write_text(
        f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error;\n"
        f"events {{ worker_connections 1024; }}\n"
        f"http {{ access_log off; keepalive_requests 1000000000; server {{ listen 127.0.0.1:{port}; root {folder}; }}\n"
        + "".join(f"  {kind}_temp_path {folder}/{kind};\n"
                  for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")) + "}\n")
    return ["nginx", "-e", folder / "error", "-c", folder / "nginx.conf"]


def tcp_proxy(build, way, seconds):
    running = []

    def start(line):
        running.append(subprocess.Popen([str(word) for word in line], stdout=subprocess.DEVNULL))
        return running[-1].pid

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # nginx gives up root
        try:
            upstream, port = free_port(), free_port()
            start(nginx_in(pathlib.Path(folder), upstream))
            wait_for(upstream)
            proxy = start([build / "examples/tcp_proxy", "--port", port, "--upstream-port", upstream, "--timer",
                           "steady" if way == "lazy" else way])
            wait_for(port)
            before = spent_by(proxy)
            said = ended_well(["wrk", "-t1", "-c100", f"-d{seconds}s", f"http://127.0.0.1:{port}/"])
            after = spent_by(proxy)
        finally:
            for process in running:
                process.send_signal(signal.SIGTERM)
            for process in running:
                process.wait()
    requests = int(next(line.split()[0] for line in said.splitlines() if " requests in " in line))
    return tuple((b - a) / requests for a, b in zip(before, after))


PROGRAMS = {"chat": chat, "tcp_proxy": tcp_proxy, "http_costs": http_costs}
HAVE_FLOOR = ("chat", "http_costs")


def with_spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def measured(args):
    """For each program and way, (user, system) of each round."""
    results = {}
    for name in args.program or PROGRAMS:
        ways = (*WAYS, FLOOR) if name in HAVE_FLOOR else WAYS
        results[name] = {way: [] for way in ways}
        for round_number in range(args.rounds):
            for way in ways if round_number % 2 == 0 else reversed(ways):
                results[name][way].append(PROGRAMS[name](pathlib.Path(args.build), way, args.seconds))
    return results


def ratios(runs, part, way="wheel"):
    """Of each round, to what is written by hand."""
    return [part(run) / part(lazy) for run, lazy in zip(runs[way], runs["lazy"]) if part(lazy)]


def ratio_cells(runs, part):
    return [with_spread(ratios(runs, part, way), ".2f") if way in runs else "" for way in ("wheel", FLOOR)]


def table(results):
    yield ("| program, ns a message | user: wheel | by hand | ratio | floor's | system: wheel | by hand "
           "| user and system: ratio | floor's |")
    yield "|---" + "|--:" * 8 + "|"
    for name, runs in results.items():
        cells = [name]
        for place in (0, 1):
            cells += [with_spread([run[place] for run in runs[way]], ",.0f") for way in WAYS]
            if place == 0:
                cells += ratio_cells(runs, lambda run: run[0])
        cells += ratio_cells(runs, sum)
        yield f"| {' | '.join(cells)} |"


def drawn(results, note):
    """A bar for each way: user time in full colour, the kernel's in a lighter one."""
    height = TOP + ROW * len(results) + 30
    longest = max(sum(run) for runs in results.values() for way in WAYS for run in runs[way])
    style = "".join(f".{way}{{fill:{light}}}" for way, (_, light, _) in LABELS.items())
    dark = "".join(f".{way}{{fill:{colour}}}" for way, (_, _, colour) in LABELS.items())
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">\n'
           f"<style>text{{fill:#24292f}}.system{{opacity:.4}}{style}"
           f"@media(prefers-color-scheme:dark){{text{{fill:#d0d7de}}{dark}}}</style>\n"
           f'<text x="20" y="28" font-size="17">Whole programs: a server\'s processor time for a message</text>\n'
           f'<text x="20" y="48">microseconds; pale: in the kernel; lower is better</text>\n')
    for row, (name, runs) in enumerate(results.items()):
        y = TOP + ROW * row
        yield f'<text x="20" y="{y + 26}">{escape(NAMES[name])}</text>\n'
        for place, way in enumerate(WAYS):
            x, top = LEFT, y + 24 * place
            user, system = (statistics.median(run[part] for run in runs[way]) for part in (0, 1))
            for spent, kind in ((user, ""), (system, " system")):
                width = spent / longest * (WIDTH - LEFT - 190)
                yield f'<rect class="{way}{kind}" x="{x:.1f}" y="{top}" width="{width:.1f}" height="20"/>\n'
                x += width
            yield f'<text x="{x + 8:.1f}" y="{top + 15}">{user / 1000:.2f} + {system / 1000:.2f}, {LABELS[way][0]}</text>\n'
    pairs = len(next(iter(results.values()))[WAYS[0]])
    note = f"{note}; medians of {pairs} pairs" if note else f"medians of {pairs} pairs"
    yield f'<text x="20" y="{height - 14}" font-size="11">{escape(note)}</text>\n</svg>\n'


def main():
    args = arguments()
    if args.rounds < 1 or args.seconds < 1:
        sys.exit("programs.py: --rounds and --seconds are at least 1")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what runs, as Ctrl-C does
    results = measured(args)
    print("\n".join(table(results)))
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=1) + "\n")
    if args.svg:
        pathlib.Path(args.svg).write_text("".join(drawn(results, args.note)))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
