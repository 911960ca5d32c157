#!/usr/bin/env bash
# Tests on other processors, another system and another standard library; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/platforms/cross.sh <platform>... [-Dname=value...]

Installs the packages that are missing (Debian 12; with sudo unless you are root; asks nothing),
compiles the library and its tests for each platform, and runs them where a test does not depend on
how fast the machine is:

  arm64 i386 s390x   with a cross compiler, run by qemu-user: other alignments and atomics, 32 bits,
                     and big-endian; on x86, qemu keeps x86's memory order
  windows            with mingw-w64, run by wine; without the tests that need POSIX
  libc++             with clang++-16 and its libc++ instead of libstdc++

The tests' libraries come as headers: Boost.Test and fmt are compiled along. What starts with -D
goes to CMake. JOBS=n limits the compilers. TARGETS="wheel_tests promise_tests ..." and TESTS=regex
choose what is built and run; default: the tests of wheel, engine and promises, and on
Windows those of timers and parity, too.
END
}

platforms=() definitions=()
for argument in "$@"; do
  case $argument in
    -h | --help) usage; exit ;;
    -D?*) definitions+=("$argument") ;;
    arm64 | i386 | s390x | windows | libc++) platforms+=("$argument") ;;
    *) usage >&2; fail "no such platform: $argument" ;;
  esac
done
((${#platforms[@]})) || { usage >&2; fail 'which platform?'; }

# Boost and fmt by headers alone, which are the same everywhere; those of this system beside them
# are not.
make_headers() {
  local headers=$PWD/build/platforms/headers
  mkdir -p "$headers/include"
  ln -sfn /usr/include/boost "$headers/include/boost"
  ln -sfn /usr/include/fmt "$headers/include/fmt"
  cp test/platforms/headers/* "$headers"
}

# settle <platform>: sets packages, options, programs and slow.
settle() {
  local prefix='' processor=''
  packages=() options=() programs=(wheel engine promise)
  # What qemu or wine cannot do, or what measures time.
  slow='promise\.(punctual|quiet|fair|no_hostages)|spin_lock'
  case $1 in
    arm64) prefix=aarch64-linux-gnu processor=aarch64 ;;
    i386)
      prefix=i686-linux-gnu processor=i386
      # In qemu-i386 a program with glibc's shared libraries hangs as it starts its first thread.
      options=(-DCMAKE_EXE_LINKER_FLAGS=-static)
      ;;
    s390x) prefix=s390x-linux-gnu processor=s390x ;;
    windows)
      packages=(g++-mingw-w64-x86-64-posix wine64)
      programs+=(timers parity)
      options=(-DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=x86_64
        -DCMAKE_CXX_COMPILER=x86_64-w64-mingw32-g++-posix
        "-DCMAKE_CROSSCOMPILING_EMULATOR=$PWD/test/platforms/wine.sh"
        -DCMAKE_EXE_LINKER_FLAGS=-static '-DCMAKE_CXX_FLAGS=-D_WIN32_WINNT=0x0A00 -Wa,-mbig-obj'
        -DCMAKE_CXX_FLAGS_DEBUG=-O1) # at -O0 the assembler says "file too big"
      ;;
    libc++)
      packages=(clang-16 libc++-16-dev libc++abi-16-dev)
      options=(-DCMAKE_CXX_COMPILER=clang++-16 -DCMAKE_CXX_FLAGS=-stdlib=libc++)
      slow='spin_lock'
      ;;
  esac
  if [[ -n $prefix ]]; then
    packages=("g++-$prefix" qemu-user)
    # qemu takes memory for itself, and maps anew elsewhere what was unmapped.
    slow+='|engine[.](op_)?memory'
    options+=(-DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=$processor"
      "-DCMAKE_CXX_COMPILER=$prefix-g++"
      "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-$processor;-L;/usr/$prefix")
  fi
  read -ra targets <<<"${TARGETS:-${programs[*]/%/_tests}}"
  tests=${TESTS:-^($(IFS='|' && echo "${programs[*]}"))[.]}
}

install_packages cmake ninja-build g++ libboost1.81-dev libfmt-dev
make_headers
for platform in "${platforms[@]}"; do
  settle "$platform"
  install_packages "${packages[@]}"
  build=build/platforms/$platform
  mkdir -p "$build"
  say "$platform: build"
  {
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
      "-DBoost_DIR=$PWD/build/platforms/headers" "-Dfmt_DIR=$PWD/build/platforms/headers" \
      -DASIO_WHEEL_WARNINGS_AS_ERRORS=ON -DASIO_WHEEL_BUILD_TESTS=ON -DASIO_WHEEL_INSTALL=OFF \
      -DASIO_WHEEL_BUILD_EXAMPLES=OFF -DASIO_WHEEL_BUILD_BENCHMARKS=OFF \
      "${options[@]}" "${definitions[@]}" &&
      cmake --build "$build" --parallel "$(build_jobs)" --target \
        "${targets[@]}"
  } >"$build.log" 2>&1 </dev/null || {
    grep -E 'error|warning|undefined|FAILED|CMake' "$build.log" | head -n 40 || true
    fail "$platform does not build; all of it: $build.log"
  }
  say "$platform: test"
  if [[ $platform == windows ]]; then
    test/abi/mingw.sh x86_64-w64-mingw32-g++-posix "$build/abi" build/platforms/headers/include
  fi
  ctest --test-dir "$build" --output-on-failure --no-tests=error --timeout 600 \
    --tests-regex "$tests" --exclude-regex "$slow" \
    </dev/null
done
