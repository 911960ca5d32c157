#!/usr/bin/env bash
# Runs the checks that need no build; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/check.sh [check...]

Installs the packages that are missing (Debian 12; with sudo unless you are
root; asks nothing), then checks, without a check named all of them:

  format     the sources are formatted by clang-format
  links      what the Markdown files link to exists, headings included
  lines      no line of them is longer than 110, but for tables and pictures
  pictures   the guide's pictures are those that doc/pictures.py draws
  reference  Doxygen has nothing to say about the comments on public names
  workflow   yamllint has nothing to say about .github
  tidy       clang-tidy finds nothing in src and the headers
END
}

check_format() {
  git ls-files '*.cpp' '*.hpp' | xargs clang-format-14 --dry-run --Werror
}

check_links() {
  test/links.py
}

check_lines() {
  local long
  long=$(git ls-files '*.md' | LC_ALL=C.UTF-8 xargs grep -nHE '^.{111}' |
    grep -vE '^[^:]*:[0-9]+: *(\||!\[|<!--)' || true)
  [[ -z $long ]] || fail "longer than 110: $long"
}

check_pictures() {
  python3 doc/pictures.py --check
}

check_reference() {
  local header
  while read -r header; do
    grep -q "include/$header" doc/Doxyfile || fail "doc/Doxyfile does not list $header"
  done < <(sed -n '/detail/d; s/^#include <\(.*\)>$/\1/p' include/asio_wheel.hpp)
  mkdir -p build
  doxygen doc/Doxyfile
}

check_workflow() {
  yamllint --strict -d '{extends: default, rules: {line-length: {max: 110}}}' .github
}

# As one unit, as they are built: Asio costs more to parse than all of them.
check_tidy() {
  local unit=build/tidy/sources.cpp
  mkdir -p build/tidy
  git ls-files 'src/*.cpp' | sed "s,.*,#include \"$PWD/&\"," >"$unit"
  printf '#include <%s>\n' asio_wheel.hpp asio_wheel/fmt.hpp >>"$unit"
  clang-tidy-16 --quiet "$unit" -- -std=c++20 -Iinclude
}

checks=()
for argument in "$@"; do
  case $argument in
    -h | --help) usage; exit ;;
    format | links | lines | pictures | reference | workflow | tidy) checks+=("$argument") ;;
    *) usage >&2; fail "no such check: $argument" ;;
  esac
done
((${#checks[@]})) || checks=(format links lines pictures reference workflow tidy)

install_packages "${check_packages[@]}"
for check in "${checks[@]}"; do
  say "$check"
  "check_$check"
done
