#!/usr/bin/env bash
# Breaks the library on purpose, one promise at a time, and has the tests find out; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=cmake/debian.sh
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/mutations/run.sh [mutation...]

Each file test/mutations/NAME.patch is a fault, with a line "Caught by: PROGRAM SUITE" at its top.
Copies the sources to build/mutations, builds these test programs there, with AddressSanitizer,
and runs the suites once as they are: they have to pass. Then applies one patch at a time, builds
again, and runs its suite: that has to fail, or to hang for longer than two minutes. Fails if a fault
goes unnoticed, or a patch does not fit the sources any more. Without a name: all of them. Takes a
minute for each. Installs the packages that are missing, as test/run.sh does. JOBS=n limits the compilers.
END
}

case ${1:-} in -h | --help) usage; exit ;; -*) usage >&2; exit 2 ;; esac
names=("$@")
if ((${#names[@]} == 0)); then
  for file in test/mutations/*.patch; do
    names+=("$(basename "$file" .patch)")
  done
fi
# Of each mutation, the program and the suite.
declare -A program_of=() suite_of=()
for name in "${names[@]}"; do
  [[ -f test/mutations/$name.patch ]] || fail "no such mutation: $name"
  read -r program suite < <(sed -n 's/^Caught by: //p' "test/mutations/$name.patch")
  [[ -n $suite ]] || fail "test/mutations/$name.patch does not say what it is caught by"
  program_of[$name]=$program suite_of[$name]=$suite
done

install_packages "${build_packages[@]}" patch

tree=$PWD/build/mutations
copy=$tree/source
mkdir -p "$copy"

# refresh: makes the copy as the sources are. What is the same keeps its time, so that little is
# compiled again.
refresh() {
  local file
  while IFS= read -r -d '' file; do
    cmp -s "$file" "$copy/$file" || cp --parents "$file" "$copy"
  done < <(find * -path build -prune -o -type f -print0)
  while IFS= read -r -d '' file; do
    [[ -f $file ]] || rm "$copy/$file"
  done < <(cd "$copy" && find * -type f -print0)
}

# build: the programs of all mutations, from the copy.
build() {
  cmake --build "$tree/build" --parallel "$(build_jobs)" --target "${programs[@]}" </dev/null
}

# passes <program> <suite>
passes() {
  timeout --kill-after=10 120 "$tree/build/test/$1" "--run_test=$2" --color_output=no </dev/null
}

mapfile -t programs < <(printf '%s\n' "${program_of[@]}" | sort -u)
say "as it is"
refresh
cmake -S "$copy" -B "$tree/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
  -DCMAKE_CXX_FLAGS="-fsanitize=address -fno-sanitize-recover=all" \
  -DASIO_WHEEL_BUILD_EXAMPLES=OFF -DASIO_WHEEL_BUILD_BENCHMARKS=OFF >"$tree/configure.log" 2>&1 ||
  fail "does not configure; see $tree/configure.log"
build >"$tree/build.log" || fail "does not build; see $tree/build.log"
for name in "${names[@]}"; do
  passes "${program_of[$name]}" "${suite_of[$name]}" >"$tree/test.log" 2>&1 ||
    fail "${program_of[$name]} ${suite_of[$name]} fails without a fault; see $tree/test.log"
done

unnoticed=0
for name in "${names[@]}"; do
  patch=$PWD/test/mutations/$name.patch
  patch -d "$copy" -p1 --fuzz=0 --batch --silent --dry-run <"$patch" || fail "$name does not fit"
  patch -d "$copy" -p1 --fuzz=0 --batch --silent <"$patch"
  # A fault that does not compile proves nothing.
  build >"$tree/build.log" 2>&1 || fail "$name does not build; see $tree/build.log"
  begin=$SECONDS status=0
  passes "${program_of[$name]}" "${suite_of[$name]}" >"$tree/$name.log" 2>&1 || status=$?
  refresh
  if ((status == 0)); then
    say "UNNOTICED: $name (${program_of[$name]} ${suite_of[$name]})"
    ((++unnoticed))
    continue
  fi
  found=$(grep -o 'in "[^"]*"' "$tree/$name.log" | head -n 1) || true
  ((status != 124)) || found="hangs"
  say "$name: caught in $((SECONDS - begin)) s: ${found:-exit code $status}"
done
((unnoticed == 0)) || fail "$unnoticed of ${#names[@]} faults go unnoticed"
say "${#names[@]} faults, each of them caught"
