#!/usr/bin/env bash
# libtorrent's tests of sessions, with Asio's timers and with ours; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source test/peers/common.sh

usage() {
  cat <<'END'
Usage: test/peers/libtorrent.sh [test...]

Takes libtorrent from its source package in Debian 13, and Boost from that of boost1.88, builds it without
TLS and with its assertions, and runs its tests that start a session or another part with a timer twice: as
they are, and with asio_wheel::drop_in::high_resolution_timer as its deadline_timer. Each case is a run of
its own, in a network namespace that has a loopback alone. Leaves out the tests of parts that use no timer,
those of TLS, and the simulations, whose timer belongs to their simulator. Prints a row of the table in
doc/platforms.md and fails at a difference. With names of tests (session, tracker), only these.
END
}

case ${1:-} in
  -h | --help) usage; exit ;;
  -*) usage >&2; fail "no such option: $1" ;;
esac
tests=("$@")
(($#)) || tests=(add_torrent auto_unchoke checking dht direct_dht fast_extension http_connection lsd magnet
  pe_crypto peer_classes priority privacy read_piece recheck remap_files remove_torrent resume session
  time_critical torrent tracker transfer upnp url_seed utp
  web_seed{,_ban,_chunked,_http,_http_pw,_redirect,_socks4,_socks5,_socks5_no_peers,_socks5_pw})

install_packages g++ libfmt-dev libssl-dev python3-minimal iproute2
boost_source=$(test/peers/source.sh boost1.88 trixie)
begin libtorrent libtorrent-rasterbar trixie
take include src test
exchange 's/<boost\/asio\/high_resolution_timer.hpp>/<asio_wheel\/drop_in.hpp>/
  s/= boost::asio::(high_resolution_timer;)/= asio_wheel::drop_in::\1/' include/libtorrent/deadline_timer.hpp
# A handler of theirs brings its memory, of the size of Asio's wait.
exchange 's/(tick_handler_max_size = tracking [+]) 136;/\1 200;/' include/libtorrent/aux_/allocating_handler.hpp
build_libraries "$boost_source/include"
includes+=("-I$source/deps/try_signal")
flags+=(-DBOOST_ASIO_NO_DEPRECATED -DBOOST_ASIO_ENABLE_CANCELIO -DTORRENT_USE_ASSERTS=1)

# shellcheck disable=SC2016
alone=(unshare --map-root-user --net --pid --fork --kill-child -- bash -c '
  ip link set lo up multicast on
  ip route add 224.0.0.0/4 dev lo
  cd "$1"
  "${@:2}"' alone)

# compile_objects <name> <source>...: sets $objects. Two sources have names of the C library that the
# precompiled headers hide.
compile_objects() {
  local folder=$work/$side/$1 file object prelude
  shift
  mkdir "$folder"
  objects=()
  for file in "$@"; do
    prelude=("${side_flags[@]}")
    [[ $file != */@(copy_file|drive_info).cpp ]] || prelude=("${side_flags[0]}")
    object=$folder/$(basename "$file" .cpp).o
    compile "$object" "${prelude[@]}" -c "$file"
    objects+=("$object")
  done
}

for side in control exchanged; do
  top=$work/$side
  precompile "$side" libtorrent/{aux_/session_impl,torrent,peer_connection}.hpp
  compile_objects library "$top"/src/{,kademlia/,ed25519/}*.cpp \
    "$source"/deps/try_signal/{signal_error_code,try_signal}.cpp
  ar rcs "$top/library.a" "${objects[@]}"
  compile_objects helpers \
    "$top"/test/{broadcast_socket,dht_server,main,make_torrent,peer_server,print_alerts,settings}.cpp \
    "$top"/test/{setup_transfer,swarm_suite,test,test_utils,udp_tracker,web_seed_suite}.cpp
  for name in "${tests[@]}"; do
    compile "$top/$name" "${side_flags[@]}" "$top/test/test_$name.cpp" "${objects[@]}" "$top/library.a" \
      "${libraries[@]}"
    check_side "$side" "$top/$name"
    for case in $("$top/$name" --list | sed -n 's/^ - //p'); do
      run_case "$side" "$name/${case##*.}" "${alone[@]}" "$top/test" "$top/$name" "$case"
    done
  done
done
# These race in themselves: they remove a torrent twice, and fail if the first has ended by then.
compare ' remove_torrent/remove_torrent(_and_files)?_twice '
