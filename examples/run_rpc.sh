#!/usr/bin/env bash
# Installs what the RPC example needs, builds it, and runs its server and client; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: examples/run_rpc.sh [--timer wheel|steady | --compare] [client option...]

Installs the packages that are missing (Debian 12 or 13; with sudo unless you
are root; asks nothing), builds rpc_server and rpc_client, starts the server on
a free port of 127.0.0.1 and the client against it, and stops the server when
the client is done or on Ctrl-C. The options go to the client; the exit status
is the client's. `examples/run_rpc.sh --client-help` lists them.

  --timer    what all timeouts of server and client are on: the timing wheel,
             which is the default, or Asio's steady_timer
  --compare  the same load twice, on the wheel and on steady_timer, and both
             results side by side
END
}

timers=(wheel)
options=()
client_help=0
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --client-help) client_help=1 ;;
    --compare) timers=(wheel steady) ;;
    --timer) set -- "--timer=${2:-}" "${@:3}"; continue ;;
    --timer=wheel | --timer=steady) timers=("${1#--timer=}") ;;
    --timer=*) fail "--timer must be wheel or steady, not '${1#--timer=}'" ;;
    *) options+=("$1") ;;
  esac
  shift
done

install_packages "${build_packages[@]}"
say "building rpc_server and rpc_client"
cmake --preset release </dev/null
cmake --build --preset release --target rpc_server rpc_client --parallel "$(build_jobs)" </dev/null
programs=build/release/examples
if ((client_help)); then
  exec "$programs/rpc_client" --help
fi

servers=() client=''
server_log=$(mktemp)

# stop <pid>: SIGTERM, and SIGKILL for who does not listen.
stop() {
  local tries
  kill -TERM "$1" 2>/dev/null || return 0
  for ((tries = 0; tries < 50; ++tries)); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$1" 2>/dev/null || true
}

clean_up() {
  [[ -z $client ]] || stop "$client"
  local server
  for server in "${servers[@]}"; do
    stop "$server"
  done
  rm -f "$server_log"
}
trap clean_up EXIT

# Each in a process group of its own: Ctrl-C reaches this script alone, which tells the client, and
# the server lives until the client has summed up.
set -m

# start_server <timer>: sets $port.
start_server() {
  local tries
  : >"$server_log" # or the port in there would be the last one's
  "$programs/rpc_server" --port 0 --timer "$1" </dev/null >"$server_log" 2>&1 &
  servers+=("$!")
  # The server chooses the port itself, and prints it once it listens.
  port=''
  for ((tries = 0; tries < 100; ++tries)); do
    if [[ $(<"$server_log") =~ 127\.0\.0\.1:([0-9]+) ]]; then
      port=${BASH_REMATCH[1]}
      break
    fi
    kill -0 "$!" 2>/dev/null || break
    sleep 0.1
  done
  if [[ -z $port ]]; then
    cat "$server_log" >&2
    fail "rpc_server did not start"
  fi
  say "rpc_server on the $1 timer listens on 127.0.0.1:$port"
}

start_server "${timers[0]}"
options+=(--timer "${timers[0]}" --port "$port")
if ((${#timers[@]} == 2)); then
  start_server "${timers[1]}"
  options+=(--compare-with "$port")
fi

signalled=0
trap 'signalled=1; [[ -z $client ]] || kill -INT "$client" 2>/dev/null || true' INT TERM HUP
"$programs/rpc_client" "${options[@]}" </dev/null &
client=$!

while true; do
  status=0
  wait "$client" || status=$?
  ((signalled)) || break
  signalled=0 # it was the signal that ended this wait, the client still sums up
done
client=''
exit "$status"
