// Streams in memory: acceptors, and what goes first: stream, handler, peer, wheel or context.
#include <algorithm>
#include <array>
#include <asio_wheel.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// A session that owns its stream, and lives in its handlers.
struct session : std::enable_shared_from_this<session> {
  session(simulated_stream s, int& alive) : stream(std::move(s)), alive_(alive) { ++alive_; }
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session() { --alive_; }

  void run()
  {
    stream.async_read_some(asio::buffer(bytes),
                           [self = shared_from_this()](error_code ec, std::size_t) {
                             if (!ec) self->run();
                           });
  }

  simulated_stream stream;
  std::array<char, 16> bytes{};

private:
  int& alive_;
};

/// A connection between two contexts whose parts go in any order.
struct two_contexts {
  two_contexts()
    : wheel(make_wheel(*contexts[0])),
      ends(simulated_pair(wheel, {.latency = 1ms, .send_buffer = 4}, contexts[1]->get_executor(),
                          contexts[2]->get_executor()))
  {
    const auto session_of = [this](auto& end) {
      return std::make_shared<session>(simulated_stream(std::move(end)), alive);
    };
    client = session_of(ends->first);
    server = session_of(ends->second);
    ends.reset();
    for (const auto& each : {client, server}) {
      each->run();
      each->stream.async_write_some(asio::buffer("abc", 3), asio::detached);
      each->stream.async_write_some(asio::buffer("abc", 3), asio::detached);
    }
    client->stream.inject_after(1h, simulated_fault::reset);
  }

  using typed = basic_simulated_stream<asio::io_context::executor_type>;

  std::array<std::unique_ptr<asio::io_context>, 3> contexts{std::make_unique<asio::io_context>(),
                                                            std::make_unique<asio::io_context>(),
                                                            std::make_unique<asio::io_context>()};
  wheel_timer_service& wheel;
  std::optional<std::pair<typed, typed>> ends;
  int alive = 0;
  std::shared_ptr<session> client;
  std::shared_ptr<session> server;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(lifetime_of_streams_in_memory)

BOOST_AUTO_TEST_CASE(a_context_takes_its_sessions_with_it)
{
  int alive = 0;
  {
    asio::io_context context;
    auto& wheel = make_wheel(context);
    auto [client, server] = simulated_pair(wheel, {.latency = 1ms});
    std::make_shared<session>(std::move(client), alive)->run();
    std::make_shared<session>(std::move(server), alive)->run();
    BOOST_TEST(alive == 2);
  }
  BOOST_TEST(alive == 0);
}

BOOST_AUTO_TEST_CASE(a_context_takes_its_coroutines_with_it)
{
  struct counted {
    explicit counted(int& n) : n_(n) { ++n_; }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    ~counted() { --n_; }
    int& n_;
  };
  int alive = 0;
  const auto echo = [&](simulated_stream stream) -> asio::awaitable<void> {
    const counted here(alive);
    std::array<char, 16> bytes{};
    for (;;) {
      const auto n = co_await stream.async_read_some(asio::buffer(bytes), asio::use_awaitable);
      co_await asio::async_write(stream, asio::buffer(bytes, n), asio::use_awaitable);
    }
  };
  {
    asio::io_context context;
    auto& wheel = make_wheel(context);
    auto [client, server] = simulated_pair(wheel, {.latency = 1ms});
    asio::co_spawn(context, echo(std::move(client)), asio::detached);
    asio::co_spawn(context, echo(std::move(server)), asio::detached);
    context.poll();
    BOOST_TEST(alive == 2);
  }
  BOOST_TEST(alive == 0);
}

BOOST_AUTO_TEST_CASE(streams_and_contexts_go_in_every_order)
{
  // Sessions and contexts, of which the streams' must not go before the streams.
  constexpr std::size_t parts = 5;
  std::array<std::size_t, parts> order{0, 1, 2, 3, 4};
  int orders = 0;
  do {
    two_contexts c;
    const std::array<std::function<void()>, parts> go{
      [&] { c.contexts[0].reset(); }, [&] { c.contexts[1].reset(); },
      [&] { c.contexts[2].reset(); }, [&] { c.client.reset(); }, [&] { c.server.reset(); }};
    const auto place = [&](std::size_t part) {
      return std::find(order.begin(), order.end(), part) - order.begin();
    };
    if (place(1) < place(3) || place(2) < place(4)) continue;
    ++orders;
    for (const std::size_t part : order) {
      go[part]();
      for (const std::size_t i : {1U, 2U})
        if (c.contexts[i]) c.contexts[i]->poll();
    }
    BOOST_TEST(c.alive == 0);
  } while (std::next_permutation(order.begin(), order.end()));
  BOOST_TEST(orders == 30);
}

BOOST_AUTO_TEST_CASE(a_handler_may_destroy_both_streams)
{
  auto c = std::make_unique<simulated_ends>();
  std::optional<std::pair<simulated_stream, simulated_stream>> pair(simulated_pair(c->wheel));
  support::result other;
  pair->first.async_read_some(asio::buffer(c->room), [&](error_code, std::size_t) {
    pair.reset();
    ++c->read.calls;
  });
  pair->second.async_read_some(asio::buffer(c->room), other.recorder());
  pair->second.async_write_some(asio::buffer("x", 1), c->written.recorder());
  c->run_ready();
  BOOST_TEST(c->read.calls == 1);
  BOOST_TEST(c->written.succeeded(1));
  BOOST_TEST(other.failed(asio::error::operation_aborted));
  BOOST_TEST(c->wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(bytes_arrive_from_a_stream_that_is_gone)
{
  simulated_ends c({.latency = 10ms});
  c.say("last words");
  {
    const simulated_stream gone(std::move(c.client));
  }
  c.time.advance(10ms);
  BOOST_TEST(c.heard() == "last words");
  BOOST_TEST(c.read.failed(asio::error::eof));
}

BOOST_AUTO_TEST_CASE(a_dropped_handler_takes_no_bytes)
{
  simulated_ends c;
  {
    asio::io_context dropping;
    c.server.async_read_some(asio::buffer(c.room),
                             asio::bind_executor(dropping, [](error_code, std::size_t) {}));
    c.say("x");
  }
  BOOST_TEST(c.heard() == "x");
}

BOOST_AUTO_TEST_CASE(cancel_all_ends_operations_and_delays_no_byte)
{
  simulated_ends c({.latency = 10ms});
  c.start_read();
  c.say("x");
  c.wheel.cancel_all();
  c.run_ready();
  BOOST_TEST(c.read.failed(asio::error::operation_aborted));
  c.start_read();
  c.time.advance(10ms);
  BOOST_TEST(c.read.succeeded(1));
}

BOOST_AUTO_TEST_CASE(an_acceptor_accepts_in_the_order_of_the_connections)
{
  support::wheel_in_virtual_time w;
  simulated_acceptor acceptor(w.wheel);
  std::vector<simulated_stream> sessions;
  asio::co_spawn(
    w.context,
    [&]() -> asio::awaitable<void> {
      for (int i = 0; i < 3; ++i) sessions.push_back(co_await acceptor.async_accept());
    },
    asio::detached);
  std::vector<simulated_stream> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(acceptor.connect({.latency = 20ms}));
    clients.back().async_write_some(asio::buffer(&"abc"[i], 1), asio::detached);
  }
  w.time.advance(20ms);
  BOOST_TEST_REQUIRE(sessions.size() == 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    char byte{};
    support::result read;
    sessions[i].async_read_some(asio::buffer(&byte, 1), read.recorder());
    w.context.restart();
    w.context.poll();
    BOOST_TEST(read.succeeded(1));
    BOOST_TEST(byte == "abc"[i]);
  }
}

BOOST_AUTO_TEST_CASE(an_acceptor_never_completes_inline_and_can_be_cancelled)
{
  support::wheel_in_virtual_time w;
  simulated_acceptor acceptor(w.wheel);
  simulated_stream waiting = acceptor.connect();
  w.context.poll();
  int calls = 0;
  error_code result;
  simulated_stream accepted(w.context);
  const auto accept = [&](error_code ec, simulated_stream s) {
    ++calls;
    result = ec;
    accepted = std::move(s);
  };
  const auto run = [&] {
    w.context.restart();
    w.context.poll();
  };
  acceptor.async_accept(accept);
  BOOST_TEST(calls == 0);
  run();
  BOOST_TEST((calls == 1 && !result && accepted.is_open()));

  asio::cancellation_signal signal;
  acceptor.async_accept(asio::bind_cancellation_slot(signal.slot(), accept));
  signal.emit(asio::cancellation_type::total);
  run();
  BOOST_TEST((calls == 2 && result == asio::error::operation_aborted && !accepted.is_open()));

  acceptor.async_accept(accept);
  acceptor.cancel();
  run();
  BOOST_TEST((calls == 3 && result == asio::error::operation_aborted));

  acceptor.async_accept(timeout_after(5s, accept));
  w.time.advance(5s);
  BOOST_TEST((calls == 4 && result == asio::error::timed_out));

  acceptor.async_accept(accept);
  acceptor.close();
  run();
  BOOST_TEST((calls == 5 && result == asio::error::operation_aborted && !acceptor.is_open()));
  acceptor.async_accept(accept);
  run();
  BOOST_TEST((calls == 6 && result == asio::error::bad_descriptor));
}

BOOST_AUTO_TEST_CASE(an_acceptor_accepts_for_another_executor)
{
  support::wheel_in_virtual_time w;
  asio::io_context other;
  simulated_acceptor acceptor(w.wheel);
  const std::array clients{acceptor.connect(), acceptor.connect(), acceptor.connect()};
  const auto strand = asio::make_strand(w.context);

  std::optional<basic_simulated_stream<asio::strand<asio::io_context::executor_type>>> of_strand;
  acceptor.async_accept(strand, [&](error_code ec, auto s) {
    BOOST_TEST((!ec && !strand.running_in_this_thread()));
    of_strand.emplace(std::move(s));
  });
  std::optional<basic_simulated_stream<asio::io_context::executor_type>> of_other;
  acceptor.async_accept(other, [&](error_code ec, auto s) {
    BOOST_TEST(!ec);
    of_other.emplace(std::move(s));
  });
  bool awaited = false;
  asio::co_spawn(
    w.context,
    [&]() -> asio::awaitable<void> {
      const auto s = co_await acceptor.async_accept(asio::any_io_executor(strand));
      awaited = s.is_open() && s.get_executor() == strand;
    },
    asio::detached);
  w.context.poll();
  BOOST_TEST_REQUIRE((of_strand && of_other && awaited));
  BOOST_TEST((of_strand->is_open() && of_strand->get_executor() == strand));
  BOOST_TEST((of_other->is_open() && &of_other->get_executor().context() == &other));

  // Their operations complete there.
  support::result read;
  char byte{};
  of_other->async_read_some(asio::buffer(&byte, 1), read.recorder());
  of_other->cancel();
  w.context.restart();
  w.context.poll();
  BOOST_TEST(read.pending());
  other.poll();
  BOOST_TEST(read.failed(asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(an_acceptor_may_have_a_default_token)
{
  support::wheel_in_virtual_time w;
  asio::use_awaitable_t<>::as_default_on_t<simulated_acceptor> acceptor(
    simulated_acceptor(w.wheel));
  auto client = acceptor.connect();
  bool accepted = false;
  asio::co_spawn(
    w.context,
    [&]() -> asio::awaitable<void> {
      auto stream = co_await acceptor.async_accept();
      accepted = stream.is_open();
    },
    asio::detached);
  w.context.poll();
  BOOST_TEST(accepted);
}

BOOST_AUTO_TEST_CASE(nothing_is_sent_to_a_closed_acceptor)
{
  support::wheel_in_virtual_time w;
  auto [clients, acceptor] = simulated_end::connect(w.wheel, {});
  auto [client, server] = simulated_end::connect(w.wheel, {});
  acceptor.close();
  BOOST_TEST(!clients.send(std::move(server)));
}

BOOST_AUTO_TEST_CASE(an_acceptor_may_be_moved)
{
  support::wheel_in_virtual_time w;
  simulated_acceptor first(w.wheel);
  int accepted = 0;
  auto accept = [&](error_code ec, const auto& stream) { accepted += !ec && stream.is_open(); };
  first.async_accept(accept);
  simulated_acceptor second(std::move(first));
  BOOST_TEST((!first.is_open() && second.is_open()));
  BOOST_CHECK_THROW(static_cast<void>(first.connect()), boost::system::system_error);
  first.async_accept(
    [](error_code ec, const auto&) { BOOST_TEST((ec == asio::error::bad_descriptor)); });
  const simulated_stream client = second.connect();
  w.time.advance(0ns);
  BOOST_TEST(accepted == 1);
  first = std::move(second);
  const simulated_stream again = first.connect();
  first.async_accept(accept);
  w.time.advance(0ns);
  BOOST_TEST(accepted == 2);
}

BOOST_AUTO_TEST_CASE(a_closed_acceptor_resets_and_refuses)
{
  support::wheel_in_virtual_time w;
  simulated_acceptor acceptor(w.wheel);
  simulated_stream early = acceptor.connect();
  support::result read;
  std::array<char, 8> room{};
  early.async_read_some(asio::buffer(room), read.recorder());
  acceptor.close();
  w.time.advance(0ns);
  BOOST_TEST(read.failed(asio::error::connection_reset));
  BOOST_CHECK_EXCEPTION(static_cast<void>(acceptor.connect()), boost::system::system_error,
                        [](const boost::system::system_error& e) {
                          return e.code() == asio::error::connection_refused;
                        });
  BOOST_TEST(w.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(an_acceptor_goes_with_connections_that_nobody_accepted)
{
  asio::io_context context;
  auto& wheel = make_wheel(context);
  std::optional<simulated_acceptor> acceptor(std::in_place, wheel);
  simulated_stream client = acceptor->connect();
  acceptor->async_accept([](error_code, simulated_stream) {});
  acceptor->async_accept([](error_code, simulated_stream) {});
  acceptor.reset();
  context.run();
  BOOST_TEST(wheel.pending() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
