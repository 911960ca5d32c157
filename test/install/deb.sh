#!/usr/bin/env bash
# Makes the Debian package, installs it, and removes it; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/install/deb.sh

Installs the packages that are missing (Debian 12; with sudo unless you are
root; asks nothing), builds the library and makes its Debian package as README
says, installs it, builds and runs the consumer against it, and removes it.
END
}

case ${1:-} in
  '') ;;
  -h | --help) usage; exit ;;
  *) usage >&2; fail "no such option: $1" ;;
esac

package=libasio-wheel-dev
! is_installed "$package" || fail "$package is installed already"
as_root=()
((EUID == 0)) || as_root=(sudo)

install_packages "${build_packages[@]}" make dpkg-dev file
folder=build/package
rm -rf "$folder"
cmake --preset library </dev/null
cmake --build --preset library --parallel "$(build_jobs)" </dev/null
cpack --config build/library/CPackConfig.cmake -B "$folder"

say "installing $package"
trap '"${as_root[@]}" dpkg --purge "$package" >/dev/null' EXIT
"${as_root[@]}" apt-get install -y -qq "$PWD/$folder/$package"_*.deb </dev/null >/dev/null

ctest --build-and-test test/install "$folder/consumer" --build-generator Ninja \
  --test-command consumer
