#!/usr/bin/env bash
# What timeouts cost tcp_proxy: the figures of README.md; see --help.
set -euo pipefail

usage() {
  cat <<'END'
Usage: examples/tcp_proxy/measure.sh FOLDER [rounds [load...]]

Loads tcp_proxy, which is in FOLDER (build/release/examples, say), in each of
its ways to keep the time, in turns, and prints medians of the rounds, 5 if not
set. Loads are redis, keep_alive and close; without one, all of them. A round of
all takes a minute. Needs redis-server, redis-benchmark, nginx and wrk.
END
}

case ${1:-} in
  '') usage >&2; exit 2 ;;
  -h | --help) usage; exit ;;
esac
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=examples/peers.sh
source "$here/../peers.sh"
# shellcheck source=examples/tcp_proxy/servers.sh
source "$here/servers.sh"
programs=$1
rounds=${2:-5}
loads=("${@:3}")
((${#loads[@]})) || loads=(redis keep_alive close)
[[ -x $programs/tcp_proxy ]] || fail "no tcp_proxy in $programs"
[[ $rounds =~ ^[1-9][0-9]{0,3}$ ]] || fail "not a number of rounds from 1 to 9999: $rounds"
for load in "${loads[@]}"; do
  [[ $load =~ ^(redis|keep_alive|close)$ ]] || fail "no such load: $load"
done
needs redis-server redis-benchmark nginx wrk

contenders=('--timer none' '--timer wheel' '--timer steady' '--timer wheel --rearm'
  '--timer steady --rearm')

# Each load takes a port, and prints requests per second and how many they were.
redis() {
  local requests=50000
  redis-benchmark -p "$1" -c 1000 -n "$requests" -t get --csv 2>/dev/null |
    awk -F '"' -v n="$requests" '/^"GET"/ { print $4, n }'
}

keep_alive() {
  wrk -t 1 -c 200 -d 2s "${@:2}" "http://127.0.0.1:$1/small" |
    awk '/requests in/ { n = $1 } /Requests\/sec/ { rate = $2 } END { print rate, n }'
}

close() {
  keep_alive "$1" -H 'Connection: close'
}

# measure <load> <proxy option...>: adds requests per second and microseconds of
# the proxy's CPU per request to a file named after the load and the options.
measure() {
  local load=$1 upstream=$nginx_port rate requests cpu
  shift
  [[ $load != redis ]] || upstream=$redis_port
  start proxy "$programs/tcp_proxy" --port 0 --upstream-port "$upstream" "$@"
  read -r rate requests < <("$load" "$(port_of proxy "$started")")
  stop "$started" || fail "the proxy ends with status $?"
  cpu=$(grep -oE '[0-9.]+ s of CPU' "$work/proxy.log")
  awk -v rate="$rate" -v n="$requests" -v cpu="${cpu%% *}" \
    'BEGIN { print rate, cpu * 1e6 / n }' >>"$work/$load $*"
}

# median <field> <file>
median() {
  awk -v field="$1" '{ print $field }' "$2" | sort -n |
    awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'
}

start_redis 4096
start_nginx
for ((round = 0; round < rounds; ++round)); do
  say "round $((round + 1)) of $rounds" >&2
  # In another order each time: the machine is not as busy all the time.
  mapfile -t order < <(shuf -e -- "${contenders[@]}")
  for contender in "${order[@]}"; do
    read -ra options <<<"$contender"
    for load in "${loads[@]}"; do
      measure "$load" "${options[@]}"
    done
  done
done

printf '%-12s%-26s%14s%24s\n' load options 'requests/s' 'us of CPU per request'
for load in "${loads[@]}"; do
  for contender in "${contenders[@]}"; do
    file="$work/$load $contender"
    printf '%-12s%-26s%14.0f%24.1f\n' "$load" "$contender" "$(median 1 "$file")" \
      "$(median 2 "$file")"
  done
done
