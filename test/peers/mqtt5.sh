#!/usr/bin/env bash
# Boost.MQTT5's tests, with Asio's timers and with ours; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source test/peers/common.sh

usage() {
  cat <<'END'
Usage: test/peers/mqtt5.sh [unit | integration]

Takes Boost.MQTT5 from the source package of boost1.88 in Debian 13 and runs its unit tests, which need no
broker, twice: as they are, and with the timers of asio_wheel::drop_in in the place of Asio's. Prints a row
of the table in doc/platforms.md and fails at a difference. `integration` runs the tests of that folder
instead, against their own simulated broker; they wait for a minute in all.
END
}

kind=${1:-unit}
case $kind in
  unit | integration) ;;
  -h | --help) usage; exit ;;
  *) usage >&2; fail "no such tests: $kind" ;;
esac

install_packages g++ libfmt-dev libssl-dev
begin "mqtt5-$kind" boost1.88 trixie
take include/boost/mqtt5 include/boost/mqtt5.hpp libs/mqtt5/test
exchange "$timers_and_deadlines"
build_libraries "$source/include"
flags+=(-DBOOST_TEST_NO_MAIN=1 -DBOOST_TEST_NO_LIB)
compile "$work/main.o" -c "$source/libs/mqtt5/test/src/run_tests.cpp"

for side in control exchanged; do
  test=$work/$side/libs/mqtt5/test
  precompile "$side" boost/mqtt5.hpp boost/asio.hpp boost/test/unit_test.hpp
  side_flags+=("-I$test/include")
  objects=()
  for file in "$test/$kind"/*.cpp; do
    object=$work/$side/$(basename "$file" .cpp).o
    compile "$object" "${side_flags[@]}" -c "$file"
    objects+=("$object")
  done
  compile "$work/$side/tests" "${objects[@]}" "$work/main.o" "${libraries[@]}"
  run "$side" "$kind" "$work/$side/tests"
done
compare ""
