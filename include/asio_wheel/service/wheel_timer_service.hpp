// L2 service: the service that plugs a timing wheel into an execution context.
#pragma once

#include <asio_wheel/ground/export.hpp>
#include <asio_wheel/service/asio.hpp>
#include <asio_wheel/service/driver.hpp>
#include <asio_wheel/service/shard_set.hpp>
#include <asio_wheel/service/wait_handler.hpp>
#include <asio_wheel/service/wheel_clock.hpp>
#include <asio_wheel/service/wheel_errc.hpp>
#include <asio_wheel/service/wheel_options.hpp>
#include <asio_wheel/service/wheel_stats.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace asio_wheel {

/// A timing wheel in an execution context.
///
/// One `steady_timer` on a strand drives all the waits of the context, and their handlers are
/// dispatched from functions posted to the context's executor, in batches: there is no thread of
/// its own. Make it with make_wheel() or use_wheel(); it is destroyed with its context.
///
/// Thread safety: every member may be called from any thread at any time. No handler is called
/// from inside any of them.
class ASIO_WHEEL_EXPORT wheel_timer_service : public asio::execution_context::service {
public:
  using executor_type = asio::any_io_executor;  ///< that of handlers without one of their own
  using clock_type = asio_wheel::clock_type;    ///< the clock of all deadlines
  using duration = asio_wheel::duration;        ///< of the clock
  using time_point = asio_wheel::time_point;    ///< of the clock

  /// By which a context knows the service.
  static asio::execution_context::id id;

  /// For `make_service`. Prefer make_wheel(), which fills in the executor: that of the context
  /// itself, and not a strand, or all handlers without an executor of their own would share it.
  /// Throws std::invalid_argument that names the first bad option and its range.
  wheel_timer_service(asio::execution_context& context, const executor_type& ex,
                      const wheel_options& options = {});

  /// For `use_service(io_context&)`: with the default options.
  explicit wheel_timer_service(asio::io_context& context);

  /// For `use_service(execution_context&)`. Of the context nothing is known, so this works only
  /// where the wheel exists already; otherwise throws std::logic_error. Use use_wheel().
  explicit wheel_timer_service(asio::execution_context& context);

  /// To be left to the context.
  ~wheel_timer_service();

  /// Waits for `delay` to pass.
  ///
  /// A delay of zero or less completes at once, as if posted; duration::max() never does.
  ///
  /// @param delay  how long, from the initiation; rounded up to the wheel's next tick.
  /// @param token  completion signature `void(error_code)`; `asio::deferred` by default, so
  ///               `co_await wheel.async_wait(5ms)` is complete.
  /// Errors: success when the delay has passed, never before; asio::error::operation_aborted if
  ///   cancelled; wheel_errc::too_many_pending.
  /// Executor: the handler's associated executor, or the service's.
  /// Cancellation: terminal, partial and total, from any thread, by the associated slot.
  /// Exceptions: std::bad_alloc, and what posting to the context throws; nothing is started then.
  template <class Token = asio::deferred_t>
  auto async_wait(duration delay, Token&& token = {})
  {
    return asio::async_initiate<Token, void(error_code)>(initiate_wait(*this), token, delay);
  }

  /// Waits until `deadline`. One that has passed completes at once, as if posted;
  /// time_point::max() never comes. All else as above.
  template <class Token = asio::deferred_t>
  auto async_wait(time_point deadline, Token&& token = {})
  {
    return asio::async_initiate<Token, void(error_code)>(initiate_wait(*this), token, deadline);
  }

  /// The time by which deadlines are judged.
  [[nodiscard]] time_point now() const noexcept { return shards_->clock().now(); }

  /// The executor of handlers that have none of their own.
  [[nodiscard]] executor_type get_executor() const noexcept { return shards_->executor(); }

  /// As given, with slots and shards filled in and rounded.
  [[nodiscard]] const wheel_options& options() const noexcept { return shards_->options(); }

  /// Waits whose end is not decided or whose completion is not under way. Takes every shard's
  /// lock.
  [[nodiscard]] std::size_t pending() const noexcept { return shards_->pending(); }

  /// Cancels all pending waits: they complete with operation_aborted. Returns how many. Waits
  /// that other threads start meanwhile may or may not be among them.
  std::size_t cancel_all() { return shards_->cancel_all(); }

  /// A reading of the counters. Takes every shard's lock.
  [[nodiscard]] wheel_stats stats() const noexcept { return shards_->stats(); }

  /// What timers of this wheel share with it.
  [[nodiscard]] shard_set& shards() const noexcept { return *shards_; }

private:
  class initiate_wait {
  public:
    using executor_type = wheel_timer_service::executor_type;

    explicit initiate_wait(wheel_timer_service& service) noexcept : service_(&service) {}
    [[nodiscard]] executor_type get_executor() const noexcept { return service_->get_executor(); }

    template <class Handler, class Time>
    void operator()(Handler&& handler, Time time) const
    {
      shard_set& shards = *service_->shards_;
      std::decay_t<Handler> h(std::forward<Handler>(handler));
      launch_wait<wait_op>(h, shards.executor(), no_executor{}, true,
                           [&](wait_op& op) { shards.start(op, time); });
    }

  private:
    wheel_timer_service* service_;
  };

  void shutdown() override;

  boost::intrusive_ptr<shard_set> shards_;
  driver driver_;
};

}  // namespace asio_wheel
