// Fault: around streams in memory, memory is refused for each allocation in turn, executors refuse,
// throw and drop what they are given, and handlers destroy what other operations are of. No handler
// is lost, and nothing stays pending.
#include <array>
#include <asio_wheel.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/version.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "faults/every_operation.hpp"
#include "support/heap.hpp"
#include "support/manual_operation.hpp"
#include "support/own_executor.hpp"
#include "support/seeds.hpp"
#include "support/virtual_wheel.hpp"
#include "support/whims.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace faults;
using namespace std::chrono_literals;
using boost::system::error_code;
using support::heap_limit;

namespace {

struct as_they_are {
  template <class Signature, class Handler>
  static Handler wrap(Handler h)
  {
    return h;
  }
};

#if BOOST_ASIO_VERSION >= 102700  // Boost 1.82
struct type_erased {
  template <class Signature, class Handler>
  static asio::any_completion_handler<Signature> wrap(Handler h)
  {
    return h;
  }
};
#endif

/// A pair and an acceptor with operations of all kinds, and faults to come. Each step may throw,
/// and then has done nothing.
template <class Handlers>
class story : support::wheel_in_virtual_time, public tally {
public:
  /// The streams have one executor and the handlers another; either may be unruly.
  explicit story(const std::function<bool()>* of_streams = nullptr,
                 const std::function<bool()>* of_handlers = nullptr)
    : streams_on_(executor(of_streams)),
      handlers_on_(executor(of_handlers))
  {}

  void play()
  {
    constexpr simulated_link link{.latency = 1ms,
                                  .jitter = 1ms,
                                  .bytes_per_second = 1'000'000,
                                  .send_buffer = 3000,
                                  .loss = 0.1};
    attempt([&] { pair_.emplace(simulated_pair(wheel, link, streams_on_, streams_on_)); });
    attempt([&] { acceptor_.emplace(wheel_place<>(wheel, streams_on_)); });
    for (int i = 0; i < 2; ++i) start_accept();
    attempt([&] { client_.emplace(acceptor_.value().connect(link)); });
    if (client_) start_read(*client_);
    if (pair_) {
      for (simulated_stream* each : {&pair_->first, &pair_->second}) {
        for (int i = 0; i < 2; ++i) start_read(*each);
        for (int i = 0; i < 2; ++i) start_write(*each);
        attempt([&] { each->inject_after(3ms, {simulated_fault::chunk, 7}); });
        attempt([&] { each->inject_after_bytes(1000, simulated_fault::stall); });
      }
      attempt([&] { time.advance(4ms); });
      pair_->first.resume();
      start_read(pair_->second);
      attempt([&] { time.advance(4ms); });
      attempt([&] { pair_->first.inject_after_bytes(10, simulated_fault::half_close); });
      error_code ignored;
      pair_->second.shutdown(asio::socket_base::shutdown_send, ignored);
      attempt([&] { signal_.emit(asio::cancellation_type::total); });
    }
    attempt([&] { time.advance(4ms); });
  }

  /// With memory and with executors that obey, everything ends.
  void finish(bool drops = false)
  {
    pair_.reset();
    acceptor_.reset();
    client_.reset();
    for (int i = 0; i < 50; ++i) attempt([&] { time.advance(2ms); });
    if (!drops) BOOST_TEST(called == started);
    BOOST_TEST(living() == 0U);
    BOOST_TEST(wheel.pending() == 0U);
  }

private:
  using transferred = void(error_code, std::size_t);

  [[nodiscard]] asio::any_io_executor executor(const std::function<bool()>* takes)
  {
    if (!takes) return context.get_executor();
    return support::own_executor(context.get_executor(), *takes);
  }

  template <class Act>
  void attempt(Act act)
  {
    try {
      act();
    } catch (const std::exception&) {
    }
    context.restart();
  }

  /// Calls `act(handler)`.
  template <class Signature, class Act>
  void start(Act act)
  {
    attempt([&] {
      act(Handlers::template wrap<Signature>(asio::bind_executor(handlers_on_, counted<>(*this))));
      ++started;
    });
  }

  void start_accept()
  {
    start<void(error_code, simulated_stream)>(
      [&](auto h) { acceptor_.value().async_accept(std::move(h)); });
  }

  void start_read(simulated_stream& stream)
  {
    start<transferred>([&](auto h) { stream.async_read_some(asio::buffer(room_), std::move(h)); });
    start<transferred>([&](auto h) {
      stream.async_read_some(asio::buffer(room_),
                             asio::bind_cancellation_slot(signal_.slot(), std::move(h)));
    });
    start<transferred>(
      [&](auto h) { stream.async_read_some(asio::mutable_buffer(), std::move(h)); });
  }

  void start_write(simulated_stream& stream)
  {
    start<transferred>([&](auto h) { stream.async_write_some(asio::buffer(text_), std::move(h)); });
  }

  asio::any_io_executor streams_on_, handlers_on_;
  const std::string text_ = std::string(2000, 'x');
  std::array<char, 1500> room_{};
  asio::cancellation_signal signal_;
  std::optional<std::pair<simulated_stream, simulated_stream>> pair_;
  std::optional<simulated_acceptor> acceptor_;
  std::optional<simulated_stream> client_;
};

template <class Handlers>
bool play_with_limited_heap(std::size_t calls, std::size_t refusals, heap_limit::reach reach)
{
  bool refused = false;
  BOOST_TEST_CONTEXT("after " << calls << " allocations, " << refusals << " refused")
  {
    story<Handlers> s;
    {
      const heap_limit limit(calls, refusals, reach);
      s.play();
      refused = limit.was_reached();
    }
    s.finish();
  }
  return refused;
}

template <class Handlers>
void refuse_each_call()
{
  for (const auto reach : {heap_limit::reach::operator_new, heap_limit::reach::asio_too})
    for (const std::size_t refusals : {std::size_t{1}, std::size_t{3}, heap_limit::unlimited}) {
      // What a process takes once.
      for (int i = 0; i < 2; ++i)
        play_with_limited_heap<Handlers>(heap_limit::unlimited - 1, 0, reach);
      const std::size_t before = support::heap_in_use();
      for (std::size_t calls = 0; play_with_limited_heap<Handlers>(calls, refusals, reach);)
        ++calls;
      BOOST_TEST(support::heap_in_use() == before);
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(faults_around_streams_in_memory)

BOOST_AUTO_TEST_CASE(each_allocation_may_fail)
{
  refuse_each_call<as_they_are>();
}

#if BOOST_ASIO_VERSION >= 102700
BOOST_AUTO_TEST_CASE(erased_handlers_are_all_called)
{
  story<type_erased> s;
  s.play();
  s.finish();
}
#endif

BOOST_AUTO_TEST_CASE(executors_may_refuse_throw_and_drop)
{
  constexpr std::array<support::bad_habits, 4> all_habits{
    {{.refuses = 5}, {.throws = 5}, {.drops = 4}, {.refuses = 3, .throws = 3, .drops = 1}}};
  support::for_each_seed(80, [&](std::uint64_t seed) {
    const support::bad_habits habits = all_habits[seed % all_habits.size()];
    support::whims whims(seed, habits);
    BOOST_TEST_CONTEXT("seed " << seed)
    {
      const bool of_streams = seed / all_habits.size() % 2 == 0;
      story<as_they_are> s(of_streams ? &whims.takes() : nullptr,
                           of_streams ? nullptr : &whims.takes());
      s.play();
      whims.calm_down();
      s.finish(habits.drops != 0);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_handler_may_destroy_what_the_others_are_of)
{
  support::wheel_in_virtual_time w;
  for (const int destroyer : {0, 1, 2, 3}) {
    std::optional<simulated_acceptor> acceptor(w.wheel);
    std::optional<std::pair<simulated_stream, simulated_stream>> pair(
      simulated_pair(w.wheel, {.send_buffer = 4}));
    simulated_stream client = acceptor->connect();
    std::array<char, 8> room{};
    int calls = 0;
    const auto handler = [&](int i) {
      return [&, i](error_code, const auto&) {
        ++calls;
        if (i != destroyer) return;
        acceptor.reset();
        pair.reset();
      };
    };
    acceptor->async_accept(handler(0));
    acceptor->async_accept(handler(0));
    pair->first.async_read_some(asio::buffer(room), handler(1));
    pair->first.async_write_some(asio::buffer("abc", 3), handler(2));
    pair->first.async_write_some(asio::buffer("defg", 4), handler(2));
    pair->second.async_read_some(asio::buffer(room), handler(3));
    pair->second.async_write_some(asio::buffer("hij", 3), handler(3));
    w.time.advance(1s);
    acceptor.reset();
    pair.reset();
    w.time.advance(1s);
    BOOST_TEST(calls == 7);
    BOOST_TEST(w.wheel.pending() == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_handler_may_destroy_the_context_of_the_wheel)
{
  std::optional<asio::io_context> of_wheel(std::in_place);
  asio::io_context context;
  auto [client, server] = simulated_pair(make_wheel(*of_wheel), {.send_buffer = 4},
                                         context.get_executor(), context.get_executor());
  std::array<char, 8> room{};
  support::result read, written, other;
  client.async_write_some(asio::buffer("abc", 3),
                          [&, record = written.recorder()](error_code ec, std::size_t n) mutable {
                            of_wheel.reset();
                            record(ec, n);
                          });
  client.async_write_some(asio::buffer("defg", 4), other.recorder());
  server.async_read_some(asio::buffer(room), read.recorder());
  client.inject_after(1s, simulated_fault::reset);
  context.poll();
  BOOST_TEST(written.succeeded(3));
  client.inject_after(1s, simulated_fault::reset);
  client.close();
  context.restart();
  context.poll();
  BOOST_TEST(read.pending());  // nothing arrives any more
  server.close();
  context.restart();
  context.run();
  BOOST_TEST(read.failed(asio::error::operation_aborted));
  BOOST_TEST(other.calls == 1);
}

// A body of a megabyte that went byte by byte was copied a million times, 64 KB each.
BOOST_AUTO_TEST_CASE(an_end_that_drips_has_no_memory_for_more_than_it_moves)
{
  asio::io_context context;
  auto [client, server] = simulated_pair(make_wheel(context), {});
  client.chunk(1);
  server.chunk(1);
  std::string text(65536, 'x');
  for (int i = 0; i < 2; ++i) {  // the first takes what a process takes once
    const std::size_t before = support::heap_in_use();
    support::result read, written;
    client.async_write_some(asio::buffer(text), written.recorder());
    server.async_read_some(asio::buffer(text), read.recorder());
    if (i == 1) BOOST_TEST(support::heap_in_use() - before < 4096);
    context.restart();
    context.run();
    BOOST_TEST(written.succeeded(1));
    BOOST_TEST(read.succeeded(1));
  }
}

BOOST_AUTO_TEST_SUITE_END()
