#!/usr/bin/env bash
# The RPC client against its server, on both kinds of timers; called with the folder of programs.
set -euo pipefail
programs=$1
# shellcheck source-path=SCRIPTDIR source=../peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../peers.sh"

load=(--connections 100 --silent 10 --rate 300 --deadline 100)

for timer in wheel steady; do
  # A machine that is busy with other tests may well be away for a second.
  start "$timer" "$programs/rpc_server" --port 0 --timer "$timer" --idle-timeout 2000 --heartbeat 500
  declare "$timer=$started"
  declare "${timer}_port=$(port_of "$timer" "$started")"
done

say "on the wheel, then on steady_timer, side by side"
"$programs/rpc_client" "${load[@]}" --duration 3.5 --port "${wheel_port:?}" \
  --compare-with "${steady_port:?}" >"$work/compare.log" 2>"$work/progress.log" ||
  fail "a run was disturbed"
cat "$work/compare.log"
(($(grep -c '^The figures add up' "$work/compare.log") == 1)) || fail "the figures do not add up"
grep -Eq '^  dropped as idle( +10){4}$' "$work/compare.log" || fail "silent connections live on"

grep -Eq '^processor time( +[0-9]+\.[0-9]{2}){2}$' "$work/compare.log" || fail "no ratio is printed"
grep -q '^run 2 of 2: all timeouts on steady_timer' "$work/progress.log" ||
  fail "nobody says which run it is"

say "SIGTERM in the middle of a run"
start interrupted "$programs/rpc_client" "${load[@]}" --duration 60 --timer steady \
  --port "$steady_port"
# Its first line of progress says that all connections are open.
for ((tries = 0; tries < 100; ++tries)); do
  ! grep -q ' calls, ' "$work/interrupted.log" || break
  sleep 0.1
done
# 1: a server that has not had time to accept all connections is a disturbance, and reported.
stop "$started" || (($? == 1)) || fail "the client fails when it is interrupted"
grep -q '^The figures add up' "$work/interrupted.log" || fail "it does not sum up"

say "servers end with their sessions open"
start last_wheel "$programs/rpc_client" "${load[@]}" --duration 60 --port "$wheel_port"
start last_steady "$programs/rpc_client" "${load[@]}" --duration 60 --port "$steady_port"
sleep 1
stop "${wheel:?}" || fail "the server on the wheel does not end well"
stop "${steady:?}" || fail "the server on steady_timer does not end well"

say "bad options"
for bad in --timer=sundial --rate=-1 --compare-with=0; do
  status=0
  "$programs/rpc_client" "$bad" 2>"$work/bad.log" || status=$?
  ((status == 2)) || fail "$bad: exit status $status"
  grep -q -- "${bad%=*}" "$work/bad.log" || fail "$bad is not named"
done
