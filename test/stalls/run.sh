#!/usr/bin/env bash
# Runs every test case by itself, with a clock and a loop that stall; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/stalls/run.sh [option...] [program...]

Compiles test/stalls/stalls.cpp into build/stalls (with g++, which it installs if it is missing; see
test/run.sh), and runs each case of the test programs in a process of its own with that library
preloaded. Without a program: promise_tests engine_tests timers_tests parity_tests ancestor_tests
fault_tests. Builds no tests: test/run.sh does. Fails if a case does, and says how to repeat it.
Leaves out the suite ten_million_waits: it reads the clock so often that it would sleep for hours.

  --build DIR   the build folder, one without sanitizers (build/release)
  --one-in N    one in N readings of the clock, and returns from epoll_wait, sleeps (1000)
  --max-ms M    for up to M milliseconds (150)
  --seed S      decides which calls sleep; the n-th case of a program runs with the seed S + n (1)
  --jobs N      how many cases run at the same time (1)
  --timeout T   a case that takes longer than T seconds fails (900)
END
}

build=build/release one_in=1000 max_ms=150 seed=1 jobs=1 limit=900
programs=()
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --build) build=${2:?--build needs a folder}; shift ;;
    --one-in) one_in=${2:?--one-in needs a number}; shift ;;
    --max-ms) max_ms=${2:?--max-ms needs a number}; shift ;;
    --seed) seed=${2:?--seed needs a number}; shift ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    --timeout) limit=${2:?--timeout needs a number}; shift ;;
    -*) usage >&2; fail "no such option: $1" ;;
    *) programs+=("$1") ;;
  esac
  shift
done
((${#programs[@]})) ||
  programs=(promise_tests engine_tests timers_tests parity_tests ancestor_tests fault_tests)
for number in "$one_in" "$max_ms" "$seed" "$jobs" "$limit"; do
  [[ $number =~ ^[1-9][0-9]{0,8}$ ]] || fail "not a number from 1 to 999999999: $number"
done
for program in "${programs[@]}"; do
  [[ -x $build/test/$program ]] || fail "no $build/test/$program: test/run.sh builds the tests"
done

install_packages g++
library=$PWD/build/stalls/stalls.so
mkdir -p build/stalls
g++ -std=c++20 -O2 -Wall -Wextra -Werror -fPIC -ftls-model=initial-exec -shared \
  test/stalls/stalls.cpp -o "$library" -ldl

# stalling <seed>: sets $environment, in which a program stalls.
stalling() {
  environment=("LD_PRELOAD=$library" "ASIO_WHEEL_STALL_ONE_IN=$one_in"
    "ASIO_WHEEL_STALL_MAX_MS=$max_ms" "ASIO_WHEEL_STALL_SEED=$1")
}

# The loader only prints a message if it cannot load the library, and runs the program without it.
stalling "$seed"
complaint=$(env "${environment[@]}" true 2>&1) || fail "$complaint"
[[ -z $complaint ]] || fail "$complaint"

scratch=$(mktemp -d)
clean_up() {
  local running
  mapfile -t running < <(jobs -pr)
  # timeout passes the signal on to all processes of its case.
  ((${#running[@]} == 0)) || kill "${running[@]}" 2>/dev/null || true
  wait
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# list_cases <program>: what is to run, as --run_test takes it. Boost.Test indents what is in a
# suite by four spaces more than the suite, and marks what is enabled with a star.
list_cases() {
  "$1" --list_content --color_output=no 2>&1 </dev/null | awk '
    { match($0, /^ */); depth = RLENGTH / 4; name = substr($0, RLENGTH + 1) }
    enabled && depth <= last { print path[last] }
    { enabled = sub(/\*(:.*)?$/, "", name); last = depth }
    { path[depth] = depth ? path[depth - 1] "/" name : name }
    END { if (enabled) print path[last] }' | grep -v '^ten_million_waits/'
}

# What runs now, by process, and what has failed.
declare -A command_of=() log_of=()
failures=()

# start <program> <case> <number>
start() {
  local run=("$build/test/$1" "--run_test=$2") log=$scratch/$1.$3
  stalling $((seed + $3))
  timeout --kill-after=10 "$limit" env "${environment[@]}" "${run[@]}" --color_output=no \
    >"$log" 2>&1 </dev/null &
  command_of[$!]="${environment[*]} ${run[0]} '${run[1]}'"
  log_of[$!]=$log
}

# finish: waits until one case has ended.
finish() {
  local process status=0
  wait -n -p process || status=$?
  if ((status != 0)); then
    failures+=("${command_of[$process]}")
    say "FAILED: ${command_of[$process]}"
    tail -n 20 "${log_of[$process]}"
    ((status != 124)) || echo "took longer than $limit s"
  fi
  rm -f "${log_of[$process]}"
  unset "command_of[$process]" "log_of[$process]"
}

for program in "${programs[@]}"; do
  mapfile -t cases < <(list_cases "$build/test/$program")
  ((${#cases[@]})) || fail "$build/test/$program lists no cases"
  begin=$SECONDS
  for ((number = 0; number < ${#cases[@]}; ++number)); do
    ((${#command_of[@]} < jobs)) || finish
    ((number % 25)) || say "$program: started $number of ${#cases[@]} cases"
    start "$program" "${cases[number]}" "$number"
  done
  while ((${#command_of[@]})); do finish; done
  say "$program: ran ${#cases[@]} cases in $((SECONDS - begin)) s"
done

if ((${#failures[@]})); then
  say "these ${#failures[@]} cases failed:"
  printf '%s\n' "${failures[@]}"
  exit 1
fi
say 'no case failed'
