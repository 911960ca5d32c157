#!/usr/bin/env bash
# The RPC client against its server, on both kinds of timers; called with the folder of programs.
set -euo pipefail
programs=$1
# shellcheck source-path=SCRIPTDIR source=../peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../peers.sh"

load=(--connections 200 --silent 10 --rate 1000 --deadline 100)

# check_output <name> <lines that add up>: the client's figures, by its own audit.
check_output() {
  cat "$work/$1.log"
  (($(grep -c '^The figures add up' "$work/$1.log") == $2)) || fail "$1: the figures do not add up"
  grep -q '^  dropped as idle  *10  *10' "$work/$1.log" || fail "$1: silent connections live on"
}

for timer in wheel steady; do
  start "$timer" "$programs/rpc_server" --port 0 --timer "$timer" --idle-timeout 1000 --heartbeat 300
  declare "$timer=$started"
  declare "${timer}_port=$(port_of "$timer" "$started")"
done

say "on the wheel, then on steady_timer, side by side"
"$programs/rpc_client" "${load[@]}" --duration 2.5 --port "${wheel_port:?}" \
  --compare-with "${steady_port:?}" >"$work/compare.log"
check_output compare 2

say "SIGTERM in the middle of a run"
start interrupted "$programs/rpc_client" "${load[@]}" --duration 60 --timer steady \
  --port "$steady_port"
sleep 2.5
stop "$started" || fail "the client fails when it is interrupted"
check_output interrupted 1

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
