#!/usr/bin/env bash
# The HTTP server, asked by curl, loaded by wrk and attacked by hostile_client. Argument: the folder
# of the programs.
set -euo pipefail
programs=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=examples/peers.sh
source peers.sh
needs curl wrk cmp

site=$work/site
mkdir -p "$site/folder"
echo 'the first page' >"$site/index.html"
echo 'a page below' >"$site/folder/index.html"
echo 'a name with a space' >"$site/a file.txt"
echo 'outside' >"$work/secret"
ln -s ../secret "$site/link"
head -c 4000000 /dev/urandom >"$site/big"
head -c 100000 /dev/zero >"$work/too_long"

short_deadlines=(--header-timeout 1000 --body-timeout 1000 --write-timeout 1000 --idle-timeout 1500)

# serve <option...>: starts the server, and sets $server and $url.
serve() {
  start http_server "$programs/http_server" --root "$site" --port 0 --max-connections 300 "$@"
  server=$started
  port=$(port_of http_server "$server")
  url=http://127.0.0.1:$port
}

# expect <status> <text in the answer> <curl argument...>
expect() {
  local status=$1 text=$2 answer
  shift 2
  answer=$(curl -s -m 10 --path-as-is -w '\n%{http_code}' "$@") || fail "no answer: curl $*"
  [[ ${answer##*$'\n'} == "$status" && $answer == *"$text"* ]] ||
    fail "not $status with '$text' but: $answer (curl ${*: -1})"
}

# says <status> <text>: to what is no HTTP, which curl does not send.
says() {
  local answer
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf '%b' "$2" >&3
  answer=$(timeout 10 head -n 1 <&3)
  exec 3<&-
  [[ $answer == "HTTP/1.1 $1 "* ]] || fail "'$2' was answered by '$answer'"
}

# figure <name>: of /stats.
figure() {
  curl -s -m 10 "$url/stats" | sed -n "s/^$1  *//p"
}

check_pages() {
  expect 200 'the first page' "$url/"
  expect 200 'the first page' "$url/index.html?version=1"
  expect 200 'a page below' "$url/folder"
  expect 200 'a name with a space' "$url/a%20file.txt"
  expect 200 'Content-Length: 15' -I "$url/"
  curl -s -m 10 "$url/big" | cmp - "$site/big" || fail "a file arrives changed"
  expect 200 'round and round' -d 'round and round' "$url/echo"

  local path
  for path in /nothing /../secret /folder/../../secret /%2e%2e/secret /%2E%2E%2Fsecret /..%2fsecret \
    /link /%00 /%4 //secret; do
    expect 404 'Not Found' "$url$path"
  done
  expect 405 'Not Allowed' -X DELETE "$url/"
  expect 405 'Not Allowed' "$url/echo"
  expect 413 'Too Large' --data-binary "@$work/too_long" "$url/echo"
  expect 413 'Too Large' -H 'Transfer-Encoding: chunked' --data-binary "@$work/too_long" "$url/echo"
  expect 431 'Too Large' -H "Long: $(head -c 9000 /dev/zero | tr '\0' x)" "$url/"
  says 400 'Hello?\r\n\r\n'
  says 400 'GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n'
  says 400 'GET / HTTP/1.1\r\n\r\n'
  says 400 'GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n'
  says 200 'GET / HTTP/1.0\r\n\r\n'
  expect 200 'the first page' --proxy "$url" http://elsewhere
  expect 200 'a page below' --proxy "$url" 'http://elsewhere/folder?version=1'
  expect 200 'Connection: keep-alive' --http1.0 -H 'Connection: keep-alive' -I "$url/"
  # curl sends the body when it is told to go on.
  expect 200 'to be continued' -H 'Expect: 100-continue' --expect100-timeout 60 -d 'to be continued' \
    "$url/echo"

  expect 200 'The wheel' "$url/stats"
  expect 200 '"lateness":{' "$url/stats.json"
  expect 200 '</html>' "$url/stats.html"
  expect 200 'asio_wheel_lateness_seconds_count' "$url/metrics"
  expect 200 'header    1000 ms: ' "$url/stats"
  expect 200 '"timeouts":[{"name":"header","limit_ms":1E3,' "$url/stats.json"
  expect 200 'asio_wheel_timeout_used_ratio_count{policy="write"}' "$url/metrics"
}

# What wrk must not have to say.
socket_errors='Socket errors'

# check_load <seconds>: honest clients, all of whom are served.
check_load() {
  wrk -t 1 -c 20 -d "$1" --timeout 5s "$url/" >"$work/wrk.log" || fail "wrk failed"
  ! grep -E "Non-2xx|$socket_errors" "$work/wrk.log" || fail "wrk was not served"
  [[ $(<"$work/wrk.log") =~ ([0-9]+)' requests in' ]] || fail "wrk says nothing"
  # At least once for each connection: sanitizers on a busy machine are slow.
  ((BASH_REMATCH[1] >= 20)) || fail "wrk had only ${BASH_REMATCH[1]} requests answered"
  say "wrk: $(awk '/Requests.sec/ { print $2 }' "$work/wrk.log") requests per second"
}

# check_attack <seconds> <option of hostile_client>...: several attacks at once, each of which the
# server ends, while it serves honest clients.
check_attack() {
  local seconds=$1 options attackers=()
  shift
  for options in "$@"; do
    # shellcheck disable=SC2086
    start "attack${#attackers[@]}" "$programs/hostile_client" --port "$port" $options
    attackers+=("$started")
  done
  check_load "$seconds"
  local i
  for i in "${!attackers[@]}"; do
    wait "${attackers[i]}" || fail "the server does not get rid of: $(<"$work/attack$i.log")"
    say "$(<"$work/attack$i.log")"
  done
}

# check_end: the server's memory, which its limits bound, and its end on a signal.
check_end() {
  local peak reserved
  peak=$(awk '/VmHWM/ { print $2 }' "/proc/$server/status")
  reserved=$(awk '/VmPeak/ { print $2 }' "/proc/$server/status")
  say "peak memory of the server: $peak KiB"
  # A connection takes some 10 KiB. Sanitizers, which reserve terabytes, need more.
  ((peak < 20000 || reserved > 1000000000)) || fail "that is too much"
  stop "$server" || fail "http_server does not end well: $?"
  say "$(tail -n 1 "$work/http_server.log")"
}

# check_slow_clients <text> <number> <option of hostile_client>...: the attacks that every server ends by
# itself, and those of the arguments. /stats has to say <text> of what timed out, and that <number> of the
# operations under the policy of headers have expired.
check_slow_clients() {
  local timed_out=$1 expired=$2 policy
  shift 2
  check_pages
  # Four seconds of grace, for a machine that has much else to do.
  check_attack 2 \
    "--method silent --connections 50 --within 5000" \
    "--method header --connections 50 --within 5000" \
    "--method body --path /echo --connections 50 --within 5000" \
    "--method idle --connections 50 --within 5500" "$@"
  [[ $(figure 'timed out') == "$timed_out" ]] ||
    fail "deadlines missed what should be theirs: $(figure 'timed out')"
  for policy in header body write; do
    say "$(figure "$policy")"
  done
  [[ $(figure header) == *" $expired expired;"* ]] || fail "the policy of headers missed some"
  [[ $(figure evicted) == 0 ]] || fail "somebody gave way without need"
  check_end
}

say "deadlines on the wheel"
serve "${short_deadlines[@]}"
check_slow_clients 'header 100  body 50  write 40  idle 50' 100 \
  "--method unread --path /big --connections 20 --within 5000" \
  "--method sip --path /big --connections 20 --within 5000"

# beast::tcp_stream closes its socket at a deadline. Until the client takes the rest of the answer, which
# it never does, the kernel keeps that.
say "deadlines on steady_timer"
serve "${short_deadlines[@]}" --timer steady
check_slow_clients 'header 100  body 50  write 0  idle 50' 0

# slow_upload: sends a body of ten bytes, one every 450 ms; prints the first line of the answer.
slow_upload() {
  local i
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n' >&3
  for ((i = 0; i < 10; ++i)); do
    sleep 0.45
    printf x >&3 || return 0
  done 2>/dev/null
  timeout 10 head -n 1 <&3 2>/dev/null || true
}

# flood_with_idle_clients: 100 a second, each of which asks once and stays, while an honest client
# uploads slowly. Sets $upload to what the latter was told.
flood_with_idle_clients() {
  start flood "$programs/hostile_client" --port "$port" --method idle --connections 700 \
    --per-second 100 --within 20000
  local flood=$started
  sleep 1
  upload=$(slow_upload)
  wait "$flood" || fail "the server does not get rid of: $(<"$work/flood.log")"
  say "$(<"$work/flood.log")"
  say "evicted: $(figure evicted); a slow upload was told '${upload%$'\r'}'"
}

say "many idle clients, all of whom may stay for 6 s"
serve --idle-timeout 6000 --full-idle-timeout 6000 --body-timeout 20000
flood_with_idle_clients
(($(figure evicted) > 100)) || fail "there was room for all"
check_end

say "many idle clients, who may stay for 200 ms if all places are taken"
serve --idle-timeout 6000 --full-idle-timeout 200 --body-timeout 20000
flood_with_idle_clients
(($(figure evicted) == 0)) || fail "the pressure did not make room"
[[ $upload == 'HTTP/1.1 200 '* ]] || fail "an honest client was not served"
check_end

say "more connections than there are places"
# Of honest ones, too, those give way that get no processor for longer than the flood takes to fill
# all places. Their clients connect again.
socket_errors='connect [^0]'
serve "${short_deadlines[@]}"
check_attack 1 "--method silent --connections 1000 --within 5000 --again 1"
(($(figure evicted) > 500)) || fail "a flood went unnoticed"
check_end

status=0
"$programs/http_server" --max-connections 0 2>"$work/error.log" || status=$?
((status == 2)) || fail "a bad option is not refused: $status"
grep -q -e '--max-connections must be within 1 and' "$work/error.log" ||
  fail "a bad option is not named but: $(<"$work/error.log")"
say "all is well"
