#!/usr/bin/env bash
# Boost.Beast's own programs and tests, with our stream in the place of its own; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=cmake/debian.sh
source cmake/debian.sh

usage() {
  cat <<'END'
Usage: test/platforms/beast.sh [FOLDER]

Takes Boost.Beast from the source package of boost1.81 in Debian 12. With FOLDER, its source is there
already, and is that of the Boost that is installed: debian.sh runs this in a newer Debian. Copies its
example programs with an asynchronous stream to build/beast, puts asio_wheel::tcp_stream in the place of
beast::tcp_stream, compiles them and has every client talk to every server of its protocol, over
127.0.0.1. Then runs the test of beast::basic_stream, as it is and with ours. Prints a line for each, and
fails unless all is as expected. STREAM_ONLY=1 leaves out the example programs.

Three things are changed besides: the clients do not check certificates, which the servers have made
themselves; of the test is left out what is about rate policies, which our stream has not, and what
needs the Internet; and where a read into an empty buffer is to time out, ours is to succeed, since
ssl::stream would lose bytes otherwise. JOBS=n limits the compilers. CXX=clang++-16 takes another.
END
}

if (($# > 1)) || [[ ${1:-} == -* ]]; then
  usage
  [[ $1 == -h || $1 == --help ]] && exit || exit 2
fi
beast=$(realpath "${1:-$(test/peers/source.sh boost1.81 bookworm)/libs/beast}")
[[ -d $beast/example/http && -f $beast/test/beast/core/basic_stream.cpp ]] ||
  fail "no source of Boost.Beast in $beast"

# Of the newest Boost that is installed, or of Debian 12's.
boost=$(installed_boost)
install_packages g++ libfmt-dev libssl-dev "libboost"{,-context,-coroutine}"${boost:-1.81}-dev"

cxx=${CXX:-g++}
out=$PWD/build/beast
rm -rf "$out"
mkdir -p "$out/bin" "$out/common"

# Of the directory <kind>/<side>/<name>, the program is called <kind>_<side>_<name>.
ours=(http/client/{async,async-ssl,awaitable,coro,coro-ssl}
  http/server/{async,async-ssl,awaitable,coro,coro-ssl,flex,stackless,stackless-ssl}
  websocket/client/{async,async-ssl,awaitable,coro,coro-ssl}
  websocket/server/{async,async-ssl,awaitable,coro,coro-ssl,stackless,stackless-ssl}
  advanced/server{,-flex,-flex-awaitable})
# Newer Boosts have it, too.
[[ ! -e $beast/example/http/client/awaitable-ssl ]] || ours+=(http/client/awaitable-ssl)

[[ -z ${STREAM_ONLY:-} ]] || ours=()

cat >"$out/prelude.hpp" <<'END'
#include <boost/asio.hpp>
#include <boost/asio/spawn.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <list>
#include <asio_wheel.hpp>
#include <asio_wheel/beast.hpp>
END
flags=(-std=c++20 -O0 -w -pthread "-I$PWD/include" "-I$beast/test/extras/include" "-I$beast")
libraries=("$out/libasio_wheel.a" -lfmt -lssl -lcrypto -lboost_coroutine -lboost_context)
export cxx out
export flag_text="${flags[*]}" library_text="${libraries[*]}"

say "the library, and what all programs include"
for source in $(find src -name '*.cpp' | sort); do printf '#include "%s"\n' "$PWD/$source"; done >"$out/library.cpp"
"$cxx" "${flags[@]}" -c "$out/library.cpp" -o "$out/library.o"
ar rcs "$out/libasio_wheel.a" "$out/library.o"
"$cxx" "${flags[@]}" -x c++-header "$out/prelude.hpp" -o "$out/prelude.hpp.gch"

# exchange <file>: with our stream.
exchange() {
  sed -e '/^ *#/!s/\bbeast::tcp_stream\b/asio_wheel::tcp_stream/g' \
    -e 's/ssl::verify_peer/ssl::verify_none/' "$1"
}

# compile <name> <source>...: to bin/<name>; what the compiler has to say, in <name>.log.
compile() {
  local name=$1
  shift
  # shellcheck disable=SC2086
  "$cxx" $flag_text -include "$out/prelude.hpp" "$@" -o "$out/bin/$name" $library_text \
    >"$out/$name.log" 2>&1 || printf 'does not compile: %s: %s\n' "$name" "$(grep -m1 error "$out/$name.log")"
}
export -f compile

say "${#ours[@]} programs"
for program in "${ours[@]}"; do
  name=${program//\//_}
  mkdir "$out/$name"
  exchange "$beast/example/$program"/*.cpp >"$out/$name/$name.cpp"
  grep -q asio_wheel:: "$out/$name/$name.cpp" || fail "no stream to exchange in $program"
  printf '%s\0%s\0' "$name" "$out/$name/$name.cpp"
done | xargs -0 -r -n 2 -P "$(build_jobs)" bash -c 'compile "$@"' _ | tee "$out/failures"

site=$out/site
mkdir "$site"
echo 'a page of Beast' >"$site/page.html"
port=0
# free_port: sets $port to one that nobody listens on.
free_port() {
  while true; do
    port=$((10000 + RANDOM % 20000))
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return 0
  done
}

# With Beast's own stream, advanced_server-flex-awaitable goes on writing behind the end of TLS, too; and
# the http_client_async-ssl of newer Boosts reports that all is well as if it was an error.
fault_of_beast='shutdown: (application data after close notify|Success)'

# talk <server> <client> <what the answer has to hold> <argument of client>...
passed=0
talk() {
  local server=$1 client=$2 expected=$3 answer
  shift 3
  [[ -x $out/bin/$client ]] || return 0
  if answer=$(timeout 20 "$out/bin/$client" 127.0.0.1 "$port" "$@" 2>&1) && [[ $answer == *"$expected"* ]] &&
    ! grep -Ev "^$fault_of_beast" <<<"${answer#*"$expected"}" | grep -qE '^(Error|[a-z]+): '; then
    passed=$((passed + 1))
  else
    printf 'FAILED: %s with %s: %s\n' "$server" "$client" "$(tail -n 2 <<<"$answer")" | tee -a "$out/failures"
  fi
}

# is_of <tls|plain> <name>
is_of() {
  if [[ $1 == tls ]]; then [[ $2 == *ssl* ]]; else [[ $2 != *ssl* ]]; fi
}

for server in "$out"/bin/*server*; do
  [[ -x $server ]] || continue
  name=${server##*/}
  free_port
  case $name in
    websocket*) arguments=(127.0.0.1 "$port" 2) ;;
    *) arguments=(127.0.0.1 "$port" "$site" 2) ;;
  esac
  setpriv --pdeathsig KILL "$server" "${arguments[@]}" >"$out/$name.said" 2>&1 &
  process=$!
  for ((tries = 0; tries < 100; ++tries)); do
    (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
    sleep 0.1
  done
  for security in plain tls; do
    # Those that find out by themselves whether it is TLS.
    [[ $name == *flex* ]] || is_of "$security" "$name" || continue
    for client in "$out"/bin/{http,websocket}_client_*; do
      client=${client##*/}
      is_of "$security" "$client" || continue
      case $name:$client in
        websocket*:websocket* | advanced*:websocket*)
          talk "$name" "$client" 'a word to be echoed' 'a word to be echoed'
          ;;
        http*:http* | advanced*:http*) talk "$name" "$client" 'a page of Beast' /page.html ;;
      esac
    done
  done
  kill -KILL "$process"
  wait "$process" 2>/dev/null || true
done
say "$passed conversations went well"

say "the test of basic_stream, first with Beast's own"
cat >"$out/exchanged.hpp" <<'END'
#include <asio_wheel/beast.hpp>
namespace boost::beast {
template <class Protocol, class Executor = net::any_io_executor, class Policy = unlimited_rate_policy>
using wheel_stream = asio_wheel::timed_stream<net::basic_stream_socket<Protocol, Executor>>;
}  // namespace boost::beast
END
mkdir -p "$out"/core/{control,exchanged}
echo '#include <boost/beast/_experimental/unit_test/main.ipp>' >"$out/core/main.cpp"
sed -e '/^ *\/\/ rate policies/,/^    }/{/^    }/!d}' "$beast/test/beast/core/basic_stream.cpp" \
  >"$out/core/control/basic_stream.cpp"
# test_sync_stream() takes the address of members that are other templates here; and there is a condition of
# connect() that Asio itself could not call, since it would change the error.
# A read into an empty buffer does not time out if the deadline has passed: ssl::stream would lose bytes.
sed -e '/^ *#/!s/\bbasic_stream</wheel_stream</g' \
  -e '/^ *#/!s/\btcp_stream\b/asio_wheel::tcp_stream/g' \
  -e 's/\berror::timeout/net::error::timed_out/g' \
  -e 's/test_sync_stream</test_async_stream</' -e 's/\[\](error_code&,/[](error_code const\&,/' \
  -e '/async_read_some(net::mutable_buffer{},$/{n;s/error::timeout/{}/}' \
  "$out/core/control/basic_stream.cpp" >"$out/core/exchanged/basic_stream.cpp"
for side in control exchanged; do
  compile "basic_stream_$side" -include "$out/exchanged.hpp" "-I$beast/test/beast/core" \
    "$out/core/$side/basic_stream.cpp" "$out/core/main.cpp" | tee -a "$out/failures"
  [[ -x $out/bin/basic_stream_$side ]] || continue
  timeout 100 "$out/bin/basic_stream_$side" | tee "$out/basic_stream_$side.said" || echo FAILED >>"$out/failures"
done

[[ ! -s $out/failures ]] || fail "not as expected; the logs are in $out"
say "all is well"
