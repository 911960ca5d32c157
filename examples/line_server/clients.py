#!/usr/bin/env python3
"""The clients of check.sh: clients.py <port> <process of the server> <port of the patient server>.

It ends the server by SIGTERM. The patient one gives a request more time than a dead client has."""

import os
import signal
import socket
import sys
import threading
import time

PORT, SERVER, PATIENT = (int(argument) for argument in sys.argv[1:])
failures = []


def connect(port=PORT):
    client = socket.create_connection(("127.0.0.1", port))
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


def end(lines, client=None):
    """What comes but pings: nothing, until the end. That is a reset if a pong comes too late."""
    try:
        return without_pings(lines, client)
    except ConnectionError:
        return ""


def quick():
    client, lines = connect()
    client.sendall(b"hello\nsleep 10\n")
    expect("quick", [without_pings(lines) for _ in range(2)], ["hello\n", "sleep 10\n"])
    client.sendall(b"sleep 5000\nstill here\n")
    expect("too slow", [without_pings(lines, client) for _ in range(2)], ["too slow\n", "still here\n"])
    for number in ("99999999999999999999", "-1", "soon", "10 or so", ""):
        client.sendall(f"sleep {number}\n".encode())
        expect(f"sleep {number}", without_pings(lines, client), "error: sleep takes a number of ms\n")
    client.sendall(b"x" * 5000 + b"\nstill here\n")
    expect("a long line", without_pings(lines, client), "error: a line has at most 1000 bytes\n")
    expect("the next one", without_pings(lines, client), "still here\n")
    client.sendall(b"pong\r\nfrom telnet\r\n")
    expect("pong with a carriage return", without_pings(lines, client), "from telnet\n")
    client.close()


def idle():
    """Answers every ping, and wants nothing."""
    client, lines = connect()
    expect("idle", end(lines, client), "")


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


def memory():
    """What the server has in use, in MB; nothing with sanitizers, which reserve terabytes."""
    with open(f"/proc/{SERVER}/statm", encoding="ascii") as statm:
        reserved, used = (int(n) * os.sysconf("SC_PAGE_SIZE") / 1e6 for n in statm.read().split()[:2])
    return used if reserved < 1e6 else 0


def greedy():
    """Asks as fast as it can for four seconds, and takes 500 KB every 0.6 s: slow, but not stalled."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    client.connect(("127.0.0.1", PORT))
    client.settimeout(15)
    before = memory()
    ends = time.monotonic() + 4

    def ask():
        try:
            while time.monotonic() < ends:
                client.sendall(70 * (b"x" * 900 + b"\n"))
        except OSError:
            pass  # the other side sees it, too

    asking = threading.Thread(target=ask)
    asking.start()
    while time.monotonic() < ends:
        time.sleep(0.6)
        left = 500_000
        while left > 0:
            some = client.recv(left)
            if not some:
                failures.append("greedy: was sent away")
                return
            left -= len(some)
    more = memory() - before
    print(f"greedy: the server has {more:.1f} MB more", flush=True)
    if more > 16:
        failures.append(f"greedy: the server has {more:.1f} MB more")
    client.shutdown(socket.SHUT_RDWR)
    asking.join()
    client.close()


def after_request(end_is, answers_pings, earliest):
    """Waits for a long request, and then wants nothing. Its session ends no earlier than that."""
    client, lines = connect(PATIENT)
    pinged = client if answers_pings else None
    began = time.monotonic()
    client.sendall(b"sleep 1800\n")  # ends between two pings, which are 400 ms apart
    expect(f"{end_is}, but first", without_pings(lines, pinged), "sleep 1800\n")
    expect(f"{end_is} after a request", end(lines, pinged), "")
    took = time.monotonic() - began
    print(f"{end_is} after {took:.2f} s", flush=True)
    if took < earliest:
        failures.append(f"{end_is} after {took:.2f} s, not {earliest:.2f}")


def idle_after_request():
    after_request("idle", True, 1.8 + 2.2)


def lost_after_request():
    after_request("lost", False, 1.8 + 4 * 0.4)


def run(client):
    try:
        client()
    except OSError as e:
        failures.append(f"{client.__name__}: {e}")


clients = (quick, idle, dead, deaf, greedy, idle_after_request, lost_after_request)
threads = [threading.Thread(target=run, args=(c,)) for c in clients]
for t in threads:
    t.start()
for t in threads:
    t.join()

polite, polite_lines = connect()
busy, busy_lines = connect()
polite.sendall(b"sleep 300\n")
busy.sendall(20 * b"sleep 400\n")  # more than the grace allows
time.sleep(0.1)
began = time.monotonic()
os.kill(SERVER, signal.SIGTERM)
expect("its last answer", without_pings(polite_lines), "sleep 300\n")
expect("and then the end", without_pings(polite_lines), "")
try:
    while without_pings(busy_lines):
        pass
except OSError:
    pass
took = time.monotonic() - began
print(f"busy was cut after {took:.2f} s", flush=True)
if not 1.4 <= took < 10:
    failures.append(f"busy was cut after {took:.2f} s")
for failure in failures:
    print(f"FAILED: {failure}", file=sys.stderr)
sys.exit(1 if failures else 0)
