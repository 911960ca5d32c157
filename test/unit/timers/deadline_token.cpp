// Tokens with a deadline: every kind of token inside, the pipe, and every shape of signature.
#include <boost/asio/append.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>

#include "support/manual_operation.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/socket_pair.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::awaitable;
using support::context_with_wheel;
using support::outcome;

namespace {

struct timer_on_wheel : context_with_wheel {
  asio::steady_timer timer{context, 1h};
};

/// Posts its completion at once, with the given arguments.
template <class... Signatures>
struct initiate_with {
  using executor_type = asio::io_context::executor_type;
  [[nodiscard]] executor_type get_executor() const noexcept { return ex; }

  template <class Handler, class... Args>
  void operator()(Handler&& handler, Args... args) const
  {
    asio::post(ex, [h = std::forward<Handler>(handler),
                    values = std::make_tuple(std::move(args)...)]() mutable {
      std::apply([&](auto&&... v) { std::move(h)(std::move(v)...); }, std::move(values));
    });
  }

  executor_type ex;
};

template <class... Signatures, class Token, class... Args>
auto complete_with(asio::io_context& context, Token&& token, Args... args)
{
  return asio::async_initiate<Token, Signatures...>(
    initiate_with<Signatures...>{context.get_executor()}, token, std::move(args)...);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(token_with_deadline)

BOOST_AUTO_TEST_CASE(without_a_token_is_awaited)
{
  timer_on_wheel c;
  support::run_coroutine(c.context, [&]() -> awaitable<void> {
    error_code ec;
    try {
      co_await c.timer.async_wait(timeout_after(1ms));
    } catch (const boost::system::system_error& e) {
      ec = e.code();
    }
    BOOST_TEST(ec == asio::error::timed_out);
  });
}

BOOST_AUTO_TEST_CASE(takes_awaiting_tokens)
{
  timer_on_wheel c;
  support::run_coroutine(c.context, [&]() -> awaitable<void> {
    auto& t = c.timer;
    auto [a] = co_await t.async_wait(timeout_after(1ms, asio::as_tuple(asio::use_awaitable)));
    auto [b] = co_await t.async_wait(timeout_after(1ms, asio::as_tuple(asio::deferred)));
    auto [d] = co_await t.async_wait(asio::as_tuple(cancel_after(1ms, asio::use_awaitable)));
    BOOST_TEST(d == asio::error::operation_aborted);
    error_code e;
    co_await t.async_wait(timeout_after(1ms, asio::redirect_error(asio::use_awaitable, e)));
    for (const error_code& ec : {a, b, e}) BOOST_TEST(ec == asio::error::timed_out);
  });
}

BOOST_AUTO_TEST_CASE(keeps_the_default_token_of_an_object)
{
  context_with_wheel c;
  support::run_coroutine(c.context, [&]() -> awaitable<void> {
    auto timer = asio::use_awaitable.as_default_on(asio::steady_timer(c.context, 2ms));
    awaitable<void> wait = timer.async_wait(cancel_after(1h));
    co_await std::move(wait);
    BOOST_TEST(c.wheel.pending() == 0U);
  });
}

BOOST_AUTO_TEST_CASE(can_be_deferred_and_used_twice)
{
  timer_on_wheel c;
  auto operation = c.timer.async_wait(timeout_after(1ms, asio::deferred));
  outcome first;
  outcome second;
  operation(first.recorder());
  support::run_to_end(c.context);
  std::move(operation)(second.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(first.error == asio::error::timed_out);
  BOOST_TEST(second.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(counts_from_the_initiation_of_a_deferred_operation)
{
  timer_on_wheel c;
  c.timer.expires_after(5ms);
  auto operation = c.timer.async_wait(cancel_after(1h));
  BOOST_TEST(c.wheel.pending() == 0U);
  std::move(operation)([](error_code) {});
  BOOST_TEST(c.wheel.pending() == 1U);
}

BOOST_AUTO_TEST_CASE(pipes_deferred_operations)
{
  timer_on_wheel c;
  outcome lvalue;
  outcome rvalue;
  auto operation = c.timer.async_wait(asio::deferred);
  (operation | timeout_after(1ms))(lvalue.recorder());
  c.timer.async_wait(asio::deferred) | timeout_after(1ms, rvalue.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(lvalue.error == asio::error::timed_out);
  BOOST_TEST(rvalue.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(pipes_whatever_takes_a_token)
{
  timer_on_wheel c;
  const auto operation = [&](auto&& token) {
    return c.timer.async_wait(std::forward<decltype(token)>(token));
  };
  outcome done;
  (operation | cancel_after(1h) | timeout_after(c.wheel, 1ms))(done.recorder());
  support::run_to_end(c.context);
  BOOST_TEST(done.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(pipes_into_a_coroutine)
{
  context_with_wheel c;
  support::pair_socket reader(c.context);
  support::pair_socket writer(c.context);
  support::connect_pair(reader, writer);
  support::run_coroutine(c.context, [&]() -> awaitable<void> {
    char data[8];
    asio::write(writer, asio::buffer("hello", 5));
    const auto n =
      co_await (reader.async_read_some(asio::buffer(data), asio::deferred) | cancel_after(20s));
    BOOST_TEST(std::string(data, n) == "hello");
  });
}

BOOST_AUTO_TEST_CASE(makes_a_future)
{
  timer_on_wheel c;
  auto late = c.timer.async_wait(timeout_after(1ms, asio::use_future));
  asio::steady_timer soon(c.context, 1ms);
  auto in_time = soon.async_wait(timeout_after(20s, asio::use_future));
  support::run_to_end(c.context);
  in_time.get();
  BOOST_CHECK_EXCEPTION(late.get(), boost::system::system_error,
                        [](const auto& e) { return e.code() == asio::error::timed_out; });
}

BOOST_AUTO_TEST_CASE(may_be_detached)
{
  timer_on_wheel c;
  c.timer.async_wait(cancel_after(1ms, asio::detached));
  BOOST_TEST(c.wheel.pending() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(c.wheel.stats().expired == 1U);
}

BOOST_AUTO_TEST_CASE(combines_with_what_is_bound_outside)
{
  timer_on_wheel c;
  const auto strand = asio::make_strand(c.context);
  asio::cancellation_signal signal;
  bool there = false;
  c.timer.async_wait(asio::bind_executor(
    strand,
    cancel_after(c.wheel, 1h, asio::bind_cancellation_slot(signal.slot(), [&](error_code ec) {
                   there = strand.running_in_this_thread() && ec;
                 }))));
  signal.emit(asio::cancellation_type::terminal);
  support::run_to_end(c.context);
  BOOST_TEST(there);
}

BOOST_AUTO_TEST_CASE(without_any_executor_needs_a_wheel)
{
  context_with_wheel c;
  const auto initiate = [&](auto handler) { asio::post(c.context, std::move(handler)); };
  int calls = 0;
  const auto start = [&](auto token) {
    asio::async_initiate<decltype(token), void()>(initiate, token);
  };
  BOOST_CHECK_THROW(start(cancel_after(1h, [&] { ++calls; })), std::logic_error);
  start(cancel_after(c.wheel, 1h, [&] { ++calls; }));
  start(cancel_after(1h, asio::bind_executor(c.context.get_executor(), [&] { ++calls; })));
  BOOST_TEST(c.wheel.pending() == 2U);
  support::run_to_end(c.context);
  BOOST_TEST(calls == 2);
}

// Without an executor the handler runs in the wheel's context, never inside emit().
BOOST_AUTO_TEST_CASE(without_any_executor_ends_in_the_wheels_context)
{
  context_with_wheel c;
  const auto initiate = [](auto handler) {
    auto slot = asio::get_associated_cancellation_slot(handler);
    auto kept = std::make_shared<decltype(handler)>(std::move(handler));
    slot.assign([kept](asio::cancellation_type) { std::move (*kept)(); });
  };
  int calls = 0;
  const auto start = [&](asio::cancellation_slot slot) {
    auto token = cancel_after(c.wheel, 1ms, asio::bind_cancellation_slot(slot, [&] {
                                ++calls;
                                BOOST_TEST(c.context.get_executor().running_in_this_thread());
                              }));
    asio::async_initiate<decltype(token), void()>(initiate, token);
  };
  start({});
  support::run_to_end(c.context);
  BOOST_TEST(calls == 1);

  asio::cancellation_signal signal;
  start(signal.slot());
  signal.emit(asio::cancellation_type::terminal);
  BOOST_TEST(calls == 1);
  support::run_to_end(c.context);
  BOOST_TEST(calls == 2);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(may_be_an_lvalue_or_constant)
{
  timer_on_wheel c;
  outcome first;
  outcome second;
  auto token = timeout_after(1ms, first.recorder());
  c.timer.async_wait(token);
  c.timer.async_wait(token);
  const auto constant = timeout_after(1ms, second.recorder());
  c.timer.async_wait(constant);
  support::run_to_end(c.context);
  BOOST_TEST(first.calls == 2);
  BOOST_TEST(first.error == asio::error::timed_out);
  BOOST_TEST(second.error == asio::error::timed_out);
}

BOOST_AUTO_TEST_CASE(takes_a_handler_that_only_moves)
{
  timer_on_wheel c;
  int value = 0;
  c.timer.async_wait(
    cancel_after(1ms, [&, p = std::make_unique<int>(3)](error_code) { value = *p; }));
  support::run_to_end(c.context);
  BOOST_TEST(value == 3);
}

BOOST_AUTO_TEST_CASE(nests_to_any_depth)
{
  timer_on_wheel c;
  outcome done;
  c.timer.async_wait(
    cancel_after(1h, timeout_after(1ms, cancel_after(2h, timeout_after(3h, done.recorder())))));
  BOOST_TEST(c.wheel.pending() == 4U);
  support::run_to_end(c.context);
  BOOST_TEST(done.error == asio::error::timed_out);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(ends_a_coroutine_that_was_spawned)
{
  timer_on_wheel c;
  error_code inside;
  bool ended = false;
  asio::co_spawn(
    c.context,
    [&]() -> awaitable<void> {
      co_await c.timer.async_wait(asio::redirect_error(asio::use_awaitable, inside));
    },
    cancel_after(2ms, [&](std::exception_ptr) { ended = true; }));
  support::run_to_end(c.context);
  BOOST_TEST(ended);
  BOOST_TEST(inside == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_CASE(hears_the_cancellation_of_a_coroutine_around_it)
{
  using namespace asio::experimental::awaitable_operators;
  timer_on_wheel c;
  asio::steady_timer soon(c.context, 2ms);
  support::run_coroutine(c.context, [&]() -> awaitable<void> {
    const auto first = co_await (c.timer.async_wait(cancel_after(1h, asio::use_awaitable)) ||
                                 soon.async_wait(cancel_after(1h, asio::use_awaitable)));
    BOOST_TEST(first.index() == 1U);
    BOOST_TEST(c.wheel.pending() == 0U);
  });
}

BOOST_AUTO_TEST_CASE(serves_channels)
{
  context_with_wheel c;
  asio::experimental::channel<void(error_code, std::string)> channel(c.context, 1);
  error_code late;
  channel.async_receive(timeout_after(1ms, [&](error_code ec, std::string) { late = ec; }));
  support::run_to_end(c.context);
  std::string got;
  channel.async_receive(timeout_after(20s, [&](error_code, std::string s) { got = std::move(s); }));
  channel.async_send({}, "word", cancel_after(20s, [](error_code) {}));
  support::run_to_end(c.context);
  BOOST_TEST(!!late);
  BOOST_TEST(got == "word");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(signature_with_deadline)

BOOST_AUTO_TEST_CASE(may_be_empty)
{
  context_with_wheel c;
  int calls = 0;
  asio::post(c.context, cancel_after(1h, [&] { ++calls; }));
  asio::post(c.context, cancel_after(0s, [&] { ++calls; }));
  support::run_to_end(c.context);
  BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(may_have_arguments_of_any_number_and_kind)
{
  context_with_wheel c;
  std::string seen;
  complete_with<void(std::unique_ptr<int>, std::string, int)>(
    c.context,
    cancel_after(1h, [&](std::unique_ptr<int> p, const std::string& s,
                         int i) { seen = s + std::to_string(*p) + std::to_string(i); }),
    std::make_unique<int>(4), std::string("s"), 5);
  support::run_to_end(c.context);
  BOOST_TEST(seen == "s45");
}

BOOST_AUTO_TEST_CASE(may_be_one_of_several)
{
  struct either {
    void operator()(error_code ec) const { *seen = ec ? -1 : 1; }
    void operator()(error_code, int i) const { *seen = i; }
    int* seen;
  };
  context_with_wheel c;
  int one = 0;
  int two = 0;
  complete_with<void(error_code), void(error_code, int)>(c.context, timeout_after(1h, either{&one}),
                                                         error_code{});
  complete_with<void(error_code), void(error_code, int)>(c.context, timeout_after(1h, either{&two}),
                                                         error_code{}, 7);
  support::run_to_end(c.context);
  BOOST_TEST(one == 1);
  BOOST_TEST(two == 7);
}

BOOST_AUTO_TEST_CASE(takes_what_converts_to_its_arguments)
{
  context_with_wheel c;
  error_code seen;
  complete_with<void(error_code)>(c.context, timeout_after(1h, [&](error_code ec) { seen = ec; }),
                                  asio::error::eof);
  support::run_to_end(c.context);
  BOOST_TEST(seen == asio::error::eof);
}

BOOST_AUTO_TEST_CASE(takes_signatures_with_qualifiers)
{
  context_with_wheel c;
  int calls = 0;
  const auto count = [&](error_code ec) { calls += ec ? 0 : 1; };
  complete_with<void(error_code)&>(c.context, timeout_after(1h, count), error_code());
  complete_with<void(error_code) &&>(c.context, timeout_after(1h, count), error_code());
  complete_with<void(error_code) noexcept>(c.context, timeout_after(1h, count), error_code());
  complete_with<void(error_code)& noexcept>(c.context, cancel_after(1h, count), error_code());
  complete_with<void(error_code)&& noexcept>(c.context, cancel_after(1h, count), error_code());
  support::run_to_end(c.context);
  BOOST_TEST(calls == 5);
}

// The parameters of an initiation are made before it begins, and may throw: nothing has started.
BOOST_AUTO_TEST_CASE(goes_with_an_initiation_whose_parameters_throw)
{
  struct throws_when_copied {
    throws_when_copied() = default;
    throws_when_copied(const throws_when_copied&) { throw std::bad_alloc(); }
  };
  context_with_wheel c;
  const auto alive = std::make_shared<int>();
  const auto initiate = [](auto, auto) {};
  const auto start = [&](auto token) {
    asio::async_initiate<decltype(token), void(error_code)>(initiate, token, throws_when_copied());
  };
  wheel_watchdog dog(c.wheel, 1ms);
  const auto handler =
    asio::bind_executor(c.context, [alive](error_code) { BOOST_TEST(false, "called"); });
  BOOST_CHECK_THROW(start(cancel_after(1ms, handler)), std::bad_alloc);
  BOOST_CHECK_THROW(start(timeout_after(1ms, handler)), std::bad_alloc);
  BOOST_CHECK_THROW(start(abandon_after(1ms, handler)), std::bad_alloc);
  BOOST_CHECK_THROW(start(dog.guard(handler)), std::bad_alloc);
  BOOST_TEST(c.wheel.pending() == 0U);
  support::run_to_end(c.context);
  BOOST_TEST(alive.use_count() == 2);  // here, and in the program's own handler
}

BOOST_AUTO_TEST_SUITE_END()
