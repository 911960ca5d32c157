#!/usr/bin/env bash
# durable_jobs against a real Redis server: its commands, and a short audit; redis/check.sh has the
# errors of the server. Called with the folder that holds the program.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=examples/peers.sh
source "$here/../peers.sh"
programs=$1
needs redis-server redis-cli python3

port=$(free_port)
# jobs <command> <argument...>
jobs() {
  "$programs/durable_jobs" "$1" --port "$port" "${@:2}"
}

say "a job is added, replaced, left alone, listed, cancelled"
start_redis --appendonly yes
says 0 '^K$' jobs add --in 1h --key K one
says 0 '^K$' jobs add --in 2h --key K two
says 1 'K exists already' jobs add --key K --unique three
says 0 'K: due in 1:59:.*: two' jobs list
says 0 'K is cancelled' jobs cancel K
says 1 'K is no job' jobs cancel K
says 0 '^0 due, 0 with a worker, 0 dead' jobs list

say "one that fails too often is dead, and is tried again when told to; one that repeats does so"
start worker "$programs/durable_jobs" work --port "$port" --attempts 2 --base 1ms --results
worker=$started
jobs add --key bad fail >/dev/null
jobs add --key often --every 50ms tick >/dev/null
for ((tries = 0; tries < 200; ++tries)); do
  jobs dead >"$work/said"
  if grep -q 'bad: given up' "$work/said" &&
    (($(redis-cli -p "$port" llen 'jobs:{default}:results') >= 3)); then
    break
  fi
  sleep 0.1
done
says 0 'bad: given up .* after 2 attempts \(it was told to fail\): fail' jobs dead
says 0 'often is cancelled' jobs cancel often
says 0 '1 dead jobs' jobs retry bad
says 1 '0 dead jobs' jobs retry nobody
stop "$worker" || fail "SIGTERM ends a worker with status $?"

say "a lease is renewed for as long as the job takes, and a cancelled job is taken away"
redis-cli -p "$port" del 'jobs:{default}:results' >/dev/null
start worker "$programs/durable_jobs" work --port "$port" --lease 1500ms --takes 4s --results
worker=$started
jobs add --key long x >/dev/null
jobs add --key unwanted x >/dev/null
wait_for 'job unwanted .* begins' worker 20000 >/dev/null
says 0 'unwanted is cancelled' jobs cancel unwanted
wait_for 'job long .* is done' worker 20000 >/dev/null
stop "$worker" || fail "SIGTERM ends a worker with status $?"
grep -q 'job unwanted .* is lost' "$work/worker.log" || fail "the worker did not lose it"
[[ $(grep -c 'job long .* begins' "$work/worker.log") == 1 ]] || fail "the lease was not renewed"
[[ $(redis-cli -p "$port" llen 'jobs:{default}:results') == 1 ]] || fail "not just one is done"

say "a command waits for a server that comes up in time"
kill -KILL "$redis"
wait "$redis" 2>/dev/null || true
jobs add --key patient --timeout 20s x >"$work/patient" &
patient=$!
sleep 0.3
start_redis --appendonly yes
wait "$patient" || fail "it ended with status $?"
says 0 '^1 due|^2 due' jobs list

say "bad input is refused"
says 2 'PAYLOAD is missing' jobs add --in 5s
says 2 'in must be a duration like' jobs add --in soon x
says 2 "in must be within 0s and 10000d, not '36500d'" jobs add --in 36500d x
says 2 "every must be within 0s and 10000d, not '-5s'" jobs add --every=-5s x
says 2 "in must be within 0s and 10000d, not '1e999d'" jobs add --in 1e999d x
says 2 'concurrency must be within 1 and 1000, not 99999999999999' jobs work --concurrency 99999999999999
says 2 "concurrency must be a number, not 'two'" jobs work --concurrency two
says 2 'at must be a UTC time' jobs add --at noon x
says 2 'concurrency must be within 1 and 1000, not 0' jobs work --concurrency 0
says 2 "no command 'dance'" "$programs/durable_jobs" dance
kill -KILL "$redis"

say "workers are killed and stopped, Redis restarts: nothing is lost"
"$here/audit.py" "$programs" --jobs 300 --seconds 5 --workers 3 --restarts 1 --every 2 --idle 2 \
  --far 2000 || fail "see above"
