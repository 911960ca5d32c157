// Every operation of the library, each started in the same way, and a scene to start it in.
#pragma once

#include <array>
#include <asio_wheel.hpp>
#include <asio_wheel/drop_in.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "support/manual_operation.hpp"
#include "support/wheel.hpp"

namespace faults {

namespace asio = boost::asio;
using asio_wheel::wheel_timer_service;

/// All operations take this long.
inline constexpr std::chrono::milliseconds a_while{1};

struct plain_wait {
  explicit plain_wait(wheel_timer_service& w) : wheel(w) {}

  template <class Handler>
  void start(Handler&& h)
  {
    wheel.async_wait(a_while, std::forward<Handler>(h));
  }

  wheel_timer_service& wheel;
};

struct wait_of_a_timer {
  explicit wait_of_a_timer(wheel_timer_service& wheel) : timer(wheel, a_while) {}

  template <class Handler>
  void start(Handler&& h)
  {
    timer.async_wait(std::forward<Handler>(h));
  }

  asio_wheel::wheel_timer timer;
};

struct wait_of_another_clock {
  explicit wait_of_another_clock(wheel_timer_service& wheel) : timer(wheel, a_while) {}

  template <class Handler>
  void start(Handler&& h)
  {
    timer.async_wait(std::forward<Handler>(h));
  }

  asio_wheel::drop_in::system_timer timer;
};

/// Posts its handlers, which takes memory.
struct wait_with_an_executor {
  using executor = decltype(asio::require(std::declval<asio::io_context::executor_type>(),
                                          asio::execution::blocking.never));

  explicit wait_with_an_executor(wheel_timer_service& wheel)
    : timer(wheel, asio::require(*wheel.get_executor().target<asio::io_context::executor_type>(),
                                 asio::execution::blocking.never))
  {
    timer.expires_after(a_while);
  }

  template <class Handler>
  void start(Handler&& h)
  {
    timer.async_wait(std::forward<Handler>(h));
  }

  asio_wheel::basic_wheel_timer<executor> timer;
};

struct operation_that_is_cancelled {
  explicit operation_that_is_cancelled(wheel_timer_service& w) : wheel(w) {}

  template <class Handler>
  void start(Handler&& h)
  {
    auto& operation = operations.emplace_back(wheel.get_executor());
    operation.seen.reserve(1);
    operation.async_run(asio_wheel::cancel_after(wheel, a_while, std::forward<Handler>(h)));
  }

  wheel_timer_service& wheel;
  std::deque<support::manual_operation> operations;
};

struct operation_that_times_out {
  explicit operation_that_times_out(wheel_timer_service& w) : wheel(w) {}

  template <class Handler>
  void start(Handler&& h)
  {
    auto& operation = operations.emplace_back(wheel.get_executor(), std::chrono::hours{1});
    operation.async_wait(asio_wheel::timeout_after(a_while, std::forward<Handler>(h)));
  }

  wheel_timer_service& wheel;
  std::deque<asio::steady_timer> operations;
};

/// The operation ignores its cancellation.
struct operation_that_is_abandoned {
  explicit operation_that_is_abandoned(wheel_timer_service& w) : wheel(w) {}

  template <class Handler>
  void start(Handler&& h)
  {
    auto& operation = operations.emplace_back(wheel.get_executor());
    operation.obeys = false;
    operation.seen.reserve(1);
    operation.async_run(asio_wheel::abandon_after(a_while, std::forward<Handler>(h)));
  }

  wheel_timer_service& wheel;
  std::deque<support::manual_operation> operations;
};

struct tick_of_an_interval {
  explicit tick_of_an_interval(wheel_timer_service& wheel)
    : interval(wheel, wheel.now() + a_while, a_while)
  {}

  template <class Handler>
  void start(Handler&& h)
  {
    interval.async_tick(std::forward<Handler>(h));
  }

  asio_wheel::wheel_interval interval;
};

struct expiry_of_a_watchdog {
  explicit expiry_of_a_watchdog(wheel_timer_service& wheel) : watchdog(wheel, a_while) {}

  template <class Handler>
  void start(Handler&& h)
  {
    watchdog.async_expired(std::forward<Handler>(h));
  }

  asio_wheel::wheel_watchdog watchdog;
};

struct event_of_a_heartbeat {
  explicit event_of_a_heartbeat(wheel_timer_service& wheel)
    : heartbeat(wheel, {.interval = a_while, .max_missed = 3})
  {}

  template <class Handler>
  void start(Handler&& h)
  {
    heartbeat.async_next(std::forward<Handler>(h));
  }

  asio_wheel::heartbeat heartbeat;
};

/// The scheduler calls its function and ignores the function's associations.
struct task_of_a_scheduler {
  explicit task_of_a_scheduler(wheel_timer_service& wheel) : scheduler(wheel) {}

  template <class Function>
  void start(Function&& f)
  {
    scheduler.run_after(++key, a_while, std::forward<Function>(f));
  }

  asio_wheel::keyed_scheduler<int> scheduler;
  int key = 0;
};

using every_asynchronous_operation =
  std::tuple<plain_wait, wait_of_a_timer, wait_of_another_clock, wait_with_an_executor,
             operation_that_is_cancelled, operation_that_times_out, operation_that_is_abandoned,
             tick_of_an_interval, expiry_of_a_watchdog, event_of_a_heartbeat>;
using every_operation = decltype(std::tuple_cat(std::declval<every_asynchronous_operation>(),
                                                std::declval<std::tuple<task_of_a_scheduler>>()));

/// The counts of a case: the handlers that were started, that were called and that live.
struct tally {
  std::size_t started = 0;
  std::size_t called = 0;
  std::shared_ptr<int> life = std::make_shared<int>();

  [[nodiscard]] std::size_t living() const
  {
    return static_cast<std::size_t>(life.use_count()) - 1;
  }
};

/// A handler of any signature that counts itself.
template <std::size_t Size = 1>
struct counted {
  explicit counted(tally& c) : books(&c), life(c.life) {}

  template <class... Args>
  void operator()(const Args&...)
  {
    ++books->called;
  }

  tally* books;
  std::shared_ptr<int> life;
  std::array<std::byte, Size> room{};
};

/// A wheel with one kind of operation.
template <class Operation>
struct scene : support::context_with_wheel, tally {
  void make() { operation.emplace(wheel); }

  /// Starts an operation with this handler.
  template <class Handler>
  void start(Handler&& h)
  {
    operation->start(std::forward<Handler>(h));
    ++started;
  }

  std::optional<Operation> operation;
};

}  // namespace faults
