# Shell functions that install what a build needs on Debian 12; sourced by the scripts in test and
# examples.
# shellcheck shell=bash disable=SC2034

build_packages=(g++ cmake ninja-build libboost1.81-dev libboost-test1.81-dev
  libboost-program-options1.81-dev libfmt-dev pkg-config)
# What the examples are checked against: real servers, real load.
peer_packages=(redis-server wrk nginx-light curl python3)
clang_packages=(clang-16 libclang-rt-16-dev)
check_packages=(git clang-format-14 clang-tidy-16 doxygen python3-minimal "${build_packages[@]}")

say() {
  printf '== %s\n' "$*"
}

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# install_packages <package>...: asks nothing, and leaves apt alone if all are there.
install_packages() {
  local package missing=() as_root=()
  if ! command -v apt-get >/dev/null; then
    say "this is no Debian: taking it that you have what these packages hold: $*"
    return
  fi
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    say "all packages are here already: $*"
    return
  fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "needs root or sudo to install: ${missing[*]}"
    as_root=(sudo)
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  say "installing with apt-get: ${missing[*]}"
  # A broken third-party source must not stand in the way of Debian's own packages.
  "${as_root[@]}" apt-get update -qq </dev/null || say "apt-get update failed, trying without"
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Use-Pty=0 -o APT::Color=0 "${missing[@]}" </dev/null >/dev/null ||
    fail "apt-get could not install: ${missing[*]}"
}

# Where this machine's own packages come from, unless MIRROR says otherwise.
debian_mirror() {
  echo "${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
    grep '/debian/$' | head -n 1)}"
}

# How many compilers to run: one per CPU, but each may need about 1 GiB for Asio's templates.
build_jobs() {
  local cpus memory
  cpus=$(nproc)
  memory=$(awk '/MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo 2>/dev/null || true)
  if [[ -n $memory ]] && ((memory < cpus)); then
    cpus=$((memory > 0 ? memory : 1))
  fi
  echo "${JOBS:-$cpus}"
}
