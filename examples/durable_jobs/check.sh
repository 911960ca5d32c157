#!/usr/bin/env bash
# durable_jobs against a real Redis server: its commands, its errors, and a short audit. Called with
# the folder that holds the program.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=examples/peers.sh
source "$here/../peers.sh"
programs=$1
needs redis-server redis-cli python3

port=$(free_port)
start_redis() {
  start redis redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$work" \
    --appendonly yes --busy-reply-threshold 50
  redis=$started
  wait_for_port "$port"
}

# jobs <command> <argument...>
jobs() {
  local command=$1
  shift
  "$programs/durable_jobs" "$command" --port "$port" "$@"
}

# says <status> <text> <command...>
says() {
  local status=0 wanted=$1 text=$2
  shift 2
  "$@" >"$work/said" 2>&1 || status=$?
  ((status == wanted)) || fail "'$*' ends with status $status: $(<"$work/said")"
  grep -Eq -- "$text" "$work/said" || fail "'$*' does not say '$text' but: $(<"$work/said")"
}

say "a job is added, replaced, left alone, listed, cancelled"
start_redis
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

say "errors name the server"
redis-cli -p "$port" eval 'while true do end' 0 >/dev/null 2>&1 &
peers+=("$!")
sleep 0.3
says 1 "127.0.0.1:$port: BUSY" jobs list --timeout 3s
redis-cli -p "$port" script kill >/dev/null
kill -STOP "$redis"
says 1 "127.0.0.1:$port: Connection timed out" jobs list --timeout 300ms
kill -CONT "$redis"
kill -KILL "$redis"
wait "$redis" 2>/dev/null || true
says 1 "127.0.0.1:$port: Connection refused" jobs list --timeout 1s
start web python3 -m http.server --bind 127.0.0.1 "$port"
web=$started
wait_for_port "$port"
says 1 "127.0.0.1:$port: this is not how a Redis server speaks" jobs list --timeout 2s
kill -KILL "$web"
wait "$web" 2>/dev/null || true

say "a command waits for a server that comes up in time"
jobs add --key patient --timeout 20s >"$work/patient" &
patient=$!
sleep 0.3
start_redis
wait "$patient" || fail "it ended with status $?"
says 0 '^1 due|^2 due' jobs list

say "bad input is refused"
says 2 'in must be a duration like' jobs add --in soon x
says 2 'at must be a UTC time' jobs add --at noon x
says 2 'concurrency must be within 1 and 1000, not 0' jobs work --concurrency 0
says 2 "no command 'dance'" "$programs/durable_jobs" dance
kill -KILL "$redis"

say "workers are killed and stopped, Redis restarts: nothing is lost"
"$here/audit.py" "$programs" --jobs 300 --seconds 5 --workers 3 --restarts 1 --every 2 --idle 2 \
  --far 2000 || fail "see above"
