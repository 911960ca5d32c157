// What the timers, wheel_watchdog, heartbeat and wheel_interval have in common: where their
// handlers run, when their memory goes, and how a wait ends.
#include <array>
#include <asio_wheel/drop_in.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include "support/due.hpp"
#include "support/ledger.hpp"
#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::cancellation_type;
using support::context_with_wheel;
using support::outcome;

namespace {

using any = asio::any_io_executor;

// How to make an object whose wait completes after `delay`, and how to wait on it.

template <class... Results>
using erased_handler = asio::any_completion_handler<void(error_code, Results...)>;

struct timer {
  using erased = erased_handler<>;

  template <class Executor = any>
  static auto make(wheel_place<Executor> place, wheel_timer::duration delay)
  {
    return basic_wheel_timer<Executor>(place, delay);
  }
  static auto wait(auto& object, auto&& token)
  {
    return object.async_wait(std::forward<decltype(token)>(token));
  }
  /// As steady_timer's, which has no default token on an older Asio.
  static auto wait(auto& object)
  {
    using executor = typename std::decay_t<decltype(object)>::executor_type;
    return object.async_wait(detail::default_token_for<executor>());
  }
};

/// A timer by the time of day.
struct system_timer : timer {
  template <class Executor = any>
  static auto make(wheel_place<Executor> place, wheel_timer::duration delay)
  {
    using clock = std::chrono::system_clock;
    return drop_in::basic_waitable_timer<clock, asio::wait_traits<clock>, Executor>(place, delay);
  }
};

struct watchdog {
  using erased = erased_handler<>;

  template <class Executor = any>
  static auto make(wheel_place<Executor> place, wheel_timer::duration delay)
  {
    return basic_wheel_watchdog<Executor>(place, delay);
  }
  static auto wait(auto& object, auto&&... token)
  {
    return object.async_expired(std::forward<decltype(token)>(token)...);
  }
  static void put_off(auto& object) { object.touch(); }
};

struct heart {
  using erased = erased_handler<heartbeat_event>;

  template <class Executor = any>
  static auto make(wheel_place<Executor> place, wheel_timer::duration delay)
  {
    return basic_heartbeat<Executor>(place, {delay, 1000});
  }
  static auto wait(auto& object, auto&&... token)
  {
    return object.async_next(std::forward<decltype(token)>(token)...);
  }
  static void put_off(auto& object)
  {
    object.sent();
    object.received();
  }
};

struct interval {
  using erased = erased_handler<wheel_timer::time_point>;

  template <class Executor = any>
  static auto make(wheel_place<Executor> place, wheel_timer::duration delay)
  {
    return basic_wheel_interval<Executor>(place, place.wheel.now() + delay, delay);
  }
  static auto wait(auto& object, auto&&... token)
  {
    return object.async_tick(std::forward<decltype(token)>(token)...);
  }
};

using all = std::tuple<timer, system_timer, watchdog, heart, interval>;
using not_composed = std::tuple<timer, system_timer, watchdog, heart>;
using put_off_by_use = std::tuple<watchdog, heart>;

// Of a wheel alone no typed executor can be made.
static_assert(std::is_convertible_v<wheel_timer_service&, wheel_place<any>>);
static_assert(
  !std::is_convertible_v<wheel_timer_service&, wheel_place<asio::io_context::executor_type>>);

template <class Kind>
using object_of = decltype(Kind::make(std::declval<wheel_place<any>>(), 1ms));

}  // namespace

BOOST_AUTO_TEST_SUITE(every_object_that_waits)

BOOST_AUTO_TEST_CASE_TEMPLATE(sits_where_it_is_put, kind, all)
{
  context_with_wheel c(support::with_tick(3ms));
  const auto strand = asio::make_strand(c.context);
  auto on_context = kind::make({c.context}, 1h);
  auto on_executor = kind::make({c.context.get_executor()}, 1h);
  auto on_strand = kind::make({strand}, 1h);
  auto on_wheel = kind::make({c.wheel}, 1h);
  auto on_both = kind::make({c.wheel, strand}, 1h);
  auto typed = kind::make(wheel_place<asio::io_context::executor_type>(c.context), 1h);
  BOOST_TEST((on_wheel.get_executor() == c.wheel.get_executor()));
  BOOST_TEST((on_strand.get_executor() == strand));
  BOOST_TEST((on_both.get_executor() == strand));
  BOOST_TEST((typed.get_executor() == c.context.get_executor()));
  std::array<outcome, 6> waits;
  for (std::size_t i = 0; auto* each : {&on_context, &on_executor, &on_strand, &on_wheel, &on_both})
    kind::wait(*each, waits[i++].recorder());
  kind::wait(typed, waits[5].recorder());
  BOOST_TEST(c.wheel.pending() == 6U);
  BOOST_TEST(c.wheel.cancel_all() == 6U);
  support::run_to_end(c.context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(may_outlive_its_context, kind, all)
{
  const auto alive = std::make_shared<int>(0);
  asio::cancellation_signal signal;
  std::optional<object_of<kind>> object;
  {
    context_with_wheel c;
    object.emplace(kind::make({c.wheel}, 1h));
    const auto handler = [alive](error_code, const auto&...) { ++*alive; };
    kind::wait(*object, handler);
    kind::wait(*object, asio::bind_cancellation_slot(signal.slot(), handler));
  }
  BOOST_TEST(alive.use_count() == 1);
  signal.emit(cancellation_type::terminal);
  if constexpr (requires { kind::put_off(*object); }) kind::put_off(*object);
  object->cancel();
  BOOST_TEST(*alive == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(may_go_with_the_handler_of_a_wait_after_its_context, kind,
                              not_composed)
{
  std::unique_ptr<object_of<kind>> object;
  {
    context_with_wheel c;
    object = std::make_unique<object_of<kind>>(kind::make({c.wheel}, 1h));
  }
  auto& of_handler = *object;  // the last to know of its wheel
  kind::wait(of_handler, [owner = std::move(object)](error_code, const auto&...) {});
  BOOST_TEST(!object);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(takes_its_waits_along_when_it_moves, kind, all)
{
  context_with_wheel c;
  std::array<outcome, 3> waits;
  auto to = kind::make({c.wheel}, 1h);
  kind::wait(to, waits[2].recorder());
  {
    auto first = kind::make({c.wheel}, 3ms);
    kind::wait(first, waits[0].recorder());
    kind::wait(first, waits[1].recorder());
    auto second = std::move(first);
    to = std::move(second);
  }
  support::run_to_end(c.context);
  BOOST_TEST(waits[0].succeeded());
  BOOST_TEST(waits[1].succeeded());
  BOOST_TEST(waits[2].aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(takes_its_waits_along_to_another_executor, kind, all)
{
  context_with_wheel c;
  std::array<outcome, 2> waits;
  const auto strand = asio::make_strand(c.context);
  auto typed = kind::make(wheel_place<asio::strand<asio::io_context::executor_type>>(strand), 3ms);
  kind::wait(typed, waits[0].recorder());
  auto awaitable = asio::use_awaitable.as_default_on(std::move(typed));
  const auto ex = awaitable.get_executor();
  BOOST_TEST((ex == strand));
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    co_await kind::wait(awaitable);
    BOOST_TEST(waits[0].succeeded());
  });
  {
    object_of<kind> erased(std::move(awaitable));
    BOOST_TEST((erased.get_executor() == any(ex)));
    kind::wait(erased, waits[1].recorder());
  }
  support::run_to_end(c.context);
  BOOST_TEST(!waits[1].pending());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(assigned_to_itself_changes_nothing, kind, all)
{
  context_with_wheel c;
  auto object = kind::make({c.wheel}, 3ms);
  outcome wait;
  kind::wait(object, wait.recorder());
  auto& same = object;
  object = std::move(same);
  BOOST_TEST(c.wheel.pending() == 1U);
  support::run_to_end(c.context);
  BOOST_TEST(wait.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_awaited_without_a_token, kind, all)
{
  context_with_wheel c;
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    const auto before = c.wheel.now();
    auto object = kind::make({c.wheel}, 2ms);
    co_await kind::wait(object);
    BOOST_TEST((c.wheel.now() - before >= 2ms));
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(fulfils_a_future, kind, all)
{
  context_with_wheel c;
  auto object = kind::make({c.wheel}, 1ms);
  auto future = kind::wait(object, asio::use_future);
  support::run_to_end(c.context);
  BOOST_CHECK_NO_THROW(future.get());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(calls_handlers_on_its_strand_however_they_end, kind, all)
{
  context_with_wheel c;
  using strand_type = asio::strand<asio::io_context::executor_type>;
  const strand_type strand(c.context.get_executor());
  auto expires = kind::make({strand}, 1ms);
  auto typed = kind::make(wheel_place<strand_type>(strand), 1ms);
  auto cancelled = kind::make({strand}, 1h);
  int on_strand = 0;
  const auto handler = [&](error_code, const auto&...) {
    on_strand += strand.running_in_this_thread() ? 1 : 0;
  };
  kind::wait(expires, handler);
  kind::wait(typed, handler);
  kind::wait(cancelled, handler);
  cancelled.cancel();
  support::run_to_end(c.context);
  BOOST_TEST(on_strand == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(prefers_the_handlers_own_executor, kind, all)
{
  context_with_wheel c;
  const auto of_handler = asio::make_strand(c.context);
  auto object = kind::make({asio::make_strand(c.context)}, 1ms);
  bool there = false;
  kind::wait(object, asio::bind_executor(of_handler, [&](error_code, const auto&...) {
               there = of_handler.running_in_this_thread();
             }));
  support::run_to_end(c.context);
  BOOST_TEST(there);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(calls_an_erased_handler_on_its_own_executor, kind, all)
{
  context_with_wheel c;
  const auto strand = asio::make_strand(c.context);
  int there = 0;
  const auto handler = [&](error_code, const auto&...) {
    there += strand.running_in_this_thread() ? 1 : 0;
  };
  auto expires = kind::make({strand}, 1ms);
  auto cancelled = kind::make({strand}, 1h);
  auto typed = kind::make(wheel_place<std::decay_t<decltype(strand)>>(strand), 1ms);
  kind::wait(expires, typename kind::erased(handler));
  kind::wait(cancelled, typename kind::erased(handler));
  kind::wait(typed, typename kind::erased(handler));
  cancelled.cancel();
  support::run_to_end(c.context);
  BOOST_TEST(there == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(never_completes_inline, kind, all)
{
  context_with_wheel c;
  auto object = kind::make({c.wheel}, 1ms);
  support::spin(c.wheel, 2ms);
  outcome wait;
  asio::post(c.context, [&] {
    kind::wait(object, asio::bind_executor(asio::system_executor(), wait.recorder()));
    object.cancel();
    BOOST_TEST(wait.pending());
  });
  support::run_to_end(c.context);
  BOOST_TEST(wait.calls == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(allocates_once_and_frees_before_the_handler, kind, all)
{
  for (int way = 0; way < 4; ++way) {
    const bool cancelled = way % 2 == 0;
    const bool on_strand = way < 2;
    context_with_wheel c;
    support::ledger books;
    std::optional<std::size_t> held;
    const any executor = on_strand ? any(asio::make_strand(c.context)) : c.context.get_executor();
    auto object = kind::make({executor}, cancelled ? 1h : 1ms);
    kind::wait(object,
               asio::bind_allocator(support::booking_allocator<void>(books),
                                    [&](error_code, const auto&...) { held = books.outstanding; }));
    BOOST_TEST(books.outstanding == 1U);
    if (cancelled) object.cancel();
    support::run_to_end(c.context);
    BOOST_TEST(held.value() == 0U);
    BOOST_TEST(books.taken == 1U);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(allocates_once_however_often_it_is_put_off, kind, put_off_by_use)
{
  for (const bool cancelled : {false, true}) {
    context_with_wheel c;
    support::ledger books;
    auto object = kind::make({c.wheel}, 2ms);
    outcome wait;
    kind::wait(object,
               asio::bind_allocator(support::booking_allocator<void>(books), wait.recorder()));
    for (int i = 0; i < 3; ++i) {
      support::spin(c.wheel, 3ms, [&] { kind::put_off(object); });
      c.context.poll();
    }
    if (cancelled) object.cancel();
    support::run_to_end(c.context);
    BOOST_TEST(wait.calls == 1);
    BOOST_TEST(books.taken == 1U);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ends_a_wait_by_each_type_of_cancellation, kind, all)
{
  for (const auto type : {cancellation_type::terminal, cancellation_type::partial,
                          cancellation_type::total, cancellation_type::all}) {
    context_with_wheel c;
    auto object = kind::make({c.wheel}, 1h);
    asio::cancellation_signal signal;
    outcome wait;
    outcome other;
    kind::wait(object, other.recorder());
    kind::wait(object, asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
    signal.emit(cancellation_type::none);
    BOOST_TEST(c.wheel.pending() == 2U);
    signal.emit(type);
    BOOST_TEST(c.wheel.pending() == 1U);
    BOOST_TEST(wait.pending());
    support::run_until(c.context, [&] { return !wait.pending(); });
    BOOST_TEST(wait.aborted());
    BOOST_TEST(other.pending());
    object.cancel();
    support::run_to_end(c.context);
    BOOST_TEST(other.aborted());
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ends_its_waits_when_it_is_destroyed, kind, all)
{
  context_with_wheel c;
  std::array<outcome, 3> waits;
  {
    auto object = kind::make({c.wheel}, 1h);
    for (auto& wait : waits) kind::wait(object, wait.recorder());
  }
  BOOST_TEST(c.wheel.pending() == 0U);
  for (const auto& wait : waits) BOOST_TEST(wait.pending());
  support::run_to_end(c.context);
  for (const auto& wait : waits) BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ends_its_wait_when_another_thread_cancels, kind, all)
{
  for (int way = 0; way < 4; ++way) {
    context_with_wheel c;
    auto object = std::make_unique<object_of<kind>>(kind::make({c.context}, 1h));
    asio::cancellation_signal signal;
    outcome wait;
    kind::wait(*object, asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
    std::thread other([&] {
      switch (way) {
        case 0: object->cancel(); break;
        case 1: c.wheel.cancel_all(); break;
        case 2: asio::post(c.context, [&] { signal.emit(cancellation_type::total); }); break;
        default: object.reset();
      }
    });
    support::run_to_end(c.context);
    other.join();
    BOOST_TEST(wait.aborted());
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ends_its_wait_at_once_by_a_signal_from_another_thread, kind,
                              not_composed)
{
  context_with_wheel c;
  auto object = kind::make({c.context}, 1h);
  asio::cancellation_signal signal;
  outcome wait;
  kind::wait(object, asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
  std::thread other([&] { signal.emit(cancellation_type::total); });
  support::run_to_end(c.context);
  other.join();
  BOOST_TEST(wait.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(ends_a_wait_that_is_due_in_every_way, kind, not_composed)
{
  for (int way = 0; way < 5; ++way) {
    context_with_wheel c;
    asio::cancellation_signal signal;
    outcome wait;
    std::optional<object_of<kind>> object;
    support::act_while_due(
      c,
      [&] {
        object.emplace(kind::make({c.wheel}, 1ms));
        kind::wait(*object, asio::bind_cancellation_slot(signal.slot(), wait.recorder()));
      },
      [&] {
        const std::size_t others = c.wheel.pending() - 1;
        switch (way) {
          case 0: BOOST_TEST(object->cancel() == 1U); break;
          case 1: signal.emit(cancellation_type::terminal); break;
          case 2: object.reset(); break;
          case 3: {
            auto other = std::move(*object);
            BOOST_TEST(object->cancel() == 0U);
            break;
          }
          default: BOOST_TEST(c.wheel.cancel_all() == others + 1);
        }
        BOOST_TEST(wait.pending());
        if (object) BOOST_TEST(object->cancel() == 0U);
      });
    BOOST_TEST(wait.aborted());
    BOOST_TEST((way == 4 || c.wheel.stats().cancelled == 1U));
    BOOST_TEST(c.wheel.pending() == 0U);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(passes_on_that_the_wheel_is_full, kind, all)
{
  context_with_wheel c(support::with_limit(1));
  auto object = kind::make({c.wheel}, 1h);
  outcome kept;
  outcome refused;
  kind::wait(object, kept.recorder());
  kind::wait(object, refused.recorder());
  c.context.poll();
  BOOST_TEST(kept.pending());
  BOOST_TEST(refused.calls == 1);
  BOOST_TEST(refused.error == wheel_errc::too_many_pending);
  object.cancel();
  support::run_to_end(c.context);
  BOOST_TEST(kept.aborted());
}

BOOST_AUTO_TEST_SUITE_END()
