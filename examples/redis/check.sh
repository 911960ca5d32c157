#!/usr/bin/env bash
# The client, as durable_jobs uses it, and a real redis-server in its bad moments. Called with the
# folder that holds the programs.
#
# A server that loads its dump says -LOADING: it takes some time over each key (key-load-delay). One
# that is in an endless Lua script says -BUSY. One whose EVALSHA is another command replies what
# nobody asked for.
#
# A connection gets half-open: the check has a network namespace of its own, where the queue of the
# loopback device holds no packet, so that each is dropped and neither end is told. Meanwhile the
# server is replaced by another one. Where such a namespace is not permitted, the server is stopped
# instead (SIGSTOP): the kernel still takes connections and bytes, and nobody answers.
set -euo pipefail
own_network=${own_network:-}
if [[ -z $own_network ]]; then
  for flags in --net '--user --map-root-user --net'; do
    # shellcheck disable=SC2086
    if unshare $flags tc qdisc add dev lo root pfifo limit 0 2>/dev/null; then
      own_network=yes exec unshare $flags "$0" "$@"
    fi
  done
fi
# shellcheck source=examples/peers.sh
source "$(dirname "${BASH_SOURCE[0]}")/../peers.sh"
programs=$1
needs redis-server redis-cli python3
[[ -z $own_network ]] || ip link set lo up

port=$(free_port)
server="127\.0\.0\.1:$port"

# By a socket that is no part of the network.
ask() {
  redis-cli -s "$work/redis.sock" "$@"
}

worker=("$programs/durable_jobs" work --port "$port" --results --lease 1s --timeout 500ms)

# client <command> <argument...>
client() {
  "$programs/durable_jobs" "$1" --port "$port" "${@:2}"
}

# serve <option...>
serve() {
  start_redis --unixsocket "$work/redis.sock" --busy-reply-threshold 50 "$@"
}

# end_redis: it keeps what it has.
end_redis() {
  ask shutdown save
  wait "$redis"
}

load() {
  end_redis
  serve --key-load-delay 100 --loading-process-events-interval-bytes 1024
}

be_busy() {
  ask eval 'while true do end' 0 >/dev/null 2>&1 &
  peers+=("$!")
  sleep 0.2
}

stop_script() {
  ask script kill >/dev/null
}

cut_off() {
  if [[ $own_network ]]; then
    tc qdisc add dev lo root pfifo limit 0
  else
    say "(this is no network that may be cut: the server is stopped)"
    kill -STOP "$redis"
  fi
}

mend() {
  if [[ $own_network ]]; then
    end_redis
    tc qdisc del dev lo root
    serve
  else
    kill -CONT "$redis"
  fi
}

# outlives <text> <begin> [<end>]: jobs fall due while the server cannot be used; the worker and
# another command say why, with the text; once it is over, all goes on, and each job is done once.
outlives() {
  local text=$1 begin=$2 end=${3:-true} tries i
  ask del 'jobs:{default}:results' >/dev/null
  for i in {1..20}; do
    echo "$((100 * i))ms $begin$i"
  done | client add --lines >/dev/null
  "$begin"
  says 1 "^durable_jobs: $server: $text" client list --timeout 400ms
  client add --key "${begin}21" --timeout 60s x >"$work/patient" 2>&1 &
  local patient=$!
  sleep 1
  "$end"
  wait "$patient" || fail "a command that could wait ended with status $?: $(<"$work/patient")"
  says 0 ' 0 dead$' client list
  for ((tries = 0; tries < 300; ++tries)); do
    (($(ask llen 'jobs:{default}:results') < 21)) || break
    sleep 0.1
  done
  ask lrange 'jobs:{default}:results' 0 -1 | grep -o '"job":"[^"]*"' | sort >"$work/done"
  [[ $(wc -l <"$work/done") == 21 && $(uniq "$work/done" | wc -l) == 21 ]] ||
    fail "not each of 21 jobs was done once: $(<"$work/done")"
  grep -Eq "cannot [a-z ]*: $server: $text" "$work/worker.log" ||
    fail "the worker does not say '$text'"
}

say "a reply of the wrong type is an error of this server"
serve --rename-command EVALSHA other --rename-command EXISTS EVALSHA
says 1 "^durable_jobs: $server: the reply is an integer, not an array" client list
says 1 "^durable_jobs: $server: the reply is an integer, not an array" timeout 20 "${worker[@]}"
end_redis
serve
says 0 '^0 due' client list
client add --in 1h --key strange x >/dev/null
ask hset 'jobs:{default}:fences' strange none >/dev/null
says 1 "^durable_jobs: $server: the reply 'none' is no integer" client list
says 0 'strange is cancelled' client cancel strange

ask eval "for i = 1, 20000 do redis.call('SET', 'far' .. i, i) end" 0 >/dev/null
start worker "${worker[@]}"
working=$started

say "a server that loads its dump"
outlives LOADING load

say "a server that is busy with a script"
outlives BUSY be_busy stop_script

say "a half-open connection"
outlives 'Connection timed out' cut_off mend

stop "$working" || fail "the worker ends with status $?"

say "a server that is not there, and one that is no Redis"
stop "$redis"
says 1 "^durable_jobs: $server: Connection refused" client list --timeout 1s
start web python3 -m http.server --bind 127.0.0.1 "$port"
wait_for_port "$port"
says 1 "^durable_jobs: $server: this is not how a Redis server speaks" client list --timeout 2s
