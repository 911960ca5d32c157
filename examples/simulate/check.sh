#!/usr/bin/env bash
# A small fleet, whose figures have to add up; called with the folder of programs.
set -euo pipefail
simulate=$1/simulate
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source-path=SCRIPTDIR source=../peers.sh
source "$here/../peers.sh"
needs python3

# check_figures <file> <condition>...: Python, of the totals in a file that simulate wrote.
check_figures() {
  python3 - "$@" <<'END' || fail "the figures do not add up"
import json, sys
totals = json.load(open(sys.argv[1]))["totals"]
wrong = [c for c in sys.argv[2:] if not eval(c, {}, totals)]
sys.exit(f"{wrong} is not so: {totals}" if wrong else 0)
END
}

say "a fleet with requests, failures and an outage"
"$simulate" --connections 5000 --hours 0.1 --request-every 5 --latency 0.5 --deadline 2 \
  --failure-every 0.2 --json "$work/all.json"
check_figures "$work/all.json" \
  "requests == answered + timed_out + in_flight" "started == expired + cancelled + pending" \
  "expired == heartbeats + timed_out + reconnects" "cancelled == answered" \
  "pending == 5000 + in_flight" "failures == lost + failing" "lost == reconnects + closed" \
  "min(requests, timed_out, late_answers, lost, reconnects) > 0"

say "heartbeats alone, all due in the same tick: eleven each, the twelfth a tick after the end"
"$simulate" --connections 1000 --hours 0.1 --ramp 0 --request-every 0 --failure-every 0 --outage 0 \
  --tick 10 --slots 64 --shards 1 --json "$work/beats.json"
check_figures "$work/beats.json" "heartbeats == expired == 11 * 1000" "requests == failures == 0"

say "the chart"
python3 "$here/chart.py" "$work/all.json"
python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$work/all.svg" ||
  fail "the chart is no XML"

for bad in "$work/none.json" "$here/chart.py"; do
  ! python3 "$here/chart.py" "$bad" 2>"$work/bad.log" || fail "a chart of $bad"
  grep -q "^chart.py: $bad" "$work/bad.log" || fail "the error does not name $bad"
done

say "a file that cannot be written is refused ahead of the simulation"
! timeout 10 "$simulate" --connections 1000000 --hours 24 --json "$work/none/x.json" \
  2>"$work/bad.log" || fail "it is written"
grep -q "cannot write $work/none/x.json: No such" "$work/bad.log" || fail "the file is not named"

say "SIGTERM ends a long simulation, which then reports"
start long "$simulate" --connections 100000 --hours 24
sleep 1
stop "$started" || fail "the simulation fails when it is interrupted"
grep -q '^The figures add up' "$work/long.log" || fail "there is no report"

say "bad options"
for bad in --connections=0 --hours=25 --tick=0 --loss=2 --heartbeat=nan; do
  status=0
  "$simulate" "$bad" 2>"$work/bad.log" || status=$?
  ((status == 2)) || fail "$bad: exit status $status"
  grep -q -- "${bad%=*} must be within" "$work/bad.log" || fail "the range of $bad is not named"
done
