# Shell functions of the examples' checks, which start servers, talk to them and stop them; sourced
# by examples/*/check.sh.
# shellcheck shell=bash

work=$(mktemp -d)
peers=()

say() {
  printf '== %s\n' "$*"
}

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  tail -n 20 "$work"/*.log >&2 2>/dev/null || true
  exit 1
}

# needs <program>...: fails, and names the missing program.
needs() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || fail "$program is not installed (see cmake/debian.sh)"
  done
}

# start <name> <program...>: in the background, output in $work/<name>.log; its process is $started.
# It has a process group of its own, and the kernel kills it when this shell goes, whatever ends that.
start() {
  local name=$1
  shift
  : >"$work/$name.log" # drops the output of an earlier one of that name
  setsid setpriv --pdeathsig KILL "$@" </dev/null >"$work/$name.log" 2>&1 &
  started=$!
  peers+=("$started")
}

# stop <process>: SIGTERM; its exit status, or failure if it does not end within ten seconds.
stop() {
  local tries status=0
  kill -TERM "$1" 2>/dev/null || true
  for ((tries = 0; tries < 100; ++tries)); do
    if ! kill -0 "$1" 2>/dev/null; then
      wait "$1" || status=$?
      return "$status"
    fi
    sleep 0.1
  done
  fail "process $1 does not stop on SIGTERM"
}

# port_of <name> <process>: waits until the log names the port, as 127.0.0.1:port; prints it.
port_of() {
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    if [[ $(<"$work/$1.log") =~ 127\.0\.0\.1:([0-9]+) ]]; then
      echo "${BASH_REMATCH[1]}"
      return
    fi
    kill -0 "$2" 2>/dev/null || break
    sleep 0.1
  done
  fail "$1 did not start"
}

# free_port: prints a port that nobody listens on, for peers that cannot choose their own. It is below
# the ports that the system gives to connections.
free_port() {
  local port
  while true; do
    port=$((10000 + RANDOM % 20000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
  done
  echo "$port"
}

# wait_for_port <port>: until somebody listens on it.
wait_for_port() {
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
    sleep 0.1
  done
  fail "nobody listens on port $1"
}

# wait_for <text> <log> <ms>: until the log has the text; prints how many ms that took.
wait_for() {
  local begin=${EPOCHREALTIME/./} now
  while true; do
    now=${EPOCHREALTIME/./}
    grep -q "$1" "$work/$2.log" && break
    (((now - begin) / 1000 < $3)) || fail "$2 does not say '$1' within $3 ms"
    sleep 0.01
  done
  echo $(((now - begin) / 1000))
}

# start_redis <option...>: on $port of 127.0.0.1, with its files in $work; its process is $redis.
start_redis() {
  start redis redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$work" "$@"
  redis=$started
  wait_for_port "$port"
}

# says <status> <regular expression> <command...>: fails if the command ends or speaks differently.
says() {
  local status=0 wanted=$1 text=$2
  shift 2
  "$@" >"$work/said" 2>&1 || status=$?
  ((status == wanted)) || fail "'$*' ends with status $status: $(<"$work/said")"
  grep -Eq -- "$text" "$work/said" || fail "'$*' does not say '$text' but: $(<"$work/said")"
}

clean_up() {
  local peer
  for peer in "${peers[@]}"; do
    # With what it has started itself.
    { kill -KILL -- "-$peer" && wait "$peer"; } 2>/dev/null || true
  done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
