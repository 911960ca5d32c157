#!/usr/bin/env bash
# Asio's own tests of timers and of cancel_after, with Asio's and with ours; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source test/peers/common.sh

usage() {
  cat <<'END'
Usage: test/peers/asio_timers.sh [PACKAGE SUITE]

Takes Asio's own tests of timers, cancel_after and cancel_at from that Debian source package (boost1.88
trixie without one) and runs them twice: as they are, and with the types of asio_wheel::drop_in,
asio_wheel::cancel_after and cancel_at by exchanging the names. The test of system_timer runs for
steady_timer and high_resolution_timer, too. Prints a row of the table in doc/platforms.md and fails at a
difference. In boost1.81 of bookworm there is no cancel_after to compare with.
END
}

case $#${1:-} in
  0) set -- boost1.88 trixie ;;
  1-h | 1--help) usage; exit ;;
  2boost*) ;;
  *) usage >&2; fail "which package, and of which suite?" ;;
esac

install_packages g++ libfmt-dev libssl-dev
begin "asio-${1#boost}" "$@"
take libs/asio/test
tests=$work/control/libs/asio/test
for clock in steady high_resolution; do
  sed "s/system_timer/${clock}_timer/g" "$tests/system_timer.cpp" >"$tests/${clock}_timer.cpp"
  cp "$tests/${clock}_timer.cpp" "$work/exchanged/libs/asio/test"
done
exchange "$timers_and_deadlines"
# These two files have the names without their namespace.
for file in cancel_after cancel_at; do
  [[ -e $tests/$file.cpp ]] || continue
  exchange '/^ *(#|\/\/)/!{
    s/\bsteady_timer\b/asio_wheel::drop_in::&/g
    s/\bcancel_(after|at)\(/asio_wheel::&/g
  }' "libs/asio/test/$file.cpp"
done
build_libraries "$source/include"

for side in control exchanged; do
  precompile "$side" boost/asio.hpp
  for name in {system,steady,high_resolution}_timer cancel_{after,at}; do
    file=$work/$side/libs/asio/test/$name.cpp
    [[ -e $file ]] || continue
    compile "$work/$side/$name" "${side_flags[@]}" "$file" "${libraries[@]}"
    run_alone "$side" "$name" "$work/$side/$name"
    sed -nE "s/^([a-z0-9_]+) (passed|failed).*/$name\/\1 \2/p" "$work/$side.$name.said" >>"$work/$side.cases"
  done
done
compare ""
