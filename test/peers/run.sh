#!/usr/bin/env bash
# Runs all of this folder, and prints the table of doc/platforms.md; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/peers/run.sh

Runs every suite of this folder, also after one has failed, and prints a table: the suite, its version,
how many of its cases pass with Asio's timers and with ours, and how many differ. Exits with status 1 if
one has failed. Meant for the night: it takes an hour and a half on two processors. The first time it
fetches 250 MB of Debian's source packages to build/peers. BUSY=n multiplies the time that each compiler
and each test program may take.
END
}

case ${1:-} in
  '') ;;
  -h | --help) usage; exit ;;
  *) usage >&2; fail "no such option: $1" ;;
esac

limit=$((3600 * ${BUSY:-1}))
failed=()
rm -rf build/peers/rows
while read -r script arguments; do
  # shellcheck disable=SC2086
  timeout "$limit" "test/peers/$script.sh" $arguments </dev/null || failed+=("$script $arguments")
done <<'END'
asio_timers boost1.81 bookworm
asio_timers boost1.88 trixie
mysql
redis
mqtt5 unit
mqtt5 integration
libtorrent
END

echo
echo '| suite | version | control | exchanged | differences |'
echo '|---|---|---|---|---|'
cat build/peers/rows/*
((${#failed[@]} == 0)) || { printf 'FAILED: %s\n' "${failed[@]}"; exit 1; }
