#!/usr/bin/env python3
"""The clients of check.sh: clients.py <port> <process of the server>, which this ends by SIGTERM."""

import os
import signal
import socket
import sys
import threading
import time

PORT, SERVER = int(sys.argv[1]), int(sys.argv[2])
failures = []


def connect():
    client = socket.create_connection(("127.0.0.1", PORT))
    client.settimeout(15)
    return client, client.makefile("r", newline="\n")


def expect(name, got, wanted):
    print(f"{name}: {got!r}", flush=True)
    if got != wanted:
        failures.append(f"{name}: {got!r}, not {wanted!r}")


def without_pings(lines, client=None):
    """The next line that is no ping; pings are answered on `client`, if there is one."""
    for line in lines:
        if line != "ping\n":
            return line
        if client:
            client.sendall(b"pong\n")
    return ""


def quick():
    client, lines = connect()
    client.sendall(b"hello\nsleep 10\n")
    expect("quick", [without_pings(lines) for _ in range(2)], ["hello\n", "sleep 10\n"])
    client.sendall(b"sleep 5000\nstill here\n")
    expect("too slow", [without_pings(lines, client) for _ in range(2)], ["too slow\n", "still here\n"])
    client.close()


def idle():
    """Answers every ping, and wants nothing."""
    client, lines = connect()
    expect("idle", without_pings(lines, client), "")


def dead():
    """Reads, and never says anything."""
    client, lines = connect()
    expect("dead", without_pings(lines), "")


def deaf():
    """Asks for much and reads nothing, until the server gives up."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", PORT))
    client.settimeout(15)
    try:
        while True:
            client.sendall(b"x" * 900 + b"\n")
    except OSError as e:
        print(f"deaf: {type(e).__name__}", flush=True)
        if isinstance(e, TimeoutError):
            failures.append("deaf: never sent away")


threads = [threading.Thread(target=f) for f in (quick, idle, dead, deaf)]
for t in threads:
    t.start()
for t in threads:
    t.join()

polite, polite_lines = connect()
greedy, greedy_lines = connect()
polite.sendall(b"sleep 300\n")
greedy.sendall(20 * b"sleep 400\n")  # more than the grace allows
time.sleep(0.1)
began = time.monotonic()
os.kill(SERVER, signal.SIGTERM)
expect("its last answer", without_pings(polite_lines), "sleep 300\n")
expect("and then the end", without_pings(polite_lines), "")
try:
    while without_pings(greedy_lines):
        pass
except OSError:
    pass
took = time.monotonic() - began
print(f"greedy was cut after {took:.2f} s", flush=True)
if not 1.4 <= took < 10:
    failures.append(f"greedy was cut after {took:.2f} s")
for failure in failures:
    print(f"FAILED: {failure}", file=sys.stderr)
sys.exit(1 if failures else 0)
