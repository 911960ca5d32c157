#!/usr/bin/env bash
# Boost.MySQL's tests of its connection pool, with Asio's timers and with ours; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source test/peers/common.sh

usage() {
  cat <<'END'
Usage: test/peers/mysql.sh

Takes Boost.MySQL from the source package of boost1.88 in Debian 13 and runs the unit tests of its
connection pool twice: as they are, on asio::basic_waitable_timer with their mock clock, and with
asio_wheel::drop_in::basic_waitable_timer, asio_wheel::cancel_after and asio_wheel::virtual_time. No
server is needed. Prints a row of the table in doc/platforms.md and fails at a difference.
END
}

case ${1:-} in
  '') ;;
  -h | --help) usage; exit ;;
  *) usage >&2; fail "no such option: $1" ;;
esac

begin mysql boost1.88 trixie
take include/boost/mysql include/boost/mysql.hpp libs/mysql/test/{common,unit}
exchange "$timers_and_deadlines"
# Where a deadline lives on a timer of Asio, the timer's cancel() cancels the operation, too, and the pool
# ends by that. Here that takes a signal.
exchange 's/(cancel_after\(timer_, timeout, )(std::move\(self\))/\1asio::bind_cancellation_slot(cancel_.slot(), \2)/
  s/^    timer_type timer_;/&\
    asio::cancellation_signal cancel_;/
  s/^        timer_[.]cancel\(\);/&\
        cancel_.emit(asio::cancellation_type_t::terminal);/' \
  include/boost/mysql/impl/internal/connection_pool/connection_node.hpp
# Their clock, which Asio has to poll, and our virtual time, which a cancel_after() follows, too.
exchange 's/\bmock_clock::advance_time_by\(/fix.time.advance(/
  /^using mock_(node|pool) /s/\bmock_clock\b/std::chrono::steady_clock/
  s/^class fixture : public io_context_fixture$/struct time_fixture : io_context_fixture {\
    asio_wheel::virtual_time time{asio_wheel::use_wheel(ctx)};\
    time_fixture() { time.align(); ctx.restart(); }\
};\
class fixture : public time_fixture/' \
  libs/mysql/test/unit/test/connection_pool/connection_pool_impl.cpp
build_libraries "$source/include"
flags+=(-DBOOST_MYSQL_SEPARATE_COMPILATION -DBOOST_TEST_NO_LIB)
flags+=("-I$work/control/libs/mysql/test/common/include")
cat >"$work/main.cpp" <<'END'
#define BOOST_TEST_MODULE pool
#include <boost/test/included/unit_test.hpp>
END
cat "$source"/libs/charconv/src/{from,to}_chars.cpp >"$work/charconv.cpp"
compile "$work/main.o" -c "$work/main.cpp"
compile "$work/charconv.o" "-I$source/libs/charconv/src" -c "$work/charconv.cpp"

for side in control exchanged; do
  test=$work/$side/libs/mysql/test
  precompile "$side" boost/mysql.hpp boost/mysql/any_connection.hpp \
    boost/asio/{bind_cancellation_slot,cancellation_signal}.hpp boost/test/unit_test.hpp
  side_flags+=("-I$test/common/include" "-I$test/unit/include")
  objects=()
  for file in common/src/{boost_mysql,utils} unit/src/utils \
    unit/test/connection_pool{,/connection_pool_impl,/sansio_connection_node}; do
    object=$work/$side/${file//\//_}.o
    compile "$object" "${side_flags[@]}" -c "$test/$file.cpp"
    objects+=("$object")
  done
  compile "$work/$side/pool" "${objects[@]}" "$work"/{main,charconv}.o "${libraries[@]}"
  run "$side" pool "$work/$side/pool"
done
compare ""
