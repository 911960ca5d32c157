#!/usr/bin/env bash
# Three lock_watchdogs and one lock in a real Redis server: one is suspended while it has the lock,
# and one is killed. Called with the folder that holds the program.
set -euo pipefail
# shellcheck source=examples/peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../peers.sh"
programs=$1
needs redis-server redis-cli

port=$(free_port)
# shellcheck disable=SC2119
start_redis
ask() {
  redis-cli -p "$port" "$@"
}

# contend <name> <option...>
contend() {
  local name=$1
  shift
  start "$name" "$programs/lock_watchdog" --port "$port" --name lock --lease "$lease" \
    --retry 20 "$@"
}

lease=1500
say "a holder that lives keeps the lock for longer than its lease"
contend victim --hold 60000 --rounds 1
victim=$started
wait_for 'has the lock, fence 1' victim 5000 >/dev/null
contend second --hold 100 --rounds 4
second=$started
contend third --hold 100 --rounds 4
third=$started
sleep 2.5
[[ $(ask get lock:fence) == 1 ]] || fail "the lock had another owner while the first one lived"

say "one that is killed loses it after one lease"
kill -KILL "$victim"
killed=${EPOCHREALTIME/./}
until [[ $(ask get lock:fence) != 1 ]]; do
  ((${EPOCHREALTIME/./} - killed < 9000000)) || fail "nobody got the lock of the killed holder"
  sleep 0.01
done
gap=$(((${EPOCHREALTIME/./} - killed) / 1000))
say "the next one had the lock $gap ms later"
((gap <= lease + 700)) || fail "the lease is $lease ms"
wait "$second" || fail "the second ended with status $?"
wait "$third" || fail "the third ended with status $?"

say "there were 9 owners, and never two at a time"
[[ $(ask get lock:fence) == 9 ]] || fail "$(ask get lock:fence) owners"
[[ $(ask exists lock) == 0 ]] || fail "the last owner did not release the lock"
ask lrange lock:work 0 -1 >"$work/fences"
sort -n -c "$work/fences" || fail "two had the lock at the same time"
[[ $(uniq "$work/fences" | wc -l) == 9 ]] || fail "not every owner wrote"

say "one that is suspended finds out that it lost the lock"
# Suspended in the pause after its first write: one that is under way could only be refused.
contend sleeper --hold 60000 --rounds 1 --pause 1000
sleeper=$started
wait_for 'has the lock, fence 10' sleeper 5000 >/dev/null
for ((tries = 0; tries < 100; ++tries)); do
  [[ $(ask lindex lock:work -1) == 10 ]] && break
  sleep 0.01
done
((tries < 100)) || fail "it does not write"
kill -STOP "$sleeper"
contend next --hold 100 --rounds 1
next=$started
wait "$next" || fail "the next one ended with status $?"
kill -CONT "$sleeper"
status=0
wait "$sleeper" || status=$?
((status == 1)) || fail "a lost lock ends with status $status"
grep -q ': 1 writes; 0 refused; lost the lock 1 times' "$work/sleeper.log" ||
  fail "wrote after it lost the lock"
[[ $(ask lindex lock:work -1) == 11 ]] || fail "the last write is not the last owner's"

say "one that waits goes on when Redis stands still for longer than the lease"
ask set lock somebody px 60000 >/dev/null
contend waiter --hold 100 --rounds 1
waiter=$started
wait_for 'wants the lock' waiter 5000 >/dev/null
sleep 0.2
kill -STOP "$redis"
sleep 3.5
kill -CONT "$redis"
ask del lock >/dev/null
wait "$waiter" || fail "the waiter ended with status $?"
grep -q 'cannot ask for the lock' "$work/waiter.log" || fail "it did not notice"
grep -q 'released it' "$work/waiter.log" || fail "the waiter did not get the lock"

say "SIGTERM releases the lock"
contend polite --hold 60000
polite=$started
wait_for 'has the lock' polite 5000 >/dev/null
stop "$polite" || fail "SIGTERM ends with status $?"
[[ $(ask exists lock) == 0 ]] || fail "the lock was not released"

say "bad input is refused"
status=0
"$programs/lock_watchdog" --lease 1 2>"$work/error" || status=$?
((status == 2)) || fail "a bad lease ends with status $status"
grep -q 'lease must be within 30 and' "$work/error" || fail "the error does not name the range"
