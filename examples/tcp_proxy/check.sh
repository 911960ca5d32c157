#!/usr/bin/env bash
# tcp_proxy in front of real servers: Redis under redis-benchmark, nginx under wrk, and one that
# answers only when all has been said. Called with the folder that holds the program.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=examples/peers.sh
source "$here/../peers.sh"
# shellcheck source=examples/tcp_proxy/servers.sh
source "$here/servers.sh"
programs=$1
needs redis-server redis-benchmark nginx wrk curl perl

start_redis 511
start_nginx

# start_proxy <name> <upstream port> <option...>: listens on $port.
start_proxy() {
  local name=$1 upstream=$2
  shift 2
  start "$name" "$programs/tcp_proxy" --port 0 --upstream-port "$upstream" "$@"
  proxy=$started
  port=$(port_of "$name" "$proxy")
}

# stop_proxy <name>: its figures are in $figures.
stop_proxy() {
  stop "$proxy" || fail "$1: SIGTERM ends with status $?"
  figures=$(tail -n 1 "$work/$1.log")
  echo "$figures"
}

for options in '--timer wheel' '--timer steady' '--timer none' '--timer wheel --rearm' \
  '--timer steady --rearm'; do
  say "redis-benchmark through a proxy with $options"
  read -ra words <<<"$options"
  start_proxy redis_proxy "$redis_port" "${words[@]}"
  timeout 20 redis-benchmark -p "$port" -c 100 -n 3000 -t set,get --csv >"$work/benchmark.log" \
    2>&1 || fail "redis-benchmark"
  [[ $(grep -c '^"[SG]ET","[0-9]' "$work/benchmark.log") == 2 ]] || fail "no result"
  ! grep -qi error "$work/benchmark.log" || fail "redis-benchmark saw errors"
  stop_proxy redis_proxy
  [[ $figures == *' 0 not connected, 0 not in time; 0 idle, 0 stuck;'* ]] || fail "$options"
done

say "wrk through a proxy"
start_proxy nginx_proxy "$nginx_port" --idle-timeout 1000
wrk -t 1 -c 50 -d 1s "http://127.0.0.1:$port/small" >"$work/wrk.log"
grep 'requests in' "$work/wrk.log"
! grep -E 'Socket errors|Non-2xx' "$work/wrk.log" || fail "wrk saw errors"
for file in small large; do
  curl -sS "http://127.0.0.1:$port/$file" | cmp - "$work/html/$file" || fail "$file was changed"
done
stop_proxy nginx_proxy

say "either side may go on when the other one has said all"
# Waits for the end of file, and then takes longer to answer than a silent connection may.
# shellcheck disable=SC2016
start counter perl -MIO::Socket::INET -e '
  my $server = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1:0") or die;
  $| = 1;
  printf "127.0.0.1:%d\n", $server->sockport;
  while (my $client = $server->accept) {
    my $bytes = 0;
    while (my $n = read($client, my $buffer, 65536)) { $bytes += $n; }
    $client->autoflush(1);
    for (1..10) { select(undef, undef, undef, 0.3); print $client "."; }
    print $client $bytes;
  }'
start_proxy half_close_proxy "$(port_of counter "$started")" --idle-timeout 1500
answer=$(perl -MIO::Socket::INET -e '
  my $socket = IO::Socket::INET->new("127.0.0.1:'"$port"'") or die;
  print $socket "x" x 3000000;
  shutdown($socket, 1);
  print <$socket>;')
[[ $answer == ..........3000000 ]] || fail "the answer is '$answer'"
stop_proxy half_close_proxy
[[ $figures == *'1 connections: 3000000 bytes up, 17 down;'*' 0 idle, 0 stuck;'* ]] ||
  fail "figures"

say "who says nothing, takes nothing or does not answer is given up in time"
start_redis 1
start_proxy timeouts_proxy "$redis_port" --idle-timeout 500 --connect-timeout 300
# Each is closed by the proxy, or the time limit strikes.
timeout 5 bash -c "cat <'/dev/tcp/127.0.0.1/$port'" || fail "an idle connection was not closed"
redis-cli -p "$redis_port" set big "$(printf '%0100000d' 0)" >/dev/null
# Asks for 30 MB and reads none of it.
perl -MIO::Socket::INET -e '
  my $socket = IO::Socket::INET->new("127.0.0.1:'"$port"'") or die;
  print $socket "GET big\r\n" x 300;
  sleep 2;'
kill -STOP "$redis"
# It accepts nothing any more: two connections fit into its queue, and are idle then.
clients=()
for _ in {1..6}; do
  timeout 5 bash -c "cat <'/dev/tcp/127.0.0.1/$port'" 2>/dev/null &
  clients+=($!)
done
for client in "${clients[@]}"; do
  status=0
  wait "$client" || status=$?
  ((status != 124)) || fail "a connection to a dead upstream was not closed"
done
kill -CONT "$redis"
stop_proxy timeouts_proxy
[[ $figures =~ \ ([0-9]+)\ not\ in\ time\;\ ([0-9]+)\ idle,\ ([0-9]+)\ stuck ]] || fail "figures"
((BASH_REMATCH[1] >= 1 && BASH_REMATCH[2] >= 1 && BASH_REMATCH[3] == 1 &&
  BASH_REMATCH[1] + BASH_REMATCH[2] == 7)) || fail "figures"

say "an upstream that is not there"
kill -KILL "$redis"
wait "$redis" 2>/dev/null || true
start_proxy nobody_proxy "$redis_port"
! timeout 5 bash -c "cat <'/dev/tcp/127.0.0.1/$port'" 2>/dev/null || fail "no reset"
stop_proxy nobody_proxy
[[ $figures == *' 1 not connected,'* ]] || fail "figures"

say "bad input is refused"
status=0
"$programs/tcp_proxy" --timer sundial 2>"$work/error" || status=$?
((status == 2)) || fail "a bad timer ends with status $status"
grep -q "timer must be wheel, steady or none, not 'sundial'" "$work/error" ||
  fail "the error does not name the timers"
