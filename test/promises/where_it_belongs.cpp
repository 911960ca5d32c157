// Promise 6, where it belongs: the handler's own executor, allocator and cancellation slot.
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <optional>

#include "support/ledger.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::booking_allocator;
using support::context_with_wheel;
using support::ledger;
using support::outcome;

BOOST_AUTO_TEST_SUITE(where_it_belongs)

BOOST_AUTO_TEST_CASE(a_plain_handler_runs_in_the_wheels_context)
{
  context_with_wheel c;
  bool inside = false;
  c.wheel.async_wait(
    1ms, [&](error_code) { inside = c.context.get_executor().running_in_this_thread(); });
  support::run_to_end(c.context);
  BOOST_TEST(inside);
}

BOOST_AUTO_TEST_CASE(however_a_wait_ends_its_handler_runs_on_its_strand)
{
  const auto check = [](auto executor_of) {
    context_with_wheel c(support::with_limit(2));
    const auto strand = asio::make_strand(c.context);
    asio::cancellation_signal signal;
    outcome expired;
    outcome aborted;
    outcome refused;
    int on_strand = 0;
    const auto bound = [&](outcome& o) {
      return asio::bind_executor(executor_of(strand), [&](error_code ec) {
        o.recorder()(ec);
        if (strand.running_in_this_thread()) ++on_strand;
      });
    };
    c.wheel.async_wait(1ms, bound(expired));
    c.wheel.async_wait(1h, asio::bind_cancellation_slot(signal.slot(), bound(aborted)));
    c.wheel.async_wait(1h, bound(refused));
    signal.emit(asio::cancellation_type::total);
    support::run_to_end(c.context);
    BOOST_TEST(expired.succeeded());
    BOOST_TEST(aborted.aborted());
    BOOST_TEST(refused.error == wheel_errc::too_many_pending);
    BOOST_TEST(on_strand == 3);
  };
  check([](const auto& strand) { return strand; });
  check([](const auto& strand) { return asio::any_io_executor(strand); });
}

BOOST_AUTO_TEST_CASE(a_handler_of_a_pool_runs_in_the_pool)
{
  context_with_wheel c;
  asio::thread_pool pool(1);
  std::promise<bool> on_pool;
  c.wheel.async_wait(1ms, asio::bind_executor(pool.get_executor(), [&](error_code) {
                       on_pool.set_value(pool.get_executor().running_in_this_thread());
                     }));
  support::run_to_end(c.context);
  BOOST_TEST(on_pool.get_future().get());
}

BOOST_AUTO_TEST_CASE(a_handler_of_another_context_keeps_that_context_running)
{
  context_with_wheel c;
  asio::io_context other;
  outcome wait;
  c.wheel.async_wait(1ms, asio::bind_executor(other.get_executor(), wait.recorder()));
  BOOST_TEST(other.poll() == 0U);
  BOOST_TEST(!other.stopped());
  support::run_to_end(c.context);
  BOOST_TEST(wait.pending());
  support::run_to_end(other);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(a_wait_is_one_allocation_which_is_free_before_the_handler)
{
  for (const bool cancel : {false, true}) {
    context_with_wheel c;
    ledger books;
    std::optional<std::size_t> held;
    c.wheel.async_wait(cancel ? 1h : 0h,
                       asio::bind_allocator(booking_allocator<void>(books), [&](error_code ec) {
                         BOOST_TEST(!!ec == cancel);
                         held = books.outstanding;
                       }));
    BOOST_TEST(books.outstanding == 1U);
    if (cancel) c.wheel.cancel_all();
    support::run_to_end(c.context);
    BOOST_TEST(held.value() == 0U);
    BOOST_TEST(books.taken == 1U);
  }
}

BOOST_AUTO_TEST_CASE(memory_is_free_before_a_handler_on_a_foreign_executor)
{
  context_with_wheel c;
  ledger books;
  std::optional<std::size_t> held;
  c.wheel.async_wait(
    1ms, asio::bind_executor(asio::system_executor(),
                             asio::bind_allocator(booking_allocator<void>(books),
                                                  [&](error_code) { held = books.outstanding; })));
  support::run_to_end(c.context);
  BOOST_TEST(held.value() == 0U);
  BOOST_TEST(books.outstanding == 0U);
}

BOOST_AUTO_TEST_CASE(the_next_wait_can_reuse_the_memory_of_the_last)
{
  context_with_wheel c;
  ledger books;
  struct again {
    using allocator_type = booking_allocator<void>;
    context_with_wheel& c;
    ledger& books;
    int left;
    std::size_t& most;

    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(books); }
    void operator()(error_code)
    {
      if (left == 0) return;
      c.wheel.async_wait(0ms, again{c, books, left - 1, most});
      most = std::max(most, books.outstanding);
    }
  };
  std::size_t most = 0;
  again{c, books, 5, most}(error_code{});
  support::run_to_end(c.context);
  BOOST_TEST(books.taken == 5U);
  BOOST_TEST(most == 1U);
}

BOOST_AUTO_TEST_CASE(the_allocator_gets_its_memory_back_with_the_context)
{
  ledger books;
  {
    context_with_wheel c;
    for (const auto delay : {0ms, 5ms, 3600000ms}) {
      c.wheel.async_wait(delay, asio::bind_allocator(booking_allocator<void>(books),
                                                     [](error_code) { BOOST_TEST(false); }));
    }
    BOOST_TEST(books.outstanding == 3U);
  }
  BOOST_TEST(books.outstanding == 0U);
}

BOOST_AUTO_TEST_CASE(the_handler_may_own_its_allocators_memory)
{
  context_with_wheel c;
  bool called = false;
  auto books = std::make_shared<ledger>();
  struct owner {
    using allocator_type = booking_allocator<void>;
    std::shared_ptr<ledger> books;
    bool* called;

    [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(*books); }
    void operator()(error_code) const { *called = true; }
  };
  c.wheel.async_wait(1ms, owner{books, &called});
  c.wheel.async_wait(1h, owner{std::move(books), &called});
  support::run_until(c.context, [&] { return called; });
}

BOOST_AUTO_TEST_CASE(each_slot_ends_its_own_wait)
{
  context_with_wheel c;
  asio::cancellation_signal first;
  asio::cancellation_signal second;
  outcome aborted;
  outcome expired;
  c.wheel.async_wait(2ms, asio::bind_cancellation_slot(first.slot(), aborted.recorder()));
  c.wheel.async_wait(2ms, asio::bind_cancellation_slot(second.slot(), expired.recorder()));
  first.emit(asio::cancellation_type::terminal);
  support::run_to_end(c.context);
  BOOST_TEST(aborted.aborted());
  BOOST_TEST(expired.succeeded());
}

BOOST_AUTO_TEST_CASE(a_signal_may_go_before_its_wait)
{
  context_with_wheel c;
  auto signal = std::make_unique<asio::cancellation_signal>();
  outcome wait;
  c.wheel.async_wait(2ms, asio::bind_cancellation_slot(signal->slot(), wait.recorder()));
  signal.reset();
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE(a_signal_may_outlive_its_wait_and_the_context)
{
  asio::cancellation_signal of_expired;
  asio::cancellation_signal of_pending;
  {
    context_with_wheel c;
    outcome wait;
    c.wheel.async_wait(1ms, asio::bind_cancellation_slot(of_expired.slot(), wait.recorder()));
    support::run_to_end(c.context);
    of_expired.emit(asio::cancellation_type::terminal);
    c.wheel.async_wait(1h, asio::bind_cancellation_slot(
                             of_pending.slot(), [](error_code) { BOOST_TEST(false, "called"); }));
    BOOST_TEST(wait.succeeded());
  }
  of_expired.emit(asio::cancellation_type::terminal);
  of_pending.emit(asio::cancellation_type::terminal);
}

BOOST_AUTO_TEST_SUITE_END()
