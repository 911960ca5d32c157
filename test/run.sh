#!/usr/bin/env bash
# Installs what the tests need, builds and runs them; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/run.sh [preset...] [-Dname=value...]

Installs the packages that are missing (Debian 12 or 13; with sudo unless you
are root; asks nothing), then configures, builds and tests each preset: dev,
release, asan-ubsan, tsan, clang-16.
Debian 13 has no clang 16, which asan-ubsan and clang-16 take.
Without a preset: release. Options that begin with -D go to CMake. JOBS=n limits
the compilers.
END
}

presets=() definitions=()
for argument in "$@"; do
  case $argument in
    -h | --help) usage; exit ;;
    -D?*) definitions+=("$argument") ;;
    dev | release | asan-ubsan | tsan | clang-16) presets+=("$argument") ;;
    *) usage >&2; fail "no such preset: $argument" ;;
  esac
done
((${#presets[@]})) || presets=(release)

packages=("${build_packages[@]}" "${peer_packages[@]}")
[[ " ${presets[*]} " != *" release "* ]] || packages+=("${count_packages[@]}")
[[ " ${presets[*]} " =~ " clang-16 "|" asan-ubsan " ]] && packages+=("${clang_packages[@]}")
install_packages "${packages[@]}"

# ThreadSanitizer of GCC 12 gives up where the kernel spreads mappings over more bits than it knows.
fixed_addresses=()
if setarch --addr-no-randomize true 2>/dev/null; then
  fixed_addresses=(setarch --addr-no-randomize)
fi

for preset in "${presets[@]}"; do
  say "$preset: configure and build"
  cmake --preset "$preset" "${definitions[@]}" </dev/null
  cmake --build --preset "$preset" --parallel "$(build_jobs)" </dev/null
  say "$preset: test"
  runner=()
  [[ $preset == tsan ]] && runner=("${fixed_addresses[@]}")
  "${runner[@]}" ctest --preset "$preset" --parallel "$(build_jobs)" </dev/null
done
