// L2 engine: the wheel that a thread remembers.
#include <asio_wheel/detail/engine/recent_wheel.hpp>

#include <atomic>
#include <cstdint>

namespace asio_wheel::detail {
namespace {

// A new context may get the address of a destroyed context, but only after the old wheel was
// destroyed.
constinit std::atomic<std::uint64_t> wheels_gone{0};

struct memory {
  const asio::execution_context* context = nullptr;
  wheel_timer_service* wheel = nullptr;
  std::uint64_t wheels_gone = 0;
};
constinit thread_local memory latest;

}  // namespace

wheel_timer_service* recent_wheel(const asio::execution_context& context) noexcept
{
  const bool valid =
    latest.context == &context && latest.wheels_gone == wheels_gone.load(std::memory_order_relaxed);
  return valid ? latest.wheel : nullptr;
}

void remember_wheel(const asio::execution_context& context, wheel_timer_service& wheel) noexcept
{
  latest = {&context, &wheel, wheels_gone.load(std::memory_order_relaxed)};
}

void clear_recent_wheels() noexcept
{
  wheels_gone.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace asio_wheel::detail
