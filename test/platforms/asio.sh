#!/usr/bin/env bash
# Fetches the standalone Asio that this Debian does not have yet; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/platforms/asio.sh [suite]

Unpacks libasio-dev of that Debian suite (trixie without one) to build/platforms/asio-<suite>, and
prints the folder that holds asio.hpp there. Installs nothing, needs no root, fetches it once.

  cmake -S . -B build/standalone -DASIO_WHEEL_ASIO=standalone \
    -DASIO_WHEEL_ASIO_INCLUDE_DIR="$(test/platforms/asio.sh)"
END
}

suite=${1:-trixie}
case $suite in
  -h | --help) usage; exit ;;
  [a-z]*) ;;
  *) usage >&2; fail "no such suite: $suite" ;;
esac

folder=$PWD/build/platforms/asio-$suite
if [[ ! -e $folder/usr/include/asio.hpp ]]; then
  rm -rf "$folder"
  mkdir -p "$folder"/apt/{lists/partial,cache/archives/partial}
  # An apt of its own, which knows this suite and nothing else.
  mirror=$(debian_mirror)
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keyring] $mirror $suite main" >"$folder/apt/sources.list"
  options=(-qq -o "Dir::Etc::SourceList=$folder/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$folder/apt/lists" -o "Dir::Cache=$folder/apt/cache"
    -o APT::Sandbox::User=)
  (
    cd "$folder"
    apt-get "${options[@]}" update
    apt-get "${options[@]}" download libasio-dev
  ) >"$folder/log" 2>&1 </dev/null || { cat "$folder/log" >&2; fail 'could not fetch libasio-dev'; }
  dpkg-deb --extract "$folder"/libasio-dev_*.deb "$folder"
  rm -rf "$folder/apt"
fi
echo "$folder/usr/include"
