// timed_stream::expires_after(policy): what is counted, what is reported, and how that goes with
// the limits of the stream.
#include <array>
#include <asio_wheel/timed_stream.hpp>
#include <asio_wheel/timeout_policy.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "support/error_of_closing.hpp"
#include "support/manual_operation.hpp"
#include "support/run.hpp"
#include "support/socket_pair.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using local_stream = timed_stream<support::pair_socket>;

namespace {

/// Two ends of a connection, one of which is a timed_stream, in virtual time.
struct connection : support::wheel_in_virtual_time {
  explicit connection(const wheel_options& options = {}) : wheel_in_virtual_time(options)
  {
    support::connect_pair(stream.socket(), peer);
  }

  void start_read(support::result& r) { stream.async_read_some(asio::buffer(room), r.recorder()); }

  /// Reads a byte that comes after a time.
  void read_after(std::chrono::milliseconds d)
  {
    support::result r;
    start_read(r);
    time.advance(d);
    asio::write(peer, asio::buffer("a", 1));
    time.advance(0ms);
    BOOST_TEST(r.succeeded(1));
  }

  local_stream stream{context};
  support::pair_socket peer{context};
  std::array<char, 64> room{};
  support::result read;
};

bool counts(const timeout_policy& policy, std::uint64_t started, std::uint64_t met,
            std::uint64_t expired)
{
  const timeout_policy_stats s = policy.stats();
  return s.started == started && s.met == met && s.expired == expired && s.abandoned == 0;
}

std::uint64_t used(const timeout_policy& policy, double bound)
{
  const share_histogram h = policy.stats().share_used;
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < h.size; ++i)
    if (h.bounds[i] == bound) n += h.buckets[i];
  return n;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stream_with_policies)

BOOST_AUTO_TEST_CASE(counts_each_operation_by_the_time_since_the_expiry_was_set)
{
  connection c;
  timeout_policy p("p", 100ms);
  c.stream.expires_after(p);
  c.read_after(20ms);
  c.read_after(50ms);
  BOOST_TEST(used(p, 1 / 4.) == 1U);
  BOOST_TEST(used(p, 3 / 4.) == 1U);
  c.stream.expires_after(p);
  c.read_after(20ms);
  BOOST_TEST(used(p, 1 / 4.) == 2U);
  BOOST_TEST(counts(p, 3, 3, 0));
  BOOST_TEST((c.stream.last_timeout() == stream_timeout::none));
}

BOOST_AUTO_TEST_CASE(reports_the_error_of_the_policy)
{
  connection c;
  timeout_policy p("p", 100ms, asio::error::no_recovery);
  c.stream.expires_after(p);
  c.start_read(c.read);
  c.time.advance(99ms);
  BOOST_TEST(c.read.pending());
  c.time.advance(1ms);
  BOOST_TEST(c.read.failed(asio::error::no_recovery));
  BOOST_TEST((c.stream.last_timeout() == stream_timeout::expiry));
  BOOST_TEST(counts(p, 1, 0, 1));
  // One that starts too late, and a composed one.
  c.read = {};
  c.start_read(c.read);
  c.time.advance(0ms);
  BOOST_TEST(c.read.failed(asio::error::no_recovery));
  BOOST_TEST(counts(p, 2, 0, 2));
  c.read = {};
  asio::write(c.peer, asio::buffer("a", 1));
  c.stream.expires_after(p);
  asio::async_read(c.stream, asio::buffer(c.room), c.read.recorder());
  c.time.advance(100ms);
  BOOST_TEST(c.read.failed(asio::error::no_recovery));
  BOOST_TEST(counts(p, 4, 1, 3));
}

BOOST_AUTO_TEST_CASE(leaves_to_an_earlier_limit_what_that_ends)
{
  connection c;
  timeout_policy p("p", 100ms, asio::error::no_recovery);
  c.stream.set_limits({.read_idle = 25ms, .total = 130ms});
  c.stream.expires_after(p);
  c.start_read(c.read);
  c.time.advance(25ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST((c.stream.last_timeout() == stream_timeout::read_idle));
  BOOST_TEST(counts(p, 1, 1, 0));
  BOOST_TEST(used(p, 1 / 4.) == 1U);
  c.time.advance(65ms);
  c.read = {};
  c.start_read(c.read);
  c.time.advance(10ms);
  BOOST_TEST(c.read.failed(asio::error::no_recovery));
  BOOST_TEST((c.stream.last_timeout() == stream_timeout::expiry));
  BOOST_TEST(counts(p, 2, 1, 1));
  // The total has passed.
  c.time.advance(40ms);
  c.stream.expires_after(p);
  c.read = {};
  c.start_read(c.read);
  c.time.advance(0ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST((c.stream.last_timeout() == stream_timeout::total));
  BOOST_TEST(counts(p, 3, 2, 1));
}

BOOST_AUTO_TEST_CASE(keeps_a_running_operation_with_the_policy_that_it_has_started_under)
{
  connection c;
  timeout_policy first("first", 50ms, asio::error::no_recovery);
  timeout_policy second("second", 1s);
  c.stream.expires_after(first);
  c.start_read(c.read);
  c.stream.expires_after(second);
  support::result written;
  c.stream.async_write_some(asio::buffer("a", 1), written.recorder());
  c.time.advance(0ms);
  BOOST_TEST(written.succeeded(1));
  BOOST_TEST(counts(second, 1, 1, 0));
  first.set(1h);  // for what starts later
  c.time.advance(50ms);
  BOOST_TEST(c.read.failed(asio::error::no_recovery));
  BOOST_TEST(counts(first, 1, 0, 1));
  local_stream moved(std::move(c.stream));
  c.read = {};
  moved.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.time.advance(950ms);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST(counts(second, 2, 1, 1));
}

BOOST_AUTO_TEST_CASE(counts_until_another_expiry_is_set)
{
  connection c;
  timeout_policy p("p", std::chrono::hours::max());
  c.stream.expires_after(p);
  c.read_after(1h);
  BOOST_TEST(used(p, 1 / 128.) == 1U);
  c.stream.expires_never();
  c.read_after(1ms);
  c.stream.expires_after(1s);
  c.read_after(1ms);
  c.stream.expires_at(c.wheel.now() + 1s);
  c.start_read(c.read);
  c.time.advance(1s);
  BOOST_TEST(c.read.failed(asio::error::timed_out));
  BOOST_TEST(counts(p, 1, 1, 0));
}

BOOST_AUTO_TEST_CASE(counts_refused_operations_as_started_only_and_cancelled_ones_as_met)
{
  connection c(support::with_limit(1));
  timeout_policy p("p", 1s);
  support::result other;
  c.wheel.async_wait(1h, [](error_code) {});
  c.stream.expires_after(p);
  c.start_read(c.read);
  c.time.advance(0ms);
  BOOST_TEST(c.read.failed(wheel_errc::too_many_pending));
  BOOST_TEST(counts(p, 1, 0, 0));
  BOOST_TEST(c.wheel.cancel_all() == 1U);
  c.time.advance(0ms);
  c.start_read(other);
  c.stream.cancel();
  c.time.advance(0ms);
  BOOST_TEST(other.failed(asio::error::operation_aborted));
  BOOST_TEST(counts(p, 2, 1, 0));
}

BOOST_AUTO_TEST_CASE(calls_handlers_where_they_belong)
{
  connection c;
  timeout_policy p("p", 10ms, asio::error::no_recovery);
  const auto strand = asio::make_strand(c.context);
  using erased = asio::any_completion_handler<void(error_code, std::size_t)>;
  int there = 0;
  const auto handler = [&](error_code ec, std::size_t) {
    there += strand.running_in_this_thread() && ec == asio::error::no_recovery;
  };
  c.stream.expires_after(p);
  c.stream.async_read_some(asio::buffer(c.room), asio::bind_executor(strand, handler));
  c.time.advance(10ms);
  c.stream.async_read_some(asio::buffer(c.room), asio::bind_executor(strand, handler));
  c.time.advance(1ms);
  c.stream.expires_after(p);
  c.stream.async_read_some(asio::buffer(c.room), erased(asio::bind_executor(strand, handler)));
  c.time.advance(10ms);
  BOOST_TEST(there == 3);
  BOOST_TEST(counts(p, 3, 0, 3));
}

BOOST_AUTO_TEST_CASE(goes_with_its_stream_and_its_context)
{
  timeout_policy p("p", 1s);
  support::result aborted;
  std::optional<connection> c(std::in_place);
  c->stream.expires_after(p);
  c->start_read(aborted);
  {
    const local_stream gone(std::move(c->stream));
  }
  support::run_until(c->context, [&] { return !aborted.pending(); });
  BOOST_TEST(aborted.failed(support::error_of_closing()));
  BOOST_TEST(counts(p, 1, 1, 0));
  c.emplace();
  c->stream.expires_after(p);
  c->start_read(c->read);
  c.reset();  // with the handler
  BOOST_TEST(counts(p, 2, 1, 0));
}

BOOST_AUTO_TEST_SUITE_END()
