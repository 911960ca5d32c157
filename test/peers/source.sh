#!/usr/bin/env bash
# Unpacks a Debian source package; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=cmake/debian.sh
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/peers/source.sh PACKAGE SUITE

Fetches the source package of that Debian suite (bookworm, trixie, sid ...), unpacks it without its
documents and without Debian's changes to build/peers/sources/PACKAGE-SUITE, and prints that folder. The
file `version` in there has Debian's version. Fetches it once; installs nothing, needs no root.

Of Boost it takes the headers, which are gathered in the folder `include`, and the sources, tests and
examples of those libraries that are needed here.
END
}

if (($# != 2)) || [[ $1 == -* ]]; then
  usage
  [[ ${1:-} == -h || ${1:-} == --help ]] && exit || exit 2
fi
package=$1 suite=$2
folder=$PWD/build/peers/sources/$package-$suite

# fetch: the archive, by an apt of its own, which knows the sources of this suite alone.
fetch() {
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  local options=(-qq -o "Dir::Etc::SourceList=$PWD/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt/cache" -o APT::Sandbox::User=)
  mkdir -p apt/{lists/partial,cache/archives/partial}
  echo "deb-src [signed-by=$keyring] $(debian_mirror) $suite main" >apt/sources.list
  apt-get "${options[@]}" update
  apt-get "${options[@]}" source --download-only "$package"
}

# unpack: what is needed of the archive.
unpack() {
  local wanted=/
  if [[ $package == boost* ]]; then
    wanted='^[^/]+/(boost/|libs/.*/include/|libs/(asio|beast|charconv|mqtt5|mysql|redis)/(src|test|example)/)'
  fi
  tar -tf "$package"_*.orig.tar.* | grep -E "$wanted" | grep -vE '/$|/doc/' >.members
  tar -xf "$package"_*.orig.tar.* --strip-components=1 --files-from=.members
  if [[ -d libs/asio/include ]]; then
    mkdir include
    cp -rl libs/*/include/* libs/numeric/*/include/* include
  elif [[ -d boost ]]; then
    mkdir include
    mv boost include
  fi
}

if [[ ! -e $folder/version ]]; then
  say "the source of $package in Debian $suite" >&2
  rm -rf --one-file-system "$folder"
  mkdir -p "$folder"
  cd "$folder"
  exec 3>&1 4>&2 >"$folder.log" 2>&1 </dev/null
  trap '[[ -e version ]] || { cat "$folder.log" >&4; echo "could not fetch $package" >&4; }' EXIT
  fetch
  unpack
  sed -n 's/^Version: //p' "$package"_*.dsc | head -n 1 >.version
  rm -rf apt .members "$package"_*
  mv .version version
  exec >&3 2>&4
fi
echo "$folder"
