#!/usr/bin/env bash
# With MinGW: files whose Asio has Windows' threads do not link with a library on POSIX ones; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
Usage: test/abi/mingw.sh <compiler> <scratch folder> <folder with boost/>

With MinGW it depends on the headers before Asio's which threads that takes. Compiles the library's
side of abi.hpp as the CMake targets do, with BOOST_ASIO_HAS_PTHREADS, and a program with and without
that, which begins with Asio or with <mutex>. Fails unless those on POSIX threads link, and the other
one does not, with a message that says why.
END
}

if (($# != 3)) || [[ $1 == -h || $1 == --help ]]; then
  usage
  [[ ${1-} == -h || ${1-} == --help ]] && exit || exit 2
fi
compiler=$1 scratch=$(realpath -m "$2") boost=$3
mkdir -p "$scratch"
posix=-DBOOST_ASIO_HAS_PTHREADS=1

compile() {
  "$compiler" -std=c++20 -D_WIN32_WINNT=0x0A00 -Iinclude -isystem "$boost" "$@"
}
compile $posix -c src/detail/engine/abi.cpp -o "$scratch/library.o"

# builds <first header> [option]: a program that begins with this header.
builds() {
  printf '#include <%s>\n#include <asio_wheel/detail/engine/abi.hpp>\nint main() {}\n' "$1" \
    >"$scratch/main.cpp"
  compile "${@:2}" "$scratch/main.cpp" "$scratch/library.o" -lws2_32 -o "$scratch/main.exe" \
    >"$scratch/log" 2>&1
}

for header in boost/asio/io_context.hpp mutex; do
  builds "$header" $posix || {
    cat "$scratch/log"
    echo "wrong: a program that begins with <$header> does not link"
    exit 1
  }
done
if ! builds mutex; then
  cat "$scratch/log"
  echo 'wrong: Asio has no POSIX threads behind <mutex>'
  exit 1
fi
if builds boost/asio/io_context.hpp; then
  echo 'wrong: a program on Windows threads links with a library on POSIX ones'
  exit 1
fi
grep -q 'library_and_program_must_use_the_same_boost_and_asio_settings.*_no_pthreads' "$scratch/log" || {
  cat "$scratch/log"
  echo 'wrong: the message does not say why'
  exit 1
}
echo 'A program on other threads than the library does not link.'
