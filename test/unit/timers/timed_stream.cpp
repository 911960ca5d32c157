// timed_stream: its members, its deadlines and limits, over real sockets.
#include <array>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/error_of_closing.hpp"
#include "support/manual_operation.hpp"
#include "support/run.hpp"
#include "support/socket_pair.hpp"
#include "support/virtual_wheel.hpp"

// GCC 12 takes the two halves of a coroutine's frame allocation for a mismatch.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::ip::tcp;
using local_stream = timed_stream<support::pair_socket>;

namespace {

#if defined(_WIN32)
constexpr bool on_windows = true;
#else
constexpr bool on_windows = false;
#endif

/// Two ends of a connection, one of which is a timed_stream, in virtual time.
struct connection : support::wheel_in_virtual_time {
  connection() { support::connect_pair(stream.socket(), peer); }

  void run_ready()
  {
    context.restart();
    context.poll();
  }

  /// The same for what closing has ended, for which Windows takes a while.
  void run_closed(const support::result& r)
  {
    if constexpr (on_windows)
      support::run_until(context, [&] { return !r.pending(); });
    else
      run_ready();
  }

  local_stream stream{context};
  support::pair_socket peer{context};
  std::array<char, 64> room{};
  support::result read;
  support::result written;
};

struct listener {
  asio::io_context context;
  tcp::acceptor acceptor{context, {asio::ip::address_v4::loopback(), 0}};
  tcp::endpoint here = acceptor.local_endpoint();
};

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_with_deadlines)

BOOST_AUTO_TEST_CASE(times_a_read_out_and_stays_open)
{
  connection c;
  c.stream.expires_after(100ms);
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.time.advance(99ms);
  BOOST_TEST(c.read.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST(c.stream.socket().is_open());
  // What comes later can be read.
  asio::write(c.peer, asio::buffer("abc", 3));
  c.stream.expires_never();
  c.read = {};
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.run_ready();
  BOOST_TEST(c.read.succeeded(3));
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(does_not_start_what_is_too_late_even_if_there_is_data)
{
  connection c;
  asio::write(c.peer, asio::buffer("abc", 3));
  c.stream.expires_after(10ms);
  c.time.advance(20ms);
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  BOOST_TEST(c.read.pending());  // not inline
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST(c.stream.socket().available() == 3U);
  c.stream.expires_after(10ms);
  c.read = {};
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.run_ready();
  BOOST_TEST(c.read.succeeded(3));
}

BOOST_AUTO_TEST_CASE(bounds_operations_that_always_find_data)
{
  connection c;
  c.stream.expires_after(10ms);
  int reads = 0;
  // One read a millisecond, none of which has to wait.
  for (; reads < 100 && !c.read.error; ++reads) {
    asio::write(c.peer, asio::buffer("x", 1));
    c.read = {};
    c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
    c.run_ready();
    c.time.advance(1ms);
  }
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST(reads == 11);
}

BOOST_AUTO_TEST_CASE(keeps_reads_and_writes_apart)
{
  connection c;
  std::vector<char> much(1 << 22);
  c.stream.socket().non_blocking(true);
  for (error_code ec; !ec;) c.stream.write_some(asio::buffer(much), ec);
  c.stream.expires_after(100ms);
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  // The read is running, so this is for the write.
  c.stream.expires_after(20ms);
  c.stream.async_write_some(asio::buffer(much), c.written.recorder());
  c.time.advance(20ms);
  BOOST_TEST(c.written.failed(asio::error::timed_out));
  c.time.advance(79ms);
  BOOST_TEST(c.read.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(shares_one_wait_among_its_operations)
{
  connection c;
  std::vector<char> much(1 << 22);
  c.stream.socket().non_blocking(true);
  for (error_code ec; !ec;) c.stream.write_some(asio::buffer(much), ec);
  c.stream.set_limits({.read_idle = 500ms, .write_stall = 100ms});
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.stream.async_write_some(asio::buffer(much), c.written.recorder());
  BOOST_TEST(c.wheel.pending() == 1U);
  c.time.advance(100ms);  // the write is started later and ends earlier
  BOOST_TEST(c.written.failed(asio::error::timed_out));
  BOOST_TEST(c.read.pending());
  BOOST_TEST(c.wheel.pending() == 1U);
  c.time.advance(400ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(wakes_up_for_no_operation_that_has_ended)
{
  connection c;
  c.stream.expires_after(10ms);
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.stream.expires_after(10s);
  support::result other;
  char byte = 'x';
  std::vector<char> much(1 << 22);
  c.stream.socket().non_blocking(true);
  for (error_code ec; !ec;) c.stream.write_some(asio::buffer(much), ec);
  c.stream.async_write_some(asio::buffer(much), other.recorder());
  asio::write(c.peer, asio::buffer(&byte, 1));
  c.run_ready();
  BOOST_TEST(c.read.succeeded(1));
  const auto before = c.wheel.stats().wakeups;
  c.time.advance(9s);
  BOOST_TEST(other.pending());
  BOOST_TEST(c.wheel.stats().wakeups - before <= 10U);  // at 10 ms, and where it cascades
  c.time.advance(1s);
  BOOST_TEST(other.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(takes_an_earlier_expiry_for_the_next_operation)
{
  connection c;
  for (const auto delay : {500ms, 10ms, 300ms, 20ms}) {
    c.stream.expires_after(delay);
    c.read = {};
    c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
    asio::write(c.peer, asio::buffer("x", 1));
    c.run_ready();
    BOOST_TEST(c.read.succeeded(1));
  }
  c.stream.expires_at(c.wheel.now() + 5ms);
  c.read = {};
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.time.advance(5ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(takes_an_earlier_expiry_behind_a_look_at_who_waits)
{
  connection c;
  c.stream.expires_after(10s);
  c.stream.async_read_some(asio::buffer(c.room), [&](error_code, std::size_t) {
    // The wait of the stream is between two operations.
    for (const auto& row : c.wheel.pending_by_handler().rows) {
      BOOST_TEST((row.earliest >= c.wheel.now()));
      BOOST_TEST((row.latest <= c.wheel.now() + 10s));
    }
    c.stream.expires_after(5ms);
    c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  });
  asio::write(c.peer, asio::buffer("x", 1));
  c.run_ready();
  c.time.advance(4ms);
  BOOST_TEST(c.read.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(limits_each_read_each_write_and_all_of_them)
{
  connection c;
  c.stream.set_limits({.read_idle = 20ms, .total = 100ms});
  for (int i = 0; i < 6; ++i) {
    c.read = {};
    c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
    c.time.advance(15ms);
    BOOST_TEST(c.read.pending());
    asio::write(c.peer, asio::buffer("x", 1));
    c.run_ready();
    BOOST_TEST(c.read.succeeded(1));
  }
  c.read = {};
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.time.advance(10ms);  // 100 in total
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  c.stream.set_limits({.read_idle = 20ms});
  c.read = {};
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.time.advance(19ms);
  BOOST_TEST(c.read.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  c.stream.set_limits({});
  c.read = {};
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.time.advance(24h);
  BOOST_TEST(c.read.pending());
  c.stream.cancel();
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(says_what_has_ended_the_last_operation_that_timed_out)
{
  connection c;
  const auto read_until_timeout = [&](auto delay) {
    c.read = {};
    c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
    c.time.advance(delay);
    BOOST_TEST(c.read.failed(asio::error::timed_out));
    return c.stream.last_timeout();
  };
  BOOST_TEST((c.stream.last_timeout() == stream_timeout::none));
  c.stream.set_limits({.read_idle = 30ms, .write_stall = 20ms, .total = 100ms});
  BOOST_TEST((c.stream.last_timeout() == stream_timeout::none));
  BOOST_TEST((read_until_timeout(30ms) == stream_timeout::read_idle));
  std::vector<char> much(1 << 22);
  c.stream.socket().non_blocking(true);
  for (error_code ec; !ec;) c.stream.write_some(asio::buffer(much), ec);
  c.stream.async_write_some(asio::buffer(much), c.written.recorder());
  c.time.advance(20ms);
  BOOST_TEST(c.written.failed(asio::error::timed_out));
  BOOST_TEST((c.stream.last_timeout() == stream_timeout::write_stall));
  c.stream.expires_after(10ms);
  BOOST_TEST((read_until_timeout(10ms) == stream_timeout::expiry));
  c.stream.expires_never();
  c.time.advance(25ms);
  BOOST_TEST((read_until_timeout(15ms) == stream_timeout::total));
  // One that starts too late, and a stream that was moved.
  c.stream.set_limits({});
  c.stream.expires_after(-1ms);
  local_stream moved(std::move(c.stream));
  BOOST_TEST((moved.last_timeout() == stream_timeout::total));
  c.read = {};
  moved.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.time.advance(1ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST((moved.last_timeout() == stream_timeout::expiry));
  BOOST_TEST((c.stream.last_timeout() == stream_timeout::none));
}

BOOST_AUTO_TEST_CASE(limits_a_write_that_stalls)
{
  connection c;
  std::vector<char> much(1 << 22);
  c.stream.set_limits({.write_stall = 20ms});
  asio::async_write(c.stream, asio::buffer(much), c.written.recorder());
  c.run_ready();
  c.time.advance(15ms);
  // The peer takes something: the write goes on, and has its time again.
  std::vector<char> taken(1 << 20);
  BOOST_TEST(c.peer.read_some(asio::buffer(taken)) > 0U);
  c.run_ready();
  c.time.advance(19ms);
  BOOST_TEST(c.written.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.written.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(moves_with_its_deadlines)
{
  connection c;
  c.stream.expires_after(100ms);
  local_stream second(std::move(c.stream));
  local_stream third(c.context);
  third.expires_after(1h);
  third = std::move(second);
  third.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.time.advance(99ms);
  BOOST_TEST(c.read.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST(third.socket().is_open());
  auto socket = third.release_socket();
  BOOST_TEST(socket.is_open());
  BOOST_TEST(!third.socket().is_open());
}

BOOST_AUTO_TEST_CASE(has_no_limits_when_it_was_moved_from)
{
  connection c;
  c.stream.set_limits({.read_idle = 10ms});
  const local_stream second(std::move(c.stream));
  c.stream.socket() = support::pair_socket(c.context);
  support::pair_socket peer(c.context);
  support::connect_pair(c.stream.socket(), peer);
  c.stream.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.time.advance(1s);
  BOOST_TEST(c.read.pending());
  asio::write(peer, asio::buffer("abc", 3));
  c.run_ready();
  BOOST_TEST(c.read.succeeded(3));
}

BOOST_AUTO_TEST_CASE(is_taken_over_by_a_stream_of_another_executor)
{
  support::wheel_in_virtual_time v;
  tcp::acceptor acceptor(v.context, {asio::ip::address_v4::loopback(), 0});
  tcp_stream plain(v.context);
  plain.connect(acceptor.local_endpoint());
  const tcp::socket peer = acceptor.accept();
  plain.expires_after(10ms);
  // As Beast's clients do.
  auto s = asio::use_awaitable.as_default_on(std::move(plain));
  support::result read;
  std::array<char, 64> room{};
  s.async_read_some(asio::buffer(room), read.recorder());
  v.time.advance(10ms);
  BOOST_TEST(read.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(ends_its_operations_when_it_is_destroyed_or_closed)
{
  const auto aborted = support::error_of_closing();
  if (!on_windows) BOOST_TEST(aborted == asio::error::operation_aborted);
  connection c;
  support::result of_gone;
  {
    local_stream gone(std::move(c.stream));
    gone.expires_after(1h);
    gone.async_read_some(asio::buffer(c.room), of_gone.recorder());
  }
  c.run_closed(of_gone);
  BOOST_TEST(of_gone.failed(aborted));
  connection d;
  d.stream.expires_after(1h);
  d.stream.async_read_some(asio::buffer(d.room), d.read.recorder());
  d.stream.close();
  d.run_closed(d.read);
  BOOST_TEST(d.read.failed(aborted));
  BOOST_TEST(d.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(a_range_that_times_out_ahead_of_its_first_attempt_ends_with_its_end)
{
  listener l;
  const std::vector<tcp::endpoint> endpoints{l.here};
  using iterator = std::vector<tcp::endpoint>::const_iterator;
  tcp_stream s(l.context);
  s.expires_after(0s);
  int told = 0;
  const auto ends = [&](const error_code& ec, iterator at) {
    BOOST_TEST((ec == asio::error::timed_out));
    BOOST_TEST((at == endpoints.end()));
    ++told;
  };
  s.async_connect(endpoints.begin(), endpoints.end(), ends);
  s.async_connect(
    endpoints.begin(), endpoints.end(),
    [](const error_code&, const tcp::endpoint&) { return true; }, ends);
  l.context.run();
  BOOST_TEST(told == 2);
}

BOOST_AUTO_TEST_CASE(connects_in_all_forms)
{
  listener l;
  const std::vector<tcp::endpoint> endpoints{l.here};
  const auto any = [](const error_code&, const tcp::endpoint&) { return true; };
  support::run_coroutine(l.context, [&]() -> asio::awaitable<void> {
    const auto fresh = [&] {
      tcp_stream s(l.context);
      s.expires_after(20s);
      return s;
    };
    tcp_stream a = fresh(), b = fresh(), c = fresh(), d = fresh(), e = fresh();
    co_await a.async_connect(l.here);
    BOOST_TEST((co_await b.async_connect(endpoints) == l.here));
    BOOST_TEST((co_await c.async_connect(endpoints, any) == l.here));
    BOOST_TEST((co_await d.async_connect(endpoints.begin(), endpoints.end()) == endpoints.begin()));
    BOOST_TEST(
      (co_await e.async_connect(endpoints.begin(), endpoints.end(), any) == endpoints.begin()));
    for (auto* s : {&a, &b, &c, &d, &e}) BOOST_TEST((s->socket().remote_endpoint() == l.here));
  });
  error_code ec;
  tcp_stream a(l.context), b(l.context), c(l.context);
  a.connect(l.here);
  b.connect(l.here, ec);
  BOOST_TEST(!ec);
  BOOST_TEST((c.connect(endpoints) == l.here));
}

BOOST_AUTO_TEST_CASE(times_a_connect_out)
{
  // A listener whose backlog is full takes no more.
  asio::io_context context;
  tcp::acceptor acceptor(context);
  acceptor.open(tcp::v4());
  acceptor.bind({asio::ip::address_v4::loopback(), 0});
  acceptor.listen(0);
  std::vector<tcp::socket> waiting;
  const auto there = acceptor.local_endpoint();
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back(context).async_connect(there, [](error_code) {});
  }
  context.poll();
  tcp_stream stream(context);
  stream.expires_after(50ms);
  error_code one;
  error_code two;
  stream.async_connect(there, [&](error_code ec) {
    one = ec;
    tcp_stream& s = stream;
    s.close();
    s.expires_after(50ms);
    s.async_connect(std::vector{there, there}, [&](error_code e, const tcp::endpoint&) {
      two = e;
      waiting.clear();
    });
  });
  context.restart();
  context.run_for(support::patience);
  BOOST_TEST(one == asio::error::timed_out);
  BOOST_TEST(two == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(works_on_a_strand_and_with_other_executors)
{
  asio::io_context context;
  using strand = asio::strand<asio::io_context::executor_type>;
  using socket = asio::basic_stream_socket<support::pair_protocol, strand>;
  static_assert(std::is_same_v<timed_stream<socket>::executor_type, strand>);
  static_assert(std::is_same_v<tcp_stream::rebind_executor<strand>::other,
                               timed_stream<asio::basic_stream_socket<tcp, strand>>>);
  timed_stream<socket> a(asio::make_strand(context));
  socket b(asio::make_strand(context));
  support::connect_pair(a.socket(), b);
  std::array<char, 8> room;
  support::result result;
  a.expires_after(1ms);
  a.async_read_some(asio::buffer(room), result.recorder());
  support::run_to_end(context);
  BOOST_TEST(result.failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(carries_asio_composed_operations)
{
  connection c;
  c.stream.expires_after(100ms);
  asio::async_write(c.stream, asio::buffer("hello", 5), c.written.recorder());
  asio::async_read(c.stream, asio::buffer(c.room), c.read.recorder());
  asio::write(c.peer, asio::buffer("half", 4));
  c.run_ready();
  BOOST_TEST(c.written.succeeded(5));
  c.time.advance(100ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST(c.read.size == 4U);
}

BOOST_AUTO_TEST_SUITE_END()
