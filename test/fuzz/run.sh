#!/usr/bin/env bash
# Builds the fuzzers and runs them for a while; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/debian.sh

usage() {
  cat <<'EOF'
Usage: test/fuzz/run.sh [--seconds N] [--keep]

Installs the packages that are missing (Debian 12; see test/run.sh), builds fuzz_wheel and
fuzz_service with Clang 16 under AddressSanitizer and UndefinedBehaviorSanitizer, and runs each for
N seconds (60) on test/fuzz/corpus and on what earlier runs have put into build/fuzz/found. Prints
how many scripts each has played, and its findings; fails if there are any.

--keep: afterwards replaces the corpus by the few files that cover as much as all of them.

To see what a finding does: ASIO_WHEEL_MODEL_ALOUD=1 build/fuzz/test/fuzz/fuzz_wheel <file>
EOF
}

seconds=60 keep=
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --seconds) seconds=${2:?--seconds needs a number}; shift ;;
    --keep) keep=yes ;;
    *) usage >&2; fail "no such argument: $1" ;;
  esac
  shift
done
[[ $seconds =~ ^[1-9][0-9]{0,8}$ ]] || fail "not a number from 1 to 999999999: $seconds"

install_packages "${build_packages[@]}" "${clang_packages[@]}"
cmake --preset fuzz </dev/null
cmake --build --preset fuzz --parallel "$(build_jobs)" --target fuzz_wheel fuzz_service </dev/null

export ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
findings=0
for what in wheel service; do
  fuzzer=build/fuzz/test/fuzz/fuzz_$what
  corpus=test/fuzz/corpus/$what
  found=build/fuzz/found/$what
  log=build/fuzz/$what.log
  mkdir -p "$found" "build/fuzz/findings/$what"
  say "fuzz_$what: $seconds seconds"
  if "$fuzzer" -max_len=1024 -len_control=0 -timeout=30 -max_total_time="$seconds" -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$what/" "$found" "$corpus" >"$log" 2>&1 </dev/null; then
    say "fuzz_$what: $(awk '/number_of_executed_units/ { print $2 }' "$log") scripts, no findings"
  else
    tail -n 50 "$log"
    say "fuzz_$what: a finding in build/fuzz/findings/$what"
    findings=$((findings + 1))
  fi
  if [[ $keep ]]; then
    rm -rf "build/fuzz/merged/$what"
    mkdir -p "build/fuzz/merged/$what"
    # Counts edges, not how often each is taken: that would keep hundreds of files.
    "$fuzzer" -set_cover_merge=1 -use_counters=0 "build/fuzz/merged/$what" \
      "$corpus" "$found" >>"$log" 2>&1 </dev/null
    rm -f "$corpus"/*
    cp "build/fuzz/merged/$what"/* "$corpus"
  fi
done
exit $((findings > 0))
