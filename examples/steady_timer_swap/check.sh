#!/usr/bin/env bash
# The idioms come to the same with both types of timer; called with the folder of programs.
set -euo pipefail
swap=$1/steady_timer_swap
# shellcheck source-path=SCRIPTDIR source=../peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../peers.sh"

"$swap" --timers 20 --seconds 0.5 | tee "$work/swap.log"
# answered and timed out, items, ticks.
(($(grep -c 'the same$' "$work/swap.log") == 4)) || fail "something is missing"
grep -q '^  timed out  *20  *20  the same' "$work/swap.log" || fail "too few deadlines, or too many"
grep -q '^  ticks  *1000  *1000  the same' "$work/swap.log" || fail "too few ticks, or too many"

start long "$swap" --seconds 60
sleep 0.5
stop "$started" || fail "it fails when it is interrupted"
grep -q '^100 connections.*, on steady_timer: [0-9]* answered' "$work/long.log" ||
  fail "it does not say what it had"

status=0
"$swap" --seconds=0 2>"$work/bad.log" || status=$?
((status == 2)) || fail "--seconds=0: exit status $status"
grep -q -- '--seconds must be within' "$work/bad.log" || fail "the range is not named"
