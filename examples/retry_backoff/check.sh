#!/usr/bin/env bash
# retry_backoff against a real Redis server that is killed and started again. Called with the folder
# that holds the program.
set -euo pipefail
# shellcheck source=examples/peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../peers.sh"
programs=$1
needs redis-server redis-cli

port=$(free_port)
# Forgets nothing that it has confirmed, even if it is killed.
start_durable_redis() {
  start_redis --appendonly yes --appendfsync always
}

kill_redis() {
  kill -KILL "$redis"
  wait "$redis" || true
}

# ends_with <status> <process>
ends_with() {
  local status=0
  wait "$2" || status=$?
  ((status == $1)) || fail "status $status, not $1"
}

say "all is delivered to a server that is killed and started again"
start_durable_redis
start sender "$programs/retry_backoff" --port "$port" --key set --messages 100 --interval 15 \
  --attempts 15 --base 40 --longest 500
sender=$started
sleep 0.4
kill_redis
sleep 1
start_durable_redis
ends_with 0 "$sender"
tail -n 16 "$work/sender.log"
[[ $(redis-cli -p "$port" scard set) == 100 ]] || fail "not all 100 messages are in the set"
(($(grep -c ', next in ' "$work/sender.log") >= 50)) || fail "next to nothing was tried again"
grep -Eq '^100 messages: 100 delivered .* 0 given up, 0 dropped, 0 lost' "$work/sender.log" ||
  fail "the figures do not add up"

say "an attempt that is not answered is given up in time"
kill -STOP "$redis"
start unanswered "$programs/retry_backoff" --port "$port" --messages 2 --attempts 2 --base 1 \
  --timeout 100
ends_with 1 "$started"
kill -CONT "$redis"
grep -q 'attempt 2 failed (Connection timed out), given up' "$work/unanswered.log" ||
  fail "no attempt timed out"

say "what fails too often is given up"
kill_redis
start hopeless "$programs/retry_backoff" --port "$port" --messages 5 --attempts 3 --base 10
ends_with 1 "$started"
[[ $(grep -c 'attempt 3 failed (Connection refused), given up' "$work/hopeless.log") == 5 ]] ||
  fail "not every message was given up after three attempts"
grep -q '^5 messages: 0 delivered .* 5 given up, 0 dropped, 0 lost' "$work/hopeless.log" ||
  fail "the figures do not add up"

say "SIGTERM drops what waits for its next attempt, and says so"
start stopped "$programs/retry_backoff" --port "$port" --messages 20 --interval 5 --base 60000 \
  --longest 60000
sleep 0.5
status=0
stop "$started" || status=$?
((status == 1)) || fail "SIGTERM ends with status $status"
grep -q '^20 messages: .* 20 dropped, 0 lost' "$work/stopped.log" || fail "not all were dropped"

say "bad input is refused"
status=0
"$programs/retry_backoff" --attempts 0 2>"$work/error" || status=$?
((status == 2)) || fail "a bad number of attempts ends with status $status"
grep -q 'attempts must be within 1 and 100, not 0' "$work/error" ||
  fail "the error does not name the range"
