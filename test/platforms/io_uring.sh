#!/usr/bin/env bash
# Tests with Asio on io_uring instead of epoll; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/platforms/io_uring.sh [-Dname=value...]

Installs the packages that are missing (Debian 12; with sudo unless you are root; asks nothing),
builds the promises' tests and the rpc example twice, with BOOST_ASIO_HAS_IO_URING beside epoll and
with io_uring alone (BOOST_ASIO_DISABLE_EPOLL), and runs the tests and a short load. Ends at once
where the kernel has no io_uring. What starts with -D goes to CMake. JOBS=n limits the compilers.
END
}

case ${1:-} in
  -h | --help) usage; exit ;;
  '' | -D?*) ;;
  *) usage >&2; fail "no such option: $1" ;;
esac

install_packages "${build_packages[@]}" liburing-dev
if [[ $(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null || echo 0) == 2 ]]; then
  fail 'io_uring is disabled here: sysctl kernel.io_uring_disabled'
fi

for how in beside_epoll alone; do
  build=build/platforms/io_uring_$how
  flags=-DBOOST_ASIO_HAS_IO_URING
  [[ $how == beside_epoll ]] || flags+=' -DBOOST_ASIO_DISABLE_EPOLL'
  mkdir -p "$build"
  say "io_uring $how: build"
  {
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
      "-DCMAKE_CXX_FLAGS=$flags" -DCMAKE_CXX_STANDARD_LIBRARIES=-luring \
      -DASIO_WHEEL_INSTALL=OFF -DASIO_WHEEL_BUILD_BENCHMARKS=OFF "$@" &&
      cmake --build "$build" --parallel "$(build_jobs)" --target promise_tests rpc_server rpc_client
  } >"$build.log" 2>&1 </dev/null || {
    grep -E 'error|undefined|FAILED|CMake' "$build.log" | head -n 40 || true
    fail "does not build; all of it: $build.log"
  }
  say "io_uring $how: test"
  ctest --test-dir "$build" --tests-regex '^(promise\.|example\.rpc)' --output-on-failure \
    --no-tests=error --timeout 600 </dev/null
done
