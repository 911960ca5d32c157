#!/usr/bin/env bash
# Has real tools look at what the library tells them; see --help.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

usage() {
  cat <<'END'
Usage: test/observing/check.sh metrics PROGRAM
       test/observing/check.sh prometheus|probes|page FOLDER

  metrics     promtool finds nothing wrong with what PROGRAM prints (the test program `metrics`).
              Needs promtool (Debian: prometheus).
  prometheus  promtool finds nothing wrong with the /metrics of http_server under load; a Prometheus
              server scrapes them, and knows the 99th percentile of the lateness and the pressure.
              Needs prometheus, promtool, curl and wrk.
  probes      the test program `metrics`, built with -DASIO_WHEEL_USDT=ON, has each probe, as a
              nop, and gdb stops at them. Needs readelf, objdump (binutils) and gdb.
  page        pictures of http_server's stats.html at 1100 px, light and dark, go to
              FOLDER/stats_light.png and FOLDER/stats_dark.png, for somebody to look at: it takes two
              minutes of load. Needs chromium, wrk and python3.

FOLDER is that of a build: build/release, say. Everything listens on 127.0.0.1 alone.
END
}

if (($# == 1)) && [[ $1 == -h || $1 == --help ]]; then
  usage
  exit
fi
if (($# != 2)); then
  usage >&2
  exit 2
fi

# shellcheck source=examples/peers.sh
source "$here/examples/peers.sh"
build=$2

# serve_under_load <seconds>: http_server with honest and hostile clients; sets $port.
serve_under_load() {
  mkdir "$work/site"
  echo 'the first page' >"$work/site/index.html"
  start http_server "$build/examples/http_server" --root "$work/site" --port 0 \
    --header-timeout 2000 --idle-timeout 3000
  port=$(port_of http_server "$started")
  # As many requests as leave the machine time for those who look.
  echo 'function delay() return math.random(10, 30) end' >"$work/pauses.lua"
  start wrk wrk -t 1 -c 40 -d "$1" --timeout 5s -s "$work/pauses.lua" "http://127.0.0.1:$port/"
  start hostile "$build/examples/hostile_client" --port "$port" --method header --connections 100 \
    --within 60000 --again "$1"
  start idle "$build/examples/hostile_client" --port "$port" --method idle --connections 200 \
    --within 60000 --again "$1"
}

# stop_all: in good order, so that nobody has anything to say about it.
stop_all() {
  local peer
  for peer in "${peers[@]}"; do
    stop "$peer" || true
  done
}

# lint <whose>: promtool's opinion of $work/metrics.
lint() {
  promtool check metrics <"$work/metrics" || fail "promtool objects to $1"
  say "promtool has no objection to the $(grep -c '^# TYPE' "$work/metrics") metrics of $1"
}

check_metrics() {
  needs promtool
  "$1" >"$work/metrics"
  lint "$1"
}

check_prometheus() {
  needs prometheus promtool curl wrk
  serve_under_load 60
  local web answer metric tries
  web=$(free_port)
  cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: http_server
    static_configs: [{targets: ['127.0.0.1:$port']}]
END
  curl -sf -m 10 "http://127.0.0.1:$port/metrics" >"$work/metrics" || fail "no /metrics"
  lint http_server
  start prometheus prometheus --config.file="$work/prometheus.yml" \
    --storage.tsdb.path="$work/data" --web.listen-address="127.0.0.1:$web"
  local query='histogram_quantile(0.99, rate(asio_wheel_lateness_seconds_bucket[10s]))'
  for ((tries = 0; tries < 60; ++tries)); do
    sleep 1
    answer=$(promtool query instant "http://127.0.0.1:$web" "$query" 2>/dev/null) || continue
    if [[ $answer =~ '=> '[0-9] ]]; then
      say "p99 of the lateness in seconds, by Prometheus: $answer"
      for metric in asio_wheel_expired_total http_server_pressure; do
        answer=$(promtool query instant "http://127.0.0.1:$web" "$metric")
        [[ $answer =~ '=> '[0-9] ]] || fail "Prometheus does not know $metric"
        say "$answer"
      done
      stop_all
      return
    fi
  done
  fail "Prometheus has no answer but: $answer"
}

check_probes() {
  needs readelf objdump gdb
  local program=$build/test/metrics name address count
  for name in start expire cancel late; do
    count=$(readelf -n "$program" | grep -A1 'Provider: asio_wheel' | grep -c "Name: $name" || true)
    ((count > 0)) || fail "no probe asio_wheel:$name (was it built with -DASIO_WHEEL_USDT=ON?)"
    say "asio_wheel:$name stands in $count places"
  done
  count=0
  for address in $(readelf -n "$program" | grep -A2 'Provider: asio_wheel' |
    sed -n 's/.*Location: 0x0*\([0-9a-f]*\).*/\1/p'); do
    objdump -d --start-address="0x$address" --stop-address="$((16#$address + 1))" "$program" |
      grep -q "nop" || fail "what is at $address is no nop"
    count=$((count + 1))
  done
  say "each of the $count is one nop"
  for name in start expire cancel late; do
    gdb -batch -ex 'set debuginfod enabled off' -ex "break -probe-stap asio_wheel:$name" -ex run \
      -ex 'printf "wait %p\n", $_probe_arg0' -ex 'info symbol $_probe_arg1' \
      -ex 'printf "third argument %ld\n", (long)$_probe_arg2' -ex kill "$program" \
      >"$work/gdb.log" 2>&1 </dev/null || true
    grep -q '^wait 0x' "$work/gdb.log" && grep -q 'do_ask' "$work/gdb.log" ||
      fail "gdb does not stop at $name"
    say "gdb stopped at $name: $(grep -E '^third|do_ask' "$work/gdb.log" | cut -c1-150 | paste -sd ' ')"
  done
}

check_page() {
  needs chromium wrk python3
  serve_under_load 120
  # Chromium takes the picture when a page is complete: this one is when an image has been waited
  # for, for long enough to have something to show.
  local scheme slow light dark
  slow=$(free_port)
  start slow python3 -c "
import socket, time
s = socket.create_server(('127.0.0.1', $slow))
while True:
    c = s.accept()[0]
    time.sleep(25)
    c.close()"
  wait_for_port "$slow"
  cat >"$work/site/page.html" <<END
<!doctype html><meta name="color-scheme" content="light dark"><style>* { margin: 0; border: 0 }</style>
<iframe src="/stats.html" width="1100" height="1170"></iframe>
<img src="http://127.0.0.1:$slow/" width="0" height="0">
END
  # Both at the same time, so that they show the same run.
  for scheme in light dark; do
    local options=()
    if [[ $scheme == dark ]]; then
      options=(--blink-settings=preferredColorScheme=0 --enable-features=WebContentsForceDark:none
        --force-dark-mode)
    fi
    start chromium nice -n 19 chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
      --user-data-dir="$work/browser_$scheme" --window-size=1100,1170 --timeout=40000 \
      "${options[@]}" --screenshot="$work/$scheme.png" "http://127.0.0.1:$port/page.html"
    declare "$scheme=$started"
  done
  for scheme in light dark; do
    wait "${!scheme}" || fail "chromium ends with $?"
    [[ -s $work/$scheme.png ]] || fail "chromium took no picture"
    cp "$work/$scheme.png" "$build/stats_$scheme.png"
    say "look at $build/stats_$scheme.png"
  done
  stop_all
}

case $1 in
  metrics | prometheus | probes | page) "check_$1" "$2" ;;
  *)
    usage >&2
    exit 2
    ;;
esac
say "all is well"
