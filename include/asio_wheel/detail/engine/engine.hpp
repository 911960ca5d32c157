// L2 engine: the seam: what users' code may ask of a wheel. The answers are compiled into the
// library.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/config.hpp>
#include <asio_wheel/detail/engine/wait_op.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <typeinfo>

namespace asio_wheel::detail {

/// A wheel: its shards, its clock and its driver. The service and every timer count as owners.
class wheel_core;

ASIO_WHEEL_EXPORT void intrusive_ptr_add_ref(const wheel_core* c) noexcept;
ASIO_WHEEL_EXPORT void intrusive_ptr_release(const wheel_core* c) noexcept;

/// The wheel that a shard belongs to.
[[nodiscard]] ASIO_WHEEL_EXPORT wheel_core& core_of(const shard& sh) noexcept;

/// The executor of the wheel's context.
[[nodiscard]] ASIO_WHEEL_EXPORT const asio::any_io_executor& wheel_executor(
  const wheel_core& c) noexcept;

/// The deadline `delay` from now.
[[nodiscard]] ASIO_WHEEL_EXPORT time_point deadline_after(const wheel_core& c,
                                                          duration delay) noexcept;

/// now() + `delay`; saturates.
[[nodiscard]] ASIO_WHEEL_EXPORT time_point now_plus(const wheel_core& c, duration delay) noexcept;

/// Returns true if the deadline is now or earlier.
[[nodiscard]] ASIO_WHEEL_EXPORT bool has_passed(const wheel_core& c, time_point deadline) noexcept;

// Start a wait without a timer; the wheel takes it over. Throw std::bad_alloc, with nothing changed
// and the wait not taken over.

ASIO_WHEEL_EXPORT void start_wait(wheel_core& c, wait_op& op, duration delay);
ASIO_WHEEL_EXPORT void start_wait(wheel_core& c, wait_op& op, time_point deadline);

// A wait on its way through the executor of its handler.

/// Decides how a sent wait ends, on the handler's executor. Returns none if it was filed again.
[[nodiscard]] ASIO_WHEEL_EXPORT wait_outcome begin_wait(wait_op& op, shard& sh,
                                                        time_point taken_up) noexcept;

/// An executor has dropped a sent wait: makes it unreachable, and leaves it to the caller to
/// destroy.
ASIO_WHEEL_EXPORT void drop_wait(wait_op& op, shard& sh) noexcept;

/// An executor has refused a wait: the next pass sends it again. Returns false if the shard is
/// closed: treat the wait as dropped then.
[[nodiscard]] ASIO_WHEEL_EXPORT bool keep_refused_wait(wait_op& op, shard& sh) noexcept;

/// How many operations go on without their handlers.
[[nodiscard]] ASIO_WHEEL_EXPORT std::atomic<std::size_t>& abandoned_on(wheel_core& c) noexcept;

/// The answer of a wait to wait_request::describe: its handler's type; null if types have no names
/// in this program.
ASIO_WHEEL_EXPORT void describe_wait(shard& sh, const std::type_info* handler) noexcept;

/// What the handler of a refused wait gets.
[[nodiscard]] ASIO_WHEEL_EXPORT error_code too_many_pending() noexcept;

/// Tells the driver which wake-up `sh` no longer needs, if any.
[[gnu::noinline]] ASIO_WHEEL_EXPORT void tell_driver(shard& sh) noexcept;

/// If it is true, the context of the wheel does not go while it lasts.
class ASIO_WHEEL_EXPORT posting_guard {
public:
  explicit posting_guard(wheel_core& c) noexcept;
  posting_guard(const posting_guard&) = delete;
  posting_guard& operator=(const posting_guard&) = delete;
  ~posting_guard();

  explicit operator bool() const noexcept { return core_ != nullptr; }

private:
  wheel_core* core_;
};

}  // namespace asio_wheel::detail
