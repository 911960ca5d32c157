// L2 engine: the life of the service.
#include <asio_wheel/wheel_timer_service.hpp>

#include "detail/engine/core.hpp"
#include "detail/engine/fail_invalid.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>

#if __has_include(ASIO_WHEEL_ASIO(config.hpp))
#include ASIO_WHEEL_ASIO(config.hpp)
#define ASIO_WHEEL_HAS_CONFIG
#endif

namespace asio_wheel {
namespace {

// A new context may get the address of a destroyed context, but only after the old wheel was
// destroyed.
constinit std::atomic<std::uint64_t> wheels_gone{0};

struct remembered_wheel {
  const asio::execution_context* context = nullptr;
  wheel_timer_service* wheel = nullptr;
  std::uint64_t wheels_gone = 0;
};
constinit thread_local remembered_wheel recent;

[[noreturn]] asio::any_io_executor executor_unknown()
{
  throw std::logic_error(
    "wheel_timer_service: this context has no wheel, and use_service cannot tell its executor; "
    "call make_wheel(context) or use_wheel(context)");
}

/// What `asio::config`, which newer Asio has, says of the wheel of a context.
wheel_options configured_options([[maybe_unused]] asio::execution_context& context)
{
  wheel_options options;
#if defined(ASIO_WHEEL_HAS_CONFIG)
  const asio::config config(context);
  const auto get = [&](const char* key, auto value) { return config.get("wheel", key, value); };
  using std::chrono::microseconds;
  options.tick =
    microseconds(get("tick_usec", std::chrono::duration_cast<microseconds>(options.tick).count()));
  options.slots = get("slots", options.slots);
  options.shards = get("shards", options.shards);
  options.max_pending = get("max_pending", options.max_pending);
  if (get("coarse_clock", false)) options.clock = clock_source::coarse;
#endif
  return options;
}

}  // namespace

wheel_timer_service* detail::recent_wheel(const asio::execution_context& context) noexcept
{
  const bool valid =
    recent.context == &context && recent.wheels_gone == wheels_gone.load(std::memory_order_relaxed);
  return valid ? recent.wheel : nullptr;
}

void detail::remember_wheel(const asio::execution_context& context,
                            wheel_timer_service& wheel) noexcept
{
  recent = {&context, &wheel, wheels_gone.load(std::memory_order_relaxed)};
}

asio::execution_context::id wheel_timer_service::id;

// The steady_timer inside the driver makes its own service here, before this service is registered.
// Contexts destroy the latest service first, so the timer's service outlives the driver.
wheel_timer_service::wheel_timer_service(asio::execution_context& context, const executor_type& ex,
                                         const wheel_options& options)
  : asio::execution_context::service(context),
    core_(new detail::wheel_core(context, ex, options))
{
  intrusive_ptr_add_ref(core_);
}

wheel_timer_service::wheel_timer_service(asio::execution_context& context, const executor_type& ex)
  : wheel_timer_service(context, ex, configured_options(context))
{}

wheel_timer_service::wheel_timer_service(asio::io_context& context)
  : wheel_timer_service(context, context.get_executor())
{}

wheel_timer_service::wheel_timer_service(asio::execution_context& context)
  : wheel_timer_service(context, executor_unknown())
{}

// Closes here, too: a service that loses the race to be registered is destroyed without shutdown().
wheel_timer_service::~wheel_timer_service()
{
  wheels_gone.fetch_add(1, std::memory_order_relaxed);
  core_->close();
  intrusive_ptr_release(core_);
}

wheel_timer_service::time_point wheel_timer_service::now() const noexcept
{
  return core_->clock.start_of_delay();
}

wheel_timer_service::executor_type wheel_timer_service::get_executor() const noexcept
{
  return core_->executor;
}

const wheel_options& wheel_timer_service::options() const noexcept
{
  return core_->options;
}

std::size_t wheel_timer_service::pending() const noexcept
{
  return core_->pending();
}

double wheel_timer_service::pressure() const noexcept
{
  return core_->pressure_on().value();
}

wheel_stats wheel_timer_service::stats() const noexcept
{
  return core_->stats();
}

std::size_t wheel_timer_service::cancel_all()
{
  return core_->cancel_all();
}

void wheel_timer_service::set_pressure(double p)
{
  if (!(p >= 0 && p <= 1))
    detail::fail_invalid("wheel_timer_service: the pressure is %.12g; it must be from 0 to 1", p);
  core_->set_pressure(p);
}

void wheel_timer_service::shutdown()
{
  core_->close();
}

void wheel_timer_service::notify_fork(asio::execution_context::fork_event event)
{
  if (event == asio::execution_context::fork_child) core_->go_on_in_child();
}

}  // namespace asio_wheel
