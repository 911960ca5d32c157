# Shell functions that install what a build needs on Debian 12 or 13; sourced by the scripts in test
# and examples.
# shellcheck shell=bash disable=SC2034

# Debian names Boost's packages after the version: each release has others.
boost=1.81
if grep -qx 'VERSION_ID="13"' /etc/os-release 2>/dev/null; then
  boost=1.88
fi
build_packages=(g++ cmake ninja-build "libboost$boost-dev" "libboost-test$boost-dev"
  "libboost-program-options$boost-dev" libfmt-dev pkg-config)
# What the examples are checked against: real servers, real load; and what it takes to talk to Redis
# and to test TLS.
peer_packages=(libhiredis-dev libssl-dev redis-server wrk nginx-light curl python3 iproute2)
# With which a test counts instructions.
count_packages=(valgrind python3-minimal)
clang_packages=(clang-16 libclang-rt-16-dev)
check_packages=(git clang-format-14 clang-tidy-16 doxygen python3-minimal yamllint "${build_packages[@]}")

say() {
  printf '== %s\n' "$*" | fold -s -w 79
}

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# show_progress: apt-get's output in short. On a terminal it is one line, which changes.
show_progress() {
  local line count=0 clear=''
  [[ ! -t 1 ]] || clear=$'\e[K'
  while IFS= read -r line; do
    case $line in
      'Need to get '* | 'Fetched '*) printf '%s   %s\n' "$clear" "$line" ;;
      Get:* | Unpacking* | 'Setting up'*)
        [[ $line != 'Setting up'* ]] || ((++count))
        [[ -z $clear ]] || printf '   %.76s%s\r' "$line" "$clear"
        ;;
    esac
  done
  printf '%s' "$clear"
  ((count == 0)) || printf '   %s packages set up\n' "$count"
}

# install_packages <package>...: asks nothing, and does not call apt if all are installed.
install_packages() {
  local package missing=() as_root=()
  if ! command -v apt-get >/dev/null; then
    say "this is no Debian, so nothing is installed. Needed is what these packages hold: $*"
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
  as_root+=(env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes)
  say "installing with apt-get: ${missing[*]}"
  # Debian's own packages install even if a third-party source is broken.
  "${as_root[@]}" apt-get update -q </dev/null | show_progress || say "apt-get update failed, trying without"
  "${as_root[@]}" apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=600 \
    -o Dpkg::Use-Pty=0 -o APT::Color=0 "${missing[@]}" </dev/null | show_progress ||
    fail "apt-get could not install: ${missing[*]}
(These are their names in Debian 12 and 13. Elsewhere, install what they hold by hand.)"
}

# Where this machine's own packages come from, unless MIRROR says otherwise.
debian_mirror() {
  echo "${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
    grep '/debian/$' | head -n 1)}"
}

# installed_boost [command]...: the version of the newest Boost that is installed, as 1.81; nothing if none is.
# The command is what dpkg-query is run by, in another Debian.
installed_boost() {
  # shellcheck disable=SC2016
  { "$@" dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'libboost1.*-dev' 2>/dev/null || true; } |
    sed -nE 's/^installed libboost(1[.][0-9]+)-dev$/\1/p' | sort -V | tail -n 1
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
