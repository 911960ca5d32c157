#!/usr/bin/env bash
# Runs Asio's own timer tests with Asio's timers and with ours; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/peers/asio_timers.sh [build folder]

Takes libs/asio/test/system_timer.cpp from Debian's source package of boost1.81, which is unpacked to
build/peers and fetched once, and runs it four times: with asio::system_timer as a control, and with
asio_wheel::drop_in's system_timer, steady_timer and high_resolution_timer, by exchanging the name.
Compares what the four say case by case. Needs Boost 1.81, and libasio_wheel in the build folder
(build/release without one). Installs nothing, needs no root.
END
}

case ${1:-} in
  -h | --help) usage; exit ;;
esac
build=$(realpath "${1:-build/release}")
[[ -e $build/src/libasio_wheel.a ]] || fail "no libasio_wheel.a in $build/src: build it first"

folder=$PWD/build/peers/boost1.81
tests=$folder/libs/asio/test
if [[ ! -e $tests/system_timer.cpp ]]; then
  rm -rf "$folder"
  mkdir -p "$folder"/apt/{lists/partial,cache/archives/partial}
  # An apt of its own, which knows the sources of this suite and nothing else.
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb-src [signed-by=$keyring] $(debian_mirror) bookworm main" >"$folder/apt/sources.list"
  options=(-qq -o "Dir::Etc::SourceList=$folder/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache"
    -o APT::Sandbox::User=)
  (
    cd "$folder"
    apt-get "${options[@]}" update
    apt-get "${options[@]}" source --download-only boost1.81
    tar -xJf boost1.81_*.orig.tar.xz --strip-components=1 --wildcards '*/libs/asio/test/*'
    rm -rf apt boost1.81_*
  ) >"$folder.log" 2>&1 </dev/null || { cat "$folder.log" >&2; fail 'could not fetch boost1.81'; }
fi

# run_with <name> <sed script>: leaves the cases that passed in <name>.passed.
run_with() {
  local program=$folder/$1
  sed "$2" "$tests/system_timer.cpp" >"$program.cpp"
  "${CXX:-c++}" -std=c++20 -O1 -w -include asio_wheel/drop_in.hpp -Iinclude -I"$tests" \
    "$program.cpp" "$build/src/libasio_wheel.a" -o "$program" -lfmt -pthread
  "$program" >"$program.out" 2>&1 || { cat "$program.out" >&2; fail "$1 failed"; }
  grep ' passed$' "$program.out" >"$program.passed" || fail "$1: no case passed"
}

run_with control ''
say "asio::system_timer: $(wc -l <"$folder/control.passed") cases passed"
for timer in system_timer steady_timer high_resolution_timer; do
  names='s/boost::asio::basic_waitable_timer/asio_wheel::drop_in::basic_waitable_timer/g'
  run_with "$timer" "$names; s/boost::asio::system_timer/asio_wheel::drop_in::$timer/g"
  cmp "$folder/control.passed" "$folder/$timer.passed" || fail "drop_in::$timer: other cases passed"
  say "asio_wheel::drop_in::$timer: the same cases"
done
