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

timeouts=('--timer wheel' '--timer steady' '--timer wheel --rearm' '--timer steady --rearm')

for options in "${timeouts[@]}" '--timer none'; do
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

say "either side may go on when the other one has said all, and be slow"
# Each takes longer than a connection may be silent: the server to read, and then to answer.
# shellcheck disable=SC2016
start counter perl -MIO::Socket::INET -e '
  my $server = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1:0") or die;
  $| = 1;
  $SIG{CHLD} = "IGNORE";
  printf "127.0.0.1:%d\n", $server->sockport;
  while (my $client = $server->accept) {
    next if fork;
    my $bytes = 0;
    while (my $n = read($client, my $buffer, 400000)) {
      $bytes += $n;
      select(undef, undef, undef, 0.05);
    }
    $client->autoflush(1);
    for (1..10) { select(undef, undef, undef, 0.3); print $client "."; }
    print $client $bytes;
    exit;
  }'
counter_port=$(port_of counter "$started")
proxies=()
clients=()
for options in "${timeouts[@]}"; do
  read -ra words <<<"$options"
  start_proxy "half_close $options" "$counter_port" --idle-timeout 2000 "${words[@]}"
  proxies+=("$proxy")
  perl -MIO::Socket::INET -e '
    my $socket = IO::Socket::INET->new("127.0.0.1:'"$port"'") or die;
    print $socket "x" x 24000000;
    shutdown($socket, 1);
    print <$socket>;' >"$work/answer $options" &
  clients+=($!)
done
wait "${clients[@]}"
for options in "${timeouts[@]}"; do
  answer=$(<"$work/answer $options")
  [[ $answer == ..........24000000 ]] || fail "$options: the answer is '$answer'"
  proxy=${proxies[0]}
  proxies=("${proxies[@]:1}")
  stop_proxy "half_close $options"
  [[ $figures == *'1 connections: 24000000 bytes up, 18 down;'*' 0 idle, 0 stuck;'* ]] ||
    fail "figures"
done

start_redis 1
redis-cli -p "$redis_port" set big "$(printf '%0100000d' 0)" >/dev/null
for options in "${timeouts[@]}"; do
  say "with $options, who says nothing, takes nothing or does not answer is given up in time"
  read -ra words <<<"$options"
  start_proxy timeouts_proxy "$redis_port" --idle-timeout 500 --connect-timeout 300 "${words[@]}"
  # Each is closed by the proxy, or the time limit strikes.
  timeout 5 bash -c "cat <'/dev/tcp/127.0.0.1/$port'" || fail "an idle connection was not closed"
  # Two ask for 30 MB and read none of it. One of them goes on to ask.
  perl -MIO::Socket::INET -e '
    $SIG{PIPE} = "IGNORE";
    my ($silent, $asking) = map {
      my $socket = IO::Socket::INET->new("127.0.0.1:'"$port"'") or die;
      $socket->autoflush(1);
      print $socket "GET big\r\n" x 300;
      $socket;
    } 1..2;
    for (1..20) { select(undef, undef, undef, 0.1); print $asking "PING\r\n"; }'
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
  ((BASH_REMATCH[1] >= 1 && BASH_REMATCH[2] >= 1 && BASH_REMATCH[3] == 2 &&
    BASH_REMATCH[1] + BASH_REMATCH[2] == 7)) || fail "figures"
done

say "an upstream that is not there"
{ kill -KILL "$redis" && wait "$redis"; } 2>/dev/null || true
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
