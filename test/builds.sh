#!/usr/bin/env bash
# Compiles the library with every compiler, standard and switch that users have; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/builds.sh

Installs the packages that are missing (Debian 12; with sudo unless you are root; asks nothing), and
then, in build/builds and with warnings as errors:
  - compiles each public header by itself, and sees it refused by one line without C++20 and without
    exceptions;
  - compiles the library and test/builds/everything.cpp, a program that uses all of it, with g++ and
    clang++-16, as C++20 and C++23, with Debian's hardening, _FORTIFY_SOURCE=3, _GLIBCXX_ASSERTIONS
    and Asio's switches, as a static and as a shared library, and runs the program.
Prints the errors of each check that fails, and then exits with status 1.
ASIO_WHEEL_ASIO_INCLUDE_DIR=<folder with boost/asio>: uses that Asio instead of the one that comes
with Boost. JOBS=n limits the compilers.
END
}

case ${1:-} in
  '') ;;
  -h | --help) usage; exit ;;
  *) usage >&2; fail "no such option: $1" ;;
esac

install_packages "${build_packages[@]}" "${clang_packages[@]}" dpkg-dev

output=build/builds
rm -rf "$output"
mkdir -p "$output/headers"
includes=(-Iinclude)
[[ -z ${ASIO_WHEEL_ASIO_INCLUDE_DIR:-} ]] || includes+=(-isystem "$ASIO_WHEEL_ASIO_INCLUDE_DIR")
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
library=$output/library.cpp asio=$output/asio.cpp
find src -name '*.cpp' | sort | sed 's|.*|#include "../../&"|' >"$library"
echo '#include <boost/asio/impl/src.hpp>' >"$asio"

# Every check is a function that runs with `set -e` and its output in a file.

# compile <compiler> <standard> <argument>...
compile() {
  "$1" "-std=$2" "${warnings[@]}" "${includes[@]}" -pthread "${@:3}"
}

# program <compiler> <standard> <argument>...: the library in one with its user.
program() {
  compile "$@" "$library" test/builds/everything.cpp -o "$result" -lfmt
  "$result"
}

# shared <compiler> <standard> <argument>...: fails to link where an ASIO_WHEEL_EXPORT is missing, and
# where the library needs {fmt}.
shared() {
  local flags=(-fPIC -fvisibility=hidden -fvisibility-inlines-hidden -DASIO_WHEEL_SHARED)
  compile "$@" "${flags[@]}" -DASIO_WHEEL_BUILDING -shared "$library" -o "$result.so" \
    -Wl,-z,defs -Wl,--version-script=src/exports.map
  compile "$@" "${flags[@]}" test/builds/everything.cpp "$result.so" -o "$result" -lfmt
  "$result"
}

# syntax <compiler> <standard> <argument>...: where to run it would add nothing.
syntax() {
  compile "$@" -fsyntax-only "$library"
  compile "$@" -fsyntax-only test/builds/everything.cpp
}

# headers <compiler> <standard> <part>: those of include/ and src/ whose number modulo 4 is <part>.
headers() {
  local header number=0
  while read -r header; do
    ((number++ % 4 == $3)) || continue
    echo "#include \"../../$header\"" >"$result.cpp"
    echo "$header"
    compile "$1" "$2" -fsyntax-only "$result.cpp"
  done < <(find include src -name '*.hpp' | sort)
}

# refused <compiler> <standard> <why> <argument>...: by each public header, with one #error; the
# second error is the end of the compilation.
refused() {
  local header
  while read -r header; do
    echo "#include <$header>" >"$result.cpp"
    if "$1" "-std=$2" "${includes[@]}" "${@:4}" -fsyntax-only "$result.cpp" 2>"$result.errors" ||
      ! grep -q "error: .*$3" "$result.errors" || (($(grep -c 'error: ' "$result.errors") != 2)); then
      echo "wrong: $header is not refused readably"
      grep 'error: ' "$result.errors" | head -n 5
      return 1
    fi
  done < <(cd include && find . -path ./asio_wheel/detail -prune -o -name '*.hpp' -printf '%P\n')
}

# check <name> <function> <argument>...: in the background, once there is a processor for it.
jobs=$(build_jobs)
check() {
  local result=$output/${1//[^a-zA-Z0-9]/_}
  while (($(jobs -pr | wc -l) >= jobs)); do wait -n || true; done
  {
    set +e # with it, `set -e` of a command whose status is asked for would have no effect
    (
      set -e
      "${@:2}"
    ) >"$result.log" 2>&1 </dev/null
    status=$?
    if ((status == 0)); then
      say "$1"
    else
      echo "FAILED: $1: ${*:2}" | tee "$result.failed"
      grep -E 'error|warning|undefined|wrong:' "$result.log" | head -n 20
      echo "  all of it: $result.log"
    fi
  } &
}

hardening=()
for variable in CPPFLAGS CXXFLAGS LDFLAGS; do
  read -ra flags < <(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get "$variable")
  hardening+=("${flags[@]}")
done
fortified=(-O2 -D_FORTIFY_SOURCE=3)

# What is optimised takes longest, and goes first.
check "g++, C++20, Debian's hardening" program g++ c++20 "${hardening[@]}"
check 'g++, C++23, _FORTIFY_SOURCE=3, _GLIBCXX_ASSERTIONS' \
  program g++ c++2b "${fortified[@]}" -D_GLIBCXX_ASSERTIONS
check 'clang++, C++20, _FORTIFY_SOURCE=3' program clang++-16 c++20 "${fortified[@]}" -DNDEBUG
check 'clang++, C++23, _GLIBCXX_ASSERTIONS' program clang++-16 c++2b -D_GLIBCXX_ASSERTIONS
check 'g++, shared library, hidden visibility' shared g++ c++20
check 'clang++, shared library, hidden visibility' shared clang++-16 c++20
# From here on it is Asio that differs, and Clang compiles it faster.
check 'BOOST_ASIO_NO_DEPRECATED' syntax clang++-16 c++20 -DBOOST_ASIO_NO_DEPRECATED
check 'BOOST_ASIO_NO_TS_EXECUTORS' program clang++-16 c++20 -DBOOST_ASIO_NO_TS_EXECUTORS
check 'BOOST_ASIO_SEPARATE_COMPILATION' \
  program clang++-16 c++20 -DBOOST_ASIO_SEPARATE_COMPILATION "$asio"
check 'BOOST_ASIO_ENABLE_HANDLER_TRACKING' \
  program clang++-16 c++20 -DBOOST_ASIO_ENABLE_HANDLER_TRACKING
check 'BOOST_ASIO_DISABLE_THREADS' program clang++-16 c++20 -DBOOST_ASIO_DISABLE_THREADS
for compiler in g++ clang++-16; do
  check "$compiler, C++17 is refused" refused "$compiler" c++17 'C++20'
  check "$compiler, no exceptions is refused" refused "$compiler" c++20 'exceptions' -fno-exceptions
done
for part in 0 1 2 3; do
  check "headers by themselves, part $((part + 1)) of 4" headers clang++-16 c++20 "$part"
done
wait

if compgen -G "$output/*.failed" >/dev/null; then
  say 'these failed:'
  cat "$output"/*.failed
  exit 1
fi
