// Streams in memory: how operations complete, are cancelled and are moved.
#include <array>
#include <asio_wheel.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/version.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "support/ledger.hpp"
#include "support/run.hpp"
#include "support/simulated_ends.hpp"

// GCC 12 takes the two halves of a coroutine's frame allocation for a mismatch.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using boost::system::error_code;
using support::simulated_ends;

namespace {

constexpr std::array all_types{asio::cancellation_type::terminal, asio::cancellation_type::partial,
                               asio::cancellation_type::total};

}  // namespace

BOOST_AUTO_TEST_SUITE(operations_of_streams_in_memory)

BOOST_AUTO_TEST_CASE(never_complete_inline)
{
  simulated_ends c;
  c.say("x");
  c.start_read();
  c.start_write("y");
  BOOST_TEST((c.read.pending() && c.written.pending()));
  c.run_ready();
  BOOST_TEST((c.read.succeeded(1) && c.written.succeeded(1)));
  static_cast<void>(c.heard());
  c.start_read();
  c.start_write("z");
  c.server.cancel();
  c.client.close();
  BOOST_TEST((c.read.pending() && c.written.pending()));
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(cancel_reads_that_have_taken_nothing)
{
  for (const auto type : all_types) {
    simulated_ends c;
    asio::cancellation_signal signal;
    c.server.async_read_some(asio::buffer(c.room),
                             asio::bind_cancellation_slot(signal.slot(), c.read.recorder()));
    signal.emit(type);
    c.run_ready();
    BOOST_TEST(c.read.failed(asio::error::operation_aborted));
    BOOST_TEST(c.read.size == 0U);
    c.say("still there");
    BOOST_TEST(c.heard() == "still there");
  }
}

BOOST_AUTO_TEST_CASE(cancel_writes_that_have_sent_nothing)
{
  for (const auto type : all_types) {
    simulated_ends c({.send_buffer = 3});
    c.say("abc");
    asio::cancellation_signal signal;
    c.written = {};
    c.client.async_write_some(asio::buffer("def", 3),
                              asio::bind_cancellation_slot(signal.slot(), c.written.recorder()));
    signal.emit(type);
    c.run_ready();
    BOOST_TEST(c.written.failed(asio::error::operation_aborted));
    BOOST_TEST(c.written.size == 0U);
    BOOST_TEST(c.heard() == "abc");
  }
}

BOOST_AUTO_TEST_CASE(keep_the_result_of_what_completed_before_the_cancel)
{
  simulated_ends c;
  asio::cancellation_signal signal;
  c.client.async_write_some(asio::buffer("abc", 3),
                            asio::bind_cancellation_slot(signal.slot(), c.written.recorder()));
  signal.emit(asio::cancellation_type::total);
  c.client.cancel();
  c.run_ready();
  BOOST_TEST(c.written.succeeded(3));
  BOOST_TEST(c.heard() == "abc");
}

BOOST_AUTO_TEST_CASE(serve_several_reads_in_order)
{
  simulated_ends c;
  std::array<support::result, 4> reads;
  asio::cancellation_signal signal;
  std::array<char, 4> bytes{};
  for (std::size_t i = 0; i < 4; ++i)
    c.server.async_read_some(
      asio::buffer(&bytes[i], 1),
      asio::bind_cancellation_slot(i == 1 ? signal.slot() : asio::cancellation_slot(),
                                   reads[i].recorder()));
  signal.emit(asio::cancellation_type::total);
  c.say("ab");
  c.time.advance(1ms);
  BOOST_TEST(reads[0].succeeded(1));
  BOOST_TEST(reads[1].failed(asio::error::operation_aborted));
  BOOST_TEST(reads[2].succeeded(1));
  BOOST_TEST(reads[3].pending());
  BOOST_TEST((bytes[0] == 'a' && bytes[2] == 'b'));
}

BOOST_AUTO_TEST_CASE(call_handlers_on_their_executors)
{
  simulated_ends c;
  asio::io_context other;
  const auto strand = asio::make_strand(other);
  bool on_strand = false;
  c.server.async_read_some(asio::buffer(c.room),
                           asio::bind_executor(strand, [&](error_code, std::size_t) {
                             on_strand = strand.running_in_this_thread();
                           }));
  c.say("x");
  c.run_ready();
  BOOST_TEST(!on_strand);
  other.run();  // the work of the pending read kept it going
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE(may_have_ends_in_two_contexts)
{
  support::wheel_in_virtual_time w;
  asio::io_context other;
  auto [client, server] =
    simulated_pair(w.wheel, {.latency = 20ms}, w.context.get_executor(), other.get_executor());
  static_assert(std::is_same_v<decltype(server)::executor_type, asio::io_context::executor_type>);
  support::result read, written;
  std::array<char, 8> room{};
  server.async_read_some(asio::buffer(room), read.recorder());
  client.async_write_some(asio::buffer("x", 1), written.recorder());
  w.time.advance(20ms);
  BOOST_TEST(written.succeeded(1));
  BOOST_TEST(read.pending());
  other.run();
  BOOST_TEST(read.succeeded(1));
}

BOOST_AUTO_TEST_CASE(use_the_handlers_allocator_and_free_before_the_call)
{
  simulated_ends c;
  support::ledger books;
  std::size_t outstanding = 1;
  c.server.async_read_some(
    asio::buffer(c.room),
    asio::bind_allocator(support::booking_allocator<char>(books),
                         [&](error_code, std::size_t) { outstanding = books.outstanding; }));
  BOOST_TEST(books.taken == 1U);
  c.say("x");
  c.run_ready();
  BOOST_TEST(outstanding == 0U);
}

BOOST_AUTO_TEST_CASE(count_pending_operations_as_work)
{
  simulated_ends c;
  c.start_read();
  c.run_ready();
  BOOST_TEST(!c.context.stopped());
  c.server.cancel();
  c.context.run();  // returns
  BOOST_TEST(c.read.failed(asio::error::operation_aborted));
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(take_every_token)
{
  asio::io_context context;
  auto& wheel = make_wheel(context);
  auto ends = simulated_pair(wheel, {.latency = 1ms});
  auto& [client, server] = ends;
  std::array<char, 8> room{};
  auto future = server.async_read_some(asio::buffer(room), asio::use_future);
  client.async_write_some(asio::buffer("abc", 3), asio::detached);
  context.run();
  BOOST_TEST(future.get() == 3U);
  support::run_coroutine(context, [&]() -> asio::awaitable<void> {
    co_await asio::async_write(server, asio::buffer("abcdef", 6), asio::use_awaitable);
    BOOST_TEST(co_await client.async_read_some(asio::buffer(room)) == 6U);
    co_await client.async_write_some(asio::buffer("abcdef", 6), timeout_after(1s));
    BOOST_TEST(co_await server.async_read_some(asio::buffer(room), asio::deferred) == 6U);
  });
}

#if BOOST_ASIO_VERSION >= 102700  // Boost 1.82
BOOST_AUTO_TEST_CASE(take_handlers_without_types)
{
  simulated_ends c;
  asio::io_context other;
  asio::cancellation_signal signal;
  using handler = asio::any_completion_handler<void(error_code, std::size_t)>;
  c.server.async_read_some(asio::buffer(c.room),
                           handler(asio::bind_executor(other, c.read.recorder())));
  c.say("x");
  c.run_ready();
  BOOST_TEST(c.read.pending());
  other.run();
  BOOST_TEST(c.read.succeeded(1));
  c.read = {};
  c.server.async_read_some(asio::buffer(c.room),
                           handler(asio::bind_cancellation_slot(signal.slot(), c.read.recorder())));
  signal.emit(asio::cancellation_type::total);
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::operation_aborted));
}
#endif

BOOST_AUTO_TEST_CASE(move_with_what_is_pending)
{
  simulated_ends c;
  c.start_read();
  simulated_stream moved(std::move(c.server));
  BOOST_TEST(!c.server.is_open());  // NOLINT(bugprone-use-after-move)
  BOOST_TEST(moved.is_open());
  c.say("x");
  c.run_ready();
  BOOST_TEST(c.read.succeeded(1));
  simulated_stream target(c.context);
  target = std::move(moved);
  c.say("y");
  target.async_read_some(asio::buffer(c.room), (c.read = {}, c.read).recorder());
  c.run_ready();
  BOOST_TEST(c.read.succeeded(1));
  auto [other, left] = simulated_pair(c.wheel);
  target = std::move(left);  // closes what was open
  c.read = {};
  c.client.async_read_some(asio::buffer(c.room), c.read.recorder());
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::eof));
}

BOOST_AUTO_TEST_CASE(convert_to_another_executor)
{
  simulated_ends c;
  const auto strand = asio::make_strand(c.context);
  auto [first, second] = simulated_pair(c.wheel, {}, strand, strand);
  using rebound = decltype(first)::rebind_executor<asio::any_io_executor>::other;
  static_assert(std::is_same_v<rebound, simulated_stream>);
  rebound converted(std::move(first));
  BOOST_TEST(converted.is_open());
  BOOST_TEST((converted.get_executor() == asio::any_io_executor(strand)));
}

BOOST_AUTO_TEST_SUITE_END()
