#!/usr/bin/env bash
# Boost.Redis' tests against a real server, with Asio's timers and with ours; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source test/peers/common.sh

usage() {
  cat <<'END'
Usage: test/peers/redis.sh [test...]

Takes Boost.Redis from the source package of boost1.88 in Debian 13 and runs its tests that need a server
twice: as they are, and with the timers of asio_wheel::drop_in and asio_wheel::cancel_after in the place
of Asio's. Each program gets a redis-server of its own, on the port of the tests, in a network namespace.
Leaves out the tests that use no connection, and that of TLS, which their own build leaves out. Prints a
row of the table in doc/platforms.md and fails at a difference. With names of tests (conn_exec), only
these.
END
}

case ${1:-} in
  -h | --help) usage; exit ;;
  -*) usage >&2; fail "no such option: $1" ;;
esac
tests=("$@")
(($#)) || tests=(run conn_{quit,check_health,exec,exec_retry,exec_error,exec_cancel,exec_cancel2,push,reconnect}
  conn_echo_stress issue_{50,181})

install_packages g++ libfmt-dev libssl-dev redis-server iproute2
begin redis boost1.88 trixie
take include/boost/redis include/boost/redis.hpp libs/redis/test
exchange "$timers_and_deadlines"
build_libraries "$source/include"

# shellcheck disable=SC2016
with_server=(unshare --map-root-user --net --pid --fork --kill-child -- bash -c '
  ip link set lo up
  redis-server --port 6379 --bind 127.0.0.1 --save "" --dir "$1" >/dev/null &
  until (: </dev/tcp/127.0.0.1/6379) 2>/dev/null; do sleep 0.1; done
  "${@:2}"' with_server "$work")

for side in control exchanged; do
  test=$work/$side/libs/redis/test
  precompile "$side" boost/redis/connection.hpp boost/asio/{co_spawn,use_awaitable}.hpp \
    boost/asio/experimental/awaitable_operators.hpp
  objects=()
  for file in boost_redis common; do
    compile "$work/$side/$file.o" "${side_flags[@]}" -c "$test/$file.cpp"
    objects+=("$work/$side/$file.o")
  done
  for name in "${tests[@]}"; do
    compile "$work/$side/$name" "${side_flags[@]}" "$test/test_$name.cpp" "${objects[@]}" "${libraries[@]}"
    run "$side" "$name" "${with_server[@]}" "$work/$side/$name"
  done
done
compare ""
