# Shell functions that run another project's tests twice: on one side as they are, on the other with our
# types in the place of Asio's. Sourced by the scripts in this folder.
# shellcheck shell=bash disable=SC2034
source cmake/debian.sh

peers=$PWD/build/peers
cxx=${CXX:-g++}
# Seconds that one compiler, and one test program, may take. BUSY=n for a machine that does much besides.
compile_limit=$((300 * ${BUSY:-1}))
run_limit=$((120 * ${BUSY:-1}))
flags=(-std=c++20 -O0 -w -pthread -DBOOST_ASIO_SEPARATE_COMPILATION)
includes=("-I$PWD/include")

# begin <suite> <package> <Debian's suite>: sets $source, where it is unpacked, and $work, an empty folder.
begin() {
  suite=$1
  source=$(test/peers/source.sh "$2" "$3")
  version="$2 $(<"$source/version")"
  work=$peers/$suite
  rm -rf --one-file-system "$work"
  mkdir -p "$work"/{control,exchanged}
  say "$suite, $version"
}

# take <path in the source>...: copies these to both sides.
take() {
  local side path
  for side in control exchanged; do
    for path in "$@"; do
      mkdir -p "$work/$side/$(dirname "$path")"
      cp -r "$source/$path" "$work/$side/$path"
    done
  done
}

# exchange <sed script> [path]: in all files of one side, or there.
exchange() {
  find "$work/exchanged/${2:-}" -type f -exec sed -E -i "$1" {} +
}

# changed <folder>: how many lines of it.
changed() {
  (cd "$work" && diff -rN "control/$1" "exchanged/$1" 2>/dev/null) | grep -c '^>' || true
}

# A sed script that exchanges the names, however they are qualified.
timers_and_deadlines='/^ *(#|\/\/|\*)/!{
  s/(::)?(boost::)?\b(asio|net)::(basic_waitable_timer|steady_timer|system_timer|high_resolution_timer)\b/asio_wheel::drop_in::\4/g
  s/(::)?(boost::)?\b(asio|net)::(cancel_after|cancel_at)\b/asio_wheel::\4/g
}'

# compile <result> <argument>...: a folder of headers that is named here comes before all others.
compile() {
  timeout "$compile_limit" "$cxx" "${flags[@]}" -o "$@" "${includes[@]}" >"$1.log" 2>&1 || {
    grep -m 5 -E 'error|undefined' "$1.log" >&2 || tail -n 5 "$1.log" >&2
    fail "does not compile; the log is $1.log"
  }
}

# build_libraries <folder of Boost's headers>: our library and Asio's compiled part, once for each Boost.
build_libraries() {
  local name
  name=$(basename "$(dirname "$1")")
  includes+=("-I$1")
  library=$peers/libraries/$name.a
  if [[ ! -e $library || $(find include src -newer "$library" -print -quit) ]]; then
    say "our library, and Asio's"
    mkdir -p "$peers/libraries"
    find src -name '*.cpp' | sort | sed "s|.*|#include \"$PWD/&\"|" >"$peers/libraries/$name.cpp"
    printf '#include <boost/asio%s/impl/src.hpp>\n' '' /ssl >"$peers/libraries/$name-asio.cpp"
    compile "$peers/libraries/$name.o" -c "$peers/libraries/$name.cpp"
    compile "$peers/libraries/$name-asio.o" -c "$peers/libraries/$name-asio.cpp"
    rm -f "$library"
    ar rcs "$library" "$peers/libraries/$name"{,-asio}.o
  fi
  libraries=("$library" -lfmt -lssl -lcrypto)
}

# precompile <side> <header>...: these, and ours, for all that is compiled on that side.
precompile() {
  local side=$1
  shift
  printf '#include <%s>\n' asio_wheel/{drop_in,cancel_after,virtual_time}.hpp "$@" >"$work/$side/prelude.hpp"
  side_flags=("-I$work/$side/include" -include "$work/$side/prelude.hpp")
  compile "$work/$side/prelude.hpp.gch" -x c++-header "${side_flags[0]}" "$work/$side/prelude.hpp"
}

# check_side <side> <program>: our timers are in those of one side, and in no other.
check_side() {
  local has=control
  ! grep -q asio_wheel7drop_in "$2" || has=exchanged
  [[ $has == "$1" ]] || fail "the wrong timers are in $2"
}

# run <side> <name> <argument>... <program>: a program of Boost.Test. Each of its cases is a line of
# $work/<side>.cases; so is a program that ends without a report.
run() {
  local side=$1 name=$2 status=0 said=$work/$1.$2.said
  shift 2
  check_side "$side" "${@: -1}"
  timeout "$run_limit" "$@" --report_level=detailed --report_sink="$said.report" >"$said" 2>&1 || status=$?
  sed -nE "s/^ *Test case \"([^\"]*)\" (.*[^:]):?$/$name\/\1 \2/p" "$said.report" |
    sed -E 's/ (has |was )?(passed|did not check any assertions)( with)?$/ passed/; s/ (has|was) / /' >"$said.cases"
  if [[ -s $said.cases ]]; then
    cat "$said.cases" >>"$work/$side.cases"
  else
    run_alone_result "$side" "$name" "$status"
  fi
}

# run_alone <side> <name> <argument>... <program>: a program that is a case by itself.
run_alone() {
  check_side "$1" "${@: -1}"
  run_case "$@"
}

# run_case <side> <name> <argument>...: a case that is a command by itself.
run_case() {
  local side=$1 name=$2 status=0
  shift 2
  timeout "$run_limit" "$@" >"$work/$side.${name//\//.}.said" 2>&1 || status=$?
  run_alone_result "$side" "$name" "$status"
}

run_alone_result() {
  case $3 in
    0) echo "$2 passed" ;;
    124) echo "$2 took too long" ;;
    *) echo "$2 failed, status $3" ;;
  esac >>"$work/$1.cases"
}

# passed <side>: "41 of 42".
passed() {
  printf '%s of %s' "$(grep -c ' passed$' "$work/$1.cases")" "$(wc -l <"$work/$1.cases")"
}

# compare [regular expression]: case by case. The differences that are expected match the expression.
compare() {
  local differences unexpected
  sort -o "$work/control.cases" "$work/control.cases"
  sort -o "$work/exchanged.cases" "$work/exchanged.cases"
  grep -q ' passed$' "$work/control.cases" || fail 'no case passed with the timer of Asio'
  differences=$(diff "$work/control.cases" "$work/exchanged.cases" | grep '^[<>]' || true)
  unexpected=$(grep -vE "${1:-^$}" <<<"$differences" || true)
  mkdir -p "$peers/rows"
  printf '| %s | %s | %s | %s | %s |\n' "$suite" "$version" "$(passed control)" "$(passed exchanged)" \
    "$(grep -c . <<<"$differences" || true)" | tee "$peers/rows/$suite"
  echo "   lines exchanged: $(changed include) of the headers, $(changed libs) of the tests"
  [[ -z $differences ]] || printf '%s\n' "$differences"
  [[ -z $unexpected ]] || fail 'differences that are not expected (<: control, >: exchanged)'
}
