#!/usr/bin/env python3
"""Audits durable_jobs against a real redis-server that writes each change to disk (appendfsync
always): jobs are spread over some time, workers are killed or stopped beyond their leases and
continued, Redis is killed, or shut down, and started again. Then counts: no job may be lost, or be
finished by a stale fence. See --help; the exit status is 1 if something is wrong."""

import argparse
import collections
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

LEASE = 2.0  # seconds
BEGINS = re.compile(r"job (\S+) fence (\d+) begins: attempt (\d+), (\d+) ms late")


class Redis:
    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.commands_before = 0  # of those that were restarted
        self.start()

    def start(self):
        with open(f"{self.folder}/redis.log", "a") as log:
            self.process = subprocess.Popen(
                ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
                 "--dir", self.folder, "--appendonly", "yes", "--appendfsync", "always"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while self.ask("ping") != "PONG":
            if time.monotonic() > deadline:
                sys.exit("audit: redis-server does not start")
            time.sleep(0.05)

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout.strip()

    def number(self, *words):
        return int(self.ask(*words) or 0)

    def commands(self):
        """What workers and adders have sent so far; not what their scripts do inside."""
        counted = re.findall(r"cmdstat_(?:evalsha|eval|blpop|script\|load):calls=(\d+)",
                             self.ask("info", "commandstats"))
        return self.commands_before + sum(map(int, counted))

    def restart(self, how):
        self.commands_before = self.commands()
        self.process.send_signal(how)
        self.process.wait()
        time.sleep(0.5)
        self.start()


class Workers:
    def __init__(self, program, redis, folder, options):
        self.command = [program, "work", "--port", str(redis.port), "--results", *options]
        self.folder = folder
        self.logs = []
        self.alive = []

    def start(self):
        name = f"{self.folder}/worker{len(self.logs)}.log"
        self.logs.append(name)
        with open(name, "w") as log:
            worker = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                      stderr=log)
        worker.log = name
        self.alive.append(worker)

    def busiest(self):
        """Who said something last: it most likely has jobs."""
        return max(self.alive, key=lambda worker: os.stat(worker.log).st_mtime_ns)

    def kill(self):
        victim = self.busiest()
        self.alive.remove(victim)
        victim.kill()
        victim.wait()
        self.start()

    def freeze(self, seconds):
        victim = self.busiest()
        victim.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        victim.send_signal(signal.SIGCONT)

    def stop(self):
        """Whether all ended as they should."""
        for each in self.alive:
            each.terminate()
        statuses = [each.wait(timeout=60) for each in self.alive]
        self.alive = []
        return all(status == 0 for status in statuses)

    def kill_all(self):
        for each in self.alive:
            each.kill()
            each.wait()

    def begun(self):
        """(job, fence, attempt, ms late) of each job that began anywhere."""
        for name in self.logs:
            with open(name) as log:
                for found in BEGINS.finditer(log.read()):
                    yield found[1], int(found[2]), int(found[3]), int(found[4])


def key(name, queue="default"):
    return f"jobs:{{{queue}}}:{name}"


def add(program, redis, lines, queue="default"):
    begin = time.monotonic()
    subprocess.run([program, "add", "--lines", "--port", str(redis.port), "--queue", queue,
                    "--timeout", "60s"], input="\n".join(lines), text=True, check=True,
                   stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def wait_until_done(redis, seconds):
    deadline = time.monotonic() + seconds
    while redis.number("zcard", key("due")) + redis.number("zcard", key("leases")) > 0:
        if time.monotonic() > deadline:
            return
        time.sleep(0.2)


def percentiles(values):
    values = sorted(values)
    at = lambda p: values[min(len(values) - 1, int(p * len(values)))]
    return f"p50 {at(0.5)} ms, p99 {at(0.99)} ms, max {values[-1]} ms" if values else "none"


def disturb(workers, redis, seconds, every, restarts):
    """Every few seconds something happens to the busiest worker, and `restarts` times to Redis."""
    did = collections.Counter()
    begin = time.monotonic()

    def restart_redis():
        redis.restart(signal.SIGTERM if did["restarts of Redis"] % 2 else signal.SIGKILL)
        did["restarts of Redis"] += 1

    turn = 0
    while time.monotonic() < begin + seconds:
        time.sleep(every / 2)
        passed = (time.monotonic() - begin) / seconds
        if did["restarts of Redis"] < min(restarts, int(passed * (restarts + 1))):
            restart_redis()
        turn += 1
        if turn % 2:
            workers.kill()
            did["workers killed"] += 1
        else:
            workers.freeze(LEASE * 1.5)
            did["workers stopped beyond their lease"] += 1
    while did["restarts of Redis"] < restarts:
        restart_redis()
    return did


class Verdict:
    def __init__(self):
        self.is_good = True

    def must(self, holds, text):
        print(f"{'  ok ' if holds else ' BAD '} {text}")
        self.is_good = self.is_good and holds


def audit(a, redis, folder, verdict):
    options = ["--lease", f"{int(LEASE * 1000)}ms", "--concurrency", "20", "--attempts", "1000",
               "--base", "100ms", "--longest", "1s", "--takes", "20ms"]
    workers = Workers(a.program, redis, folder, options)
    try:
        for _ in range(a.workers):
            workers.start()
        took = add(a.program, redis, [f"{random.uniform(1, 1 + a.seconds):.3f}s job{i} payload {i}"
                                      for i in range(a.jobs)])
        print(f"{a.jobs} jobs over {a.seconds} s, added in {took:.1f} s; {a.workers} workers; a "
              f"lease is {LEASE:.0f} s; a job takes 20 ms")
        commands = redis.commands()
        did = disturb(workers, redis, a.seconds, a.every, a.restarts)
        wait_until_done(redis, 60)
        commands = redis.commands() - commands
        time.sleep(1)
        idle = redis.commands()
        time.sleep(a.idle)
        idle = (redis.commands() - idle) / a.idle / a.workers
        verdict.must(workers.stop(), "the workers end by themselves on SIGTERM")
    finally:
        workers.kill_all()

    results = [json.loads(line) for line in redis.ask("lrange", key("results"), "0", "-1")
               .splitlines()]
    finished = collections.Counter(r["job"] for r in results)
    begun = list(workers.begun())
    highest = collections.defaultdict(int)
    for job, fence, _, _ in begun:
        highest[job] = max(highest[job], fence)
    lost = a.jobs - len(finished)
    twice = sum(n - 1 for n in finished.values())
    stale = sum(r["fence"] < highest[r["job"]] for r in results)
    left = sum(redis.number("zcard", key(k)) for k in ("due", "leases", "dead"))
    left += redis.number("hlen", key("payloads"))
    late_results = sum(open(name).read().count(" is lost: ") for name in workers.logs)
    for what, n in did.items():
        print(f"      {n} {what}")
    verdict.must(lost == 0, f"{lost} jobs lost")
    verdict.must(stale == 0, f"{stale} finished by a stale fence")
    verdict.must(twice == 0, f"{twice} results written twice")
    verdict.must(left == 0, f"{left} jobs, or parts of them, left behind")
    print(f"      {len(begun) - len(finished)} jobs begun again, {late_results} outcomes refused: their fence "
          "was old, or the reply to a first try was lost")
    print("      lateness of the first beginning: "
          + percentiles([late for _, _, attempt, late in begun if attempt == 1]))
    print("      lateness of the result, 20 ms of work included: "
          + percentiles([r["finished"] - r["due"] for r in results]))
    print(f"      {commands / a.jobs:.2f} commands per job")
    verdict.must(idle <= 1, f"{idle:.2f} commands per second and idle worker")


def first_job(a, redis, folder, queue):
    """Seconds until a new worker begins a job that is due, and its memory in MB then."""
    add(a.program, redis, ["0s now"], queue)
    workers = Workers(a.program, redis, folder, ["--queue", queue])
    begin = time.monotonic()
    workers.start()
    try:
        while not list(workers.begun()):
            if time.monotonic() > begin + 60:
                sys.exit("audit: a worker does not begin")
            time.sleep(0.002)
        took = time.monotonic() - begin
        time.sleep(0.5)
        with open(f"/proc/{workers.alive[0].pid}/status") as status:
            memory = int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) / 1024
        workers.stop()
    finally:
        workers.kill_all()
    return took, memory


def far(a, redis, folder, verdict):
    redis.ask("config", "set", "appendfsync", "no")  # it is not the adding that is measured
    near = first_job(a, redis, folder, "near")
    took = add(a.program, redis, (f"{10 + i % 1000}h far{i}" for i in range(a.far)), "far")
    print(f"{a.far} far jobs, added in {took:.1f} s")
    then = first_job(a, redis, folder, "far")
    print(f"      a worker begins its first job after {near[0] * 1000:.0f} ms in an empty queue, "
          f"{then[0] * 1000:.0f} ms behind these")
    verdict.must(then[1] < near[1] * 1.1 + 0.5,
                 f"its memory: {near[1]:.1f} MB with an empty queue, {then[1]:.1f} MB with these")


def compare(a, redis, folder):
    """Waiting and naive polling every 100 ms, under the same load without disturbance."""
    print(f"{a.jobs} jobs over {a.seconds} s, {a.workers} workers")
    for name, options in (("waiting", []), ("polling every 100 ms", ["--poll", "100ms"])):
        redis.ask("flushall")
        redis.ask("config", "resetstat")
        workers = Workers(a.program, redis, folder, ["--concurrency", "20", *options])
        try:
            add(a.program, redis, [f"{random.uniform(1, 1 + a.seconds):.3f}s job{i}"
                                   for i in range(a.jobs)])
            before = redis.commands()
            for _ in range(a.workers):
                workers.start()
            wait_until_done(redis, a.seconds + 60)
            busy = redis.commands() - before
            time.sleep(1)
            before = redis.commands()
            time.sleep(a.idle)
            idle = (redis.commands() - before) / a.idle / a.workers
            workers.stop()
        finally:
            workers.kill_all()
        print(f"      {name}: {busy / a.jobs:.2f} commands per job, {idle:.2f} per second and idle "
              f"worker; lateness " + percentiles([late for _, _, _, late in workers.begun()]))


def throughput(a, redis, folder):
    """Jobs per second that take no time, all due."""
    print("jobs that are due and take no time, on appendfsync always")
    for batch in (1, 10, 100):
        for count in (1, 2):
            redis.ask("flushall")
            add(a.program, redis, [f"0s job{i}" for i in range(a.jobs * batch // 100)])
            workers = Workers(a.program, redis, folder, ["--concurrency", str(batch), "--quiet"])
            try:
                for _ in range(count):
                    workers.start()
                wait_until_done(redis, 600)
                workers.stop()
            finally:
                workers.kill_all()
            times = [json.loads(line)["finished"] for line in
                     redis.ask("lrange", key("results"), "0", "-1").splitlines()]
            seconds = (max(times) - min(times)) / 1000
            print(f"      {count} workers, up to {batch} jobs at a time: "
                  f"{len(times) / seconds:,.0f} jobs per second")


def count(text):
    if int(text) < 1:
        raise ValueError
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", help="the folder that holds durable_jobs")
    parser.add_argument("--jobs", type=count, default=10_000)
    parser.add_argument("--seconds", type=float, default=60, help="over which they are due")
    parser.add_argument("--workers", type=count, default=4)
    parser.add_argument("--every", type=float, default=4, help="seconds from kill to kill")
    parser.add_argument("--restarts", type=int, default=2, help="of Redis")
    parser.add_argument("--idle", type=float, default=10, help="seconds without jobs at the end")
    parser.add_argument("--far", type=int, default=1_000_000, help="jobs of another day; 0: none")
    parser.add_argument("--compare", action="store_true",
                        help="instead: the same without disturbance, waiting and polling")
    parser.add_argument("--throughput", action="store_true", help="instead: jobs per second; of one at a time a hundredth of --jobs")
    a = parser.parse_args()
    a.program = f"{a.programs}/durable_jobs"
    if not os.access(a.program, os.X_OK):
        parser.error(f"{a.program} is no program")
    if a.throughput and a.jobs < 1000:
        parser.error("--throughput needs at least 1000 --jobs")
    for tool in ("redis-server", "redis-cli"):
        if not shutil.which(tool):
            parser.error(f"{tool} is not installed")
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.default_int_handler)  # cleans up as after Ctrl-C
    folder = tempfile.mkdtemp()
    redis = None
    keep = False
    verdict = Verdict()
    try:
        redis = Redis(folder)
        if a.compare:
            compare(a, redis, folder)
        elif a.throughput:
            throughput(a, redis, folder)
        else:
            audit(a, redis, folder, verdict)
            if a.far:
                far(a, redis, folder, verdict)
        keep = not verdict.is_good
        if keep:
            print(f"the logs are in {folder}")
    except KeyboardInterrupt:
        verdict.is_good = False
    finally:
        if redis:
            redis.process.kill()
            redis.process.wait()
        if not keep:
            shutil.rmtree(folder)
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
