#!/usr/bin/env bash
# Links a library and programs that differ in their Boost or in a setting of Asio; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
Usage: test/abi/abi.sh [--standalone] <compiler> <scratch folder> [<folder with boost/>...]

Compiles a library (src/detail/engine/abi.cpp) and a program (detail/engine/abi.hpp), each with
every setting of Asio that abi.hpp names and with another Boost. Fails unless
  - equal ones link, and the program runs;
  - unequal ones do not link, and the linker's message has the name that says why;
  - the same holds for a static and a shared library, with and without optimisation, with link-time
    optimisation and with --gc-sections;
  - every file that includes wheel_timer_service.hpp takes part.
With --standalone: the same for the library on the standalone Asio, in <folder>; and none of the two
libraries links with a program that is on the other's Asio.
END
}

standalone=0
case ${1:-} in
  '' | -h | --help) usage; exit ;;
  --standalone) standalone=1; shift ;;
esac
if (($# < 2)); then
  usage >&2
  exit 2
fi
compiler=$1 scratch=$(realpath -m "$2")
rm -rf "$scratch"
mkdir -p "$scratch"
flags=(-std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fPIC -fvisibility=hidden)
((standalone == 0)) || flags+=(-DASIO_WHEEL_STANDALONE)
includes=(-Iinclude)
for folder in "${@:3}"; do includes+=(-isystem "$folder"); done
why='library_and_program_must_use_the_same_boost_and_asio_settings'
failures=0

wrong() {
  echo "wrong: $*"
  failures=$((failures + 1))
}

compile() { "$compiler" "${flags[@]}" "$@" "${includes[@]}"; }
library() { compile -c src/detail/engine/abi.cpp -o "$scratch/library.o" "$@"; }

# A program of two files: the linker has to cope with two references.
echo '#include <asio_wheel/detail/engine/abi.hpp>' >"$scratch/other.cpp"
{
  echo '#include <asio_wheel/detail/engine/abi.hpp>'
  echo 'int main() {}'
} >"$scratch/main.cpp"
program() {
  compile -c "$scratch/main.cpp" -o "$scratch/main.o" "$@"
  compile -c "$scratch/other.cpp" -o "$scratch/other.o" "$@"
}

link() { "$compiler" "$scratch/main.o" "$scratch/other.o" -o "$scratch/program" "$@"; }

# links <what> <argument of the linker>...
links() {
  if ! link "${@:2}" >"$scratch/log" 2>&1; then
    wrong "$1: does not link"
    cat "$scratch/log"
  elif ! LD_LIBRARY_PATH=$scratch "$scratch/program"; then
    wrong "$1: does not run"
  fi
}

# fails <what> <argument of the linker>...
fails() {
  if link "${@:2}" >"$scratch/log" 2>&1; then
    wrong "$1: links"
  elif ! grep -q "$why" "$scratch/log"; then
    wrong "$1: does not link, but the message does not say why"
    cat "$scratch/log"
  fi
}

# Each setting by itself.
versions=(boost/boost/version asio/boost/asio/version)
((standalone == 0)) || versions=(asio/asio/version)
for header in "${versions[@]}"; do
  name=${header#*/} macro=${header%/version} macro=${macro#*/} macro=${macro////_}
  mkdir -p "$scratch/${header%/*}"
  printf '#include_next <%s.hpp>\n#undef %s_VERSION\n#define %s_VERSION 999900\n' \
    "$name" "${macro^^}" "${macro^^}" >"$scratch/$header.hpp"
done
settings=(
  "-isystem$scratch/boost"
  "-isystem$scratch/asio"
  -DBOOST_ASIO_DISABLE_EPOLL
  -DBOOST_ASIO_DISABLE_EVENTFD
  -DBOOST_ASIO_HAS_IO_URING
  '-DBOOST_ASIO_HAS_IO_URING -DBOOST_ASIO_DISABLE_EPOLL'
  -DBOOST_ASIO_DISABLE_THREADS
  -DBOOST_ASIO_DISABLE_THREAD_KEYWORD_EXTENSION
  -DBOOST_ASIO_ENABLE_HANDLER_TRACKING
  '-DBOOST_ASIO_CUSTOM_HANDLER_TRACKING="tracking.hpp"'
  -DBOOST_ASIO_USE_TS_EXECUTOR_AS_DEFAULT
  -DBOOST_ASIO_NO_TS_EXECUTORS
  -DBOOST_ASIO_DISABLE_SMALL_BLOCK_RECYCLING
  -DBOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE=4
  -DBOOST_ASIO_NO_EXCEPTIONS
  -DBOOST_ASIO_NO_TYPEID
)
# asio_is_it <setting>: for the Asio that is used, if it is one of that.
asio_is_it() {
  if ((standalone)); then
    [[ $1 != "-isystem$scratch/boost" ]] || return 1
    setting=${1//-DBOOST_/-D}
  fi
}
for setting in "${settings[@]}"; do
  asio_is_it "$setting" || continue
  read -ra arguments <<<"$setting"
  program
  library "${arguments[@]}"
  fails "library with $setting" "$scratch/library.o"
  program "${arguments[@]}"
  links "both with $setting" "$scratch/library.o"
  library
  fails "program with $setting" "$scratch/library.o"
done
for setting in -DBOOST_ASIO_SEPARATE_COMPILATION -DBOOST_ASIO_NO_DEPRECATED -DNDEBUG -O2 -std=c++2b \
  -pthread; do
  asio_is_it "$setting"
  program "$setting"
  links "program with $setting, which is all the same" "$scratch/library.o"
done

# One setting that stands for all.
setting=-DBOOST_ASIO_DISABLE_THREADS
asio_is_it "$setting"
no_threads=$setting

# Two files of one program that disagree.
library
program
compile "$no_threads" -c "$scratch/other.cpp" -o "$scratch/other.o"
fails "one file of the program with $no_threads" "$scratch/library.o"

# One setting in every way to build.
for optimisation in -O0 -O2 '-O2 -flto' '-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections'; do
  read -ra compiling <<<"${optimisation/-Wl,--gc-sections/}"
  read -ra linking <<<"$optimisation"
  program "${compiling[@]}"
  for difference in '' "$no_threads"; do
    if [[ -z $difference ]]; then outcome=links; else outcome=fails; fi
    shared=(-DASIO_WHEEL_SHARED -DASIO_WHEEL_BUILDING)
    rm -f "$scratch"/liblib.*
    library "${compiling[@]}" ${difference:+"$difference"}
    if [[ $optimisation == *-flto* ]]; then
      static=$scratch/library.o # not every `ar` reads what every compiler writes there
    else
      static=$scratch/liblib.a
      ar rc "$static" "$scratch/library.o"
    fi
    $outcome "static, $optimisation $difference" "${linking[@]}" "$static"
    library "${compiling[@]}" "${shared[@]}" ${difference:+"$difference"}
    "$compiler" "${linking[@]}" -shared "$scratch/library.o" -o "$scratch/liblib.so"
    $outcome "shared, $optimisation $difference" "${linking[@]}" -L"$scratch" -llib
  done
done

# A shared library exchanged behind a program's back: it does not start.
program
library "${shared[@]}"
"$compiler" -shared "$scratch/library.o" -o "$scratch/liblib.so"
links 'shared' -L"$scratch" -llib
library "${shared[@]}" "-isystem$scratch/asio"
"$compiler" -shared "$scratch/library.o" -o "$scratch/liblib.so"
if LD_LIBRARY_PATH=$scratch "$scratch/program" 2>"$scratch/log"; then
  wrong 'a program starts with a library of another Asio'
elif ! grep -q "$why" "$scratch/log"; then
  wrong "the loader's message does not say why"
fi

# Boost.Asio is not the standalone one.
if ((standalone)); then
  library -UASIO_WHEEL_STANDALONE
  program
  fails "library on Boost.Asio" "$scratch/library.o"
  library
  program -UASIO_WHEEL_STANDALONE
  fails "program on Boost.Asio" "$scratch/library.o"
fi

# The library and its user in one file.
printf '#include "%s"\n' "$PWD/src/detail/engine/abi.cpp" "$scratch/main.cpp" >"$scratch/all.cpp"
if ! compile "$scratch/all.cpp" -o "$scratch/program" || ! "$scratch/program"; then
  wrong 'the library and its user in one file'
fi

# Users of the service take part.
echo '#include <asio_wheel/wheel_timer_service.hpp>' >"$scratch/user.cpp"
compile -c "$scratch/user.cpp" -o "$scratch/user.o"
nm -u "$scratch/user.o" | grep -q "$why" ||
  wrong 'wheel_timer_service.hpp does not include detail/engine/abi.hpp'

if ((failures > 0)); then exit 1; fi
echo 'Equal ones link, unequal ones say why not.'
