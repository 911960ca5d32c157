#!/usr/bin/env bash
# Builds and tests the library in a newer Debian, with that one's compilers and Boost; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/platforms/debian.sh <suite> [option...]

Makes a Debian <suite> (trixie, sid, ...) in build/platforms/<suite> with debootstrap, copies the
sources into it, builds them there and runs ctest. What it mounts and starts is in namespaces of its
own, and ends with it. Needs root; about 3 GiB of disk; the debootstrap and what was built are kept
for the next time.

  --clang             with that Debian's clang++, not its g++
  --asio=standalone   with its libasio-dev, not its Boost; with g++, because Clang does not take the tests'
                      "namespace asio = boost::asio" where that is ::asio
  --targets="..."     builds only these; default: the tests of wheel, engine and timers, promises,
                      parity, and on Boost those of tokens, Boost's libraries, Beast
                      and TLS
  --tests=REGEX       runs only the tests whose names match; default: those of the same
  --all               builds all and runs the whole suite, the examples with their peers included. These are
                      compiled without a precompiled header, so each includes what it needs
  --beast             runs test/platforms/beast.sh there instead, with the source of that Debian's Boost
  -Dname=value        goes to CMake
  --expired           takes package lists that have expired, from a mirror that is behind; they are still
                      checked for their signature
  --if-possible       says so and succeeds where no such Debian can be made: without root or namespaces,
                      or if its packages cannot be had. What is built or tested and fails, fails
  --root-only         stops when the Debian and its packages are there
  --remove            removes it instead

MIRROR=<address> is where the packages come from; JOBS=n limits the compilers; OPTIMISE=-O0 makes them
faster.
END
}

suite='' compiler=g++ asio=boost root_only=0 remove=0 expired=0 if_possible=0 beast=0
targets='' tests=''
definitions=()
for argument in "$@"; do
  case $argument in
    -h | --help) usage; exit ;;
    --clang) compiler=clang++ ;;
    --asio=boost | --asio=standalone) asio=${argument#--asio=} ;;
    --tests=?*) tests=${argument#--tests=} ;;
    --targets=?*) targets=${argument#--targets=} ;;
    --all) targets=all tests=. ;;
    --beast) beast=1 ;;
    -D?*) definitions+=("$argument") ;;
    --expired) expired=1 ;;
    --if-possible) if_possible=1 ;;
    --root-only) root_only=1 ;;
    --remove) remove=1 ;;
    -*) usage >&2; fail "no such option: $argument" ;;
    *) suite=$argument ;;
  esac
done
[[ $compiler$asio != clang++standalone ]] || fail 'the tests need g++ on the standalone Asio'
[[ $suite =~ ^[a-z]+$ ]] || { usage >&2; fail 'which suite?'; }

# impossible <why>: ends, with success if that is no fault here.
impossible() {
  ((if_possible)) || fail "$*"
  printf "== Debian %s cannot be made here, and is not tested: %s\n" "$suite" "$*"
  exit 0
}
((EUID == 0)) || impossible 'needs root, for debootstrap and chroot'
unshare --mount --pid --fork -- mount --make-rprivate / 2>/dev/null || impossible 'no namespaces'

root=$PWD/build/platforms/$suite
programs=(wheel engine timers promise parity)
[[ $asio == standalone ]] || programs+=(tokens library beast tls)
targets=${targets:-${programs[*]/%/_tests}}
tests=${tests:-^($(IFS='|' && echo "${programs[*]}"))([.]|\$)}

if ((remove)); then
  rm -rf --one-file-system "$root"
  exit
fi

mirror=$(debian_mirror)
packages=(g++ cmake ninja-build pkg-config libfmt-dev libasio-dev libssl-dev redis-server
  mariadb-server-core)
[[ $compiler == g++ ]] || packages+=(clang)
# For the examples and what is built and installed besides.
[[ $targets != all ]] ||
  packages+=(dpkg-dev file git libhiredis-dev nginx-light wrk curl python3 ca-certificates)
# Of the newest Boost that it has.
for part in '' -test -program-options -coroutine -context -charconv -cobalt -json; do
  packages+=("libboost${part}BOOST-dev")
done
# On which trixie's -dev package forgets to depend.
packages+=(libboost-charconvBOOST.0)

if [[ ! -e $root/.complete ]]; then
  install_packages debootstrap
  say "debootstrap of $suite in $root"
  rm -rf --one-file-system "$root"
  mkdir -p "$root"
  unshare --mount --pid --fork --kill-child -- \
    debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 </dev/null ||
    impossible "debootstrap failed; its log: $root.log"
  # No service starts in there, and each package that this Debian does not have is left out.
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod +x "$root/usr/sbin/policy-rc.d"
  touch "$root/.complete"
fi

# inside <command>...: in the new Debian, with mounts and processes that end with the command.
inside() {
  unshare --mount --pid --fork --kill-child -- bash -c '
    set -e
    mount --make-rprivate /
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    root=$1
    shift
    exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
      DEBIAN_FRONTEND=noninteractive JOBS="$JOBS" "$@"' inside "$root" "$@" </dev/null
}
JOBS=$(build_jobs)
export JOBS

cp /etc/resolv.conf "$root/etc/resolv.conf"
# The way to the mirror, if it is by a proxy.
apt-config dump | grep -E '^Acquire::(http|https)::' >"$root/etc/apt/apt.conf.d/99way" || true
if ((expired)); then
  echo 'Acquire::Check-Valid-Until "false";' >>"$root/etc/apt/apt.conf.d/99way"
fi
say "packages of $suite"
# shellcheck disable=SC2016
inside bash -c '
  set -e
  apt-get update -qq
  newest=$(apt-cache pkgnames libboost1. | sed -nE "s/^libboost(1[.][0-9]+)-dev$/\1/p" | sort -V | tail -n 1)
  for package in "${@/BOOST/$newest}"; do
    if apt-cache show --no-all-versions "$package" >/dev/null 2>&1; then
      found+=("$package")
    else
      echo "$package is not in this Debian"
    fi
  done
  apt-get install -y -qq --no-install-recommends "${found[@]}" >/var/log/install.log 2>&1 || {
    tail -n 20 /var/log/install.log
    exit 1
  }
  apt-get clean
  dpkg-query -W -f "\${Package} \${Version}\n" "libboost$newest-dev" libasio-dev libfmt-dev "$1"
' install "${packages[@]}" || impossible 'its packages cannot be installed'
((root_only == 0)) || exit 0

say 'sources'
mkdir -p "$root/src"
find "$root/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git ls-files -z | tar --null --files-from=- -c | tar -x -C "$root/src"

if ((beast)); then
  rm -rf "$root/beast"
  cp -r "$(MIRROR=$mirror test/peers/source.sh "boost$(installed_boost inside)" "$suite")/libs/beast" \
    "$root/beast"
  inside /src/test/platforms/beast.sh /beast
  exit
fi

say "build and test: $compiler, Asio: $asio"
# shellcheck disable=SC2016
inside bash -c '
  set -e
  cd /src
  tests=$1 compiler=$2 optimise=$3 build=build/$2-$4
  read -ra targets <<<"$5"
  mkdir -p "$build"
  log=$build/log
  cmake --fresh -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG="$optimise" \
    -DCMAKE_CXX_COMPILER="$compiler" -DASIO_WHEEL_ASIO="$4" -DASIO_WHEEL_WARNINGS_AS_ERRORS=ON \
    -DASIO_WHEEL_BUILD_BENCHMARKS=OFF "${@:6}" >"$log" 2>&1 || { cat "$log"; exit 1; }
  cmake --build "$build" --parallel "$JOBS" --target "${targets[@]}" -- -k 0 >>"$log" 2>&1 || {
    grep -E "error|warning|FAILED" "$log" | head -n 40
    exit 1
  }
  ctest --test-dir "$build" --tests-regex "$tests" --output-on-failure --no-tests=error \
    --timeout 600 --parallel "$JOBS"
' build "$tests" "$compiler" "${OPTIMISE--O1}" "$asio" "$targets" "${definitions[@]}"
