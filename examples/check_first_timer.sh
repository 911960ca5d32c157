#!/usr/bin/env bash
# Three waits that end, and three that are cancelled; called with the folder of programs.
set -euo pipefail
first_timer=$1/first_timer
# shellcheck source-path=SCRIPTDIR source=peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/peers.sh"

# expect_three <file> <text>: from the callback, the future and the coroutine, in any order.
expect_three() {
  diff <(printf '%s: '"$2"'\n' callback coroutine future) <(sort "$work/$1.log") ||
    fail "this is not what the three should have said"
}

"$first_timer" --delay 50 >"$work/over.log"
expect_three over "50 ms have passed"

start cancelled "$first_timer" --delay 60000
sleep 0.5
stop "$started"
expect_three cancelled "Operation canceled"

status=0
"$first_timer" --delay -1 2>"$work/bad.log" || status=$?
((status == 2)) || fail "--delay -1: exit status $status"
grep -q -- '--delay must be within' "$work/bad.log" || fail "the range is not named"
