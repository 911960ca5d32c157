#!/usr/bin/env bash
# line_server on two threads, with clients that are quick, idle, dead, deaf and busy to the end, and a
# patient one, whose requests may take longer than its heartbeat waits for a client. Called with the
# folder that holds the program.
set -euo pipefail
programs=$1
# shellcheck source-path=SCRIPTDIR source=../peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../peers.sh"
needs python3

start server "$programs/line_server" --port 0 --threads 2 --idle-timeout 4000 --heartbeat 600 \
  --write-stall 1000 --request-timeout 1000 --grace 1500
server=$started
port=$(port_of server "$server")
start patient "$programs/line_server" --port 0 --idle-timeout 2200 --heartbeat 400 --request-timeout 8000 \
  --grace 500
patient=$started
patient_port=$(port_of patient "$patient")

says 1 "line_server: cannot listen on 127.0.0.1, port $port: Address already in use" \
  "$programs/line_server" --port "$port"

say "what ends a session, and what does not"
python3 "$(dirname "${BASH_SOURCE[0]}")/clients.py" "$port" "$server" "$patient_port" || fail "see above"

status=0
wait "$server" || status=$?
((status == 0)) || fail "the server's exit status is $status"
cat "$work/server.log"
grep -q ' 1 too slow; 1 idle, 1 lost, 1 stalled, 1 cut$' "$work/server.log" || fail "it counts otherwise"

say "a request that is cut"
exec {client}<>"/dev/tcp/127.0.0.1/$patient_port"
echo 'sleep 7000' >&"$client"
sleep 0.2
began=${EPOCHREALTIME/[.,]/}
stop "$patient" || fail "the patient server's exit status is $?"
took=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
((took < 5000)) || fail "a session that was cut went on for $took ms"
cat "$work/patient.log"
grep -q ' 0 too slow; 1 idle, 1 lost, 0 stalled, 1 cut$' "$work/patient.log" || fail "it counts otherwise"
for log in server patient; do
  grep -q '^pending  *0$' "$work/$log.log" || fail "something was left pending"
done
