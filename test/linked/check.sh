#!/usr/bin/env bash
# What a program gets with the library; see --help.
set -euo pipefail

usage() {
  cat <<'END'
Usage: check.sh static <compiler> <scratch folder> <libasio_wheel.a> [--size] [<include folder>...]
       check.sh shared <compiler> <scratch folder> <libasio_wheel.so> [<include folder>...]

static: links a program with one timer (wheel.cpp), without libfmt. Fails if it has the parts of the
library that it does not use; with --size also if, optimised and stripped, it is more than 200 KB
larger than the same program on steady_timer (steady.cpp).
shared: fails if the library needs libfmt or exports names of others; links a program with it
(border.cpp), which checks that both have the same of what must not be there twice.
END
}

case ${1:-} in
  static | shared) ;;
  *) usage >&2; exit 2 ;;
esac
kind=$1 compiler=$2 scratch=$(realpath -m "$3") library=$(realpath "$4")
shift 4
size=0
if [[ ${1:-} == --size ]]; then
  size=1
  shift
fi
cd "$(dirname "${BASH_SOURCE[0]}")"
rm -rf "$scratch"
mkdir -p "$scratch"
flags=(-std=c++20 -O3 -DNDEBUG -pthread -I../../include)
for folder in "$@"; do flags+=(-isystem "$folder"); done
failures=0

wrong() {
  echo "wrong: $*"
  failures=$((failures + 1))
}

bytes() {
  strip "$1" -o "$1.stripped"
  stat -c %s "$1.stripped"
}

if [[ $kind == static ]]; then
  "$compiler" "${flags[@]}" wheel.cpp "$library" -o "$scratch/wheel"
  "$scratch/wheel" || wrong 'the wait fails'
  unused='asio_wheel::(virtual_time|prometheus)|wheel_core::step_clock|::pending_by_handler'
  unused+='|timing_wheel::check'
  if nm -C "$scratch/wheel" | grep -E "$unused"; then
    wrong 'a program with one timer has what it does not use'
  fi
  ! nm -uC "$library" 2>/dev/null | grep 'fmt::v' || wrong 'the library needs libfmt'
  if ((size)); then
    "$compiler" "${flags[@]}" steady.cpp -o "$scratch/steady"
    more=$(($(bytes "$scratch/wheel") - $(bytes "$scratch/steady")))
    echo "one timer on the wheel takes $more bytes more than a steady_timer"
    ((more <= 200 * 1024)) || wrong 'that is more than 200 KB'
  fi
else
  ! readelf -d "$library" | grep 'NEEDED.*libfmt' || wrong 'the library needs libfmt'
  ours='_ZNK?10asio_wheel|_ZT.N10asio_wheel|_ZT[hv].*N10asio_wheel' # as in src/exports.map
  shared='.*4asio.*(4top_|6value_|2id)E$|.*4asio5error.*8instance$'
  others=$(nm -D --defined-only "$library" | sed 's/.* //' | grep -Ev "^($ours|$shared)" || true)
  if [[ -n $others ]]; then
    c++filt <<<"$others"
    wrong 'the library exports names of others'
  fi
  "$compiler" "${flags[@]}" -DASIO_WHEEL_SHARED border.cpp "$library" -o "$scratch/border"
  LD_LIBRARY_PATH=${library%/*} "$scratch/border" || wrong 'program and library have not the same'
fi
((failures == 0))
