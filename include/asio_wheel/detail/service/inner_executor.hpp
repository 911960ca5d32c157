// L2 service: the context's executor as the driver's strand sees it.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/service/driven.hpp>
#include <asio_wheel/detail/service/native_executor.hpp>
#include <asio_wheel/detail/service/task_memory.hpp>

#include <cstddef>
#include <utility>

namespace asio_wheel::detail {

/// What the executor's copies share.
struct inner_resources {
  const native_executor& native;
  asio::execution_context& context;
  driven& whom;  ///< whose passes the strand makes
  task_memory memory = {};
};

/// The inner executor of the strand, as Asio calls it.
///
/// What it runs is a **turn**: functions of the strand, and behind them, when the strand is free
/// again, the delivery of what they found due, by the same thread.
///
/// The timer's completion is a turn where it is, if the context completes its timers itself. What
/// the strand asks not to block (`Posts`) goes through the context, from memory that is set aside:
/// a strand that cannot have memory for its own function, behind those it was given, never runs
/// again.
template <bool Posts = false>
class inner_executor {
public:
  explicit inner_executor(inner_resources& resources) noexcept : resources_(&resources) {}

  template <class Function>
  void execute(Function f) const
  {
    const native_executor& native = resources_->native;
    if (Posts || !native.counts_timers()) {
      native.post(asio::bind_allocator(query(asio::execution::allocator),
                                       [f = std::move(f), &whom = resources_->whom]() mutable {
                                         f();
                                         whom.follow_pass();
                                       }));
    } else {
      f();
      resources_->whom.follow_pass();
    }
  }

  [[nodiscard]] inner_executor<true> require(asio::execution::blocking_t::never_t) const noexcept
  {
    return inner_executor<true>(*resources_);
  }
  [[nodiscard]] static constexpr asio::execution::blocking_t query(
    asio::execution::blocking_t) noexcept
  {
    if constexpr (Posts)
      return asio::execution::blocking_t::never_t();
    else
      return asio::execution::blocking_t::possibly_t();
  }
  [[nodiscard]] asio::execution_context& query(asio::execution::context_t) const noexcept
  {
    return resources_->context;
  }
  template <class T>
  [[nodiscard]] task_allocator query(asio::execution::allocator_t<T>) const noexcept
  {
    return &resources_->memory;
  }

  friend bool operator==(const inner_executor&, const inner_executor&) noexcept = default;

private:
  inner_resources* resources_;
};

}  // namespace asio_wheel::detail
