// L3 timers: Asio's timers of all clocks, name for name, with their waits on the wheel.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/engine/clock_state.hpp>
#include <asio_wheel/detail/engine/timer_state.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include ASIO_WHEEL_ASIO(basic_waitable_timer.hpp)

#include <chrono>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace asio_wheel {

namespace detail {
/// True if the timers of this Asio have `expires_from_now()` and the overloads with an error_code.
template <class Timer>
inline constexpr bool has_deprecated_members = requires(const Timer& t)
{
  t.expires_from_now();
};

/// The wheel's own clock needs no second check.
template <class Clock, class WaitTraits>
using state_by = std::conditional_t<std::same_as<Clock, clock_type> &&
                                      std::same_as<WaitTraits, asio::wait_traits<Clock>>,
                                    timer_state, clock_state<Clock, WaitTraits>>;

template <class Clock, class WaitTraits, class Executor>
using timer_by = timer_object<Clock, WaitTraits, state_by<Clock, WaitTraits>, Executor>;
}  // namespace detail

/// Asio's timers by their names: a program changes one namespace.
///
///     namespace timers = asio_wheel::drop_in;  // was boost::asio
///     timers::system_timer timer(context, std::chrono::system_clock::now() + 8h);
namespace drop_in {

/// A waitable timer of any clock, with the template parameters and every member of Asio's class of
/// this name. Deprecated members are here if this version of Asio has them.
///
/// A wait never succeeds before its expiry by `Clock`. It is one wait of the wheel. When the
/// wheel's clock has counted it down, the wheel reads `Clock`; if it is too early, the wait goes
/// on. If `Clock` jumps ahead, the wait ends within five minutes, as with Asio. If
/// to_wait_duration() of `WaitTraits` returns less than is left, the wheel reads `Clock` again
/// after that time, or at the next tick if it is zero. All else is as with basic_wheel_timer, the
/// timer for steady_clock.
///
/// A virtual_time moves only the wheel's clock. To move `Clock` with it, make `Clock` return the
/// wheel's time.
///
/// `Clock::now()` and `WaitTraits` must not throw, use a timer, or wait for a thread that does: the
/// wheel calls them under a lock, as Asio does. If there is no memory for a wait to go on, it ends
/// with wheel_errc::too_many_pending.
template <class Clock, class WaitTraits = asio::wait_traits<Clock>,
          class Executor = asio::any_io_executor>
class basic_waitable_timer : public detail::timer_by<Clock, WaitTraits, Executor> {
  using base = detail::timer_by<Clock, WaitTraits, Executor>;
  static constexpr bool has_deprecated =
    detail::has_deprecated_members<asio::basic_waitable_timer<Clock, WaitTraits, Executor>>;

public:
  using typename base::duration;
  using typename base::time_point;

  /// The timer type for another executor.
  template <class OtherExecutor>
  struct rebind_executor {
    /// a timer of `OtherExecutor`
    using other = basic_waitable_timer<Clock, WaitTraits, OtherExecutor>;
  };

  using base::base;

  /// Takes over the other timer's expiry and its pending waits. The other timer stays on its wheel
  /// and executor, as a timer that has expired.
  basic_waitable_timer(basic_waitable_timer&& other) = default;

  /// Cancels what is pending here, then takes over.
  basic_waitable_timer& operator=(basic_waitable_timer&& other) = default;

  /// Takes over from a timer of another executor. Converts the executor.
  template <std::convertible_to<Executor> OtherExecutor>
  basic_waitable_timer(basic_waitable_timer<Clock, WaitTraits, OtherExecutor>&& other)
    : base(std::move(other))
  {}

  /// Takes over from a timer of another executor. Converts the executor.
  template <std::convertible_to<Executor> OtherExecutor>
  basic_waitable_timer& operator=(basic_waitable_timer<Clock, WaitTraits, OtherExecutor>&& other)
  {
    return *this = basic_waitable_timer(std::move(other));
  }

  /// Cancels what is pending.
  ~basic_waitable_timer() = default;

  using base::cancel;
  using base::cancel_one;
  using base::expires_at;

  /// As cancel(); clears `ec`. This and all below are deprecated.
  std::size_t cancel(error_code& ec) requires has_deprecated
  {
    ec.clear();
    return cancel();
  }

  /// As cancel_one(); clears `ec`.
  std::size_t cancel_one(error_code& ec) requires has_deprecated
  {
    ec.clear();
    return cancel_one();
  }

  /// As expiry().
  [[nodiscard]] time_point expires_at() const requires has_deprecated { return this->expiry(); }

  /// As expires_at() with an expiry; clears `ec`.
  std::size_t expires_at(const detail::any_time_point<time_point>& deadline,
                         error_code& ec) requires has_deprecated
  {
    ec.clear();
    return expires_at(deadline);
  }

  /// What is left until the expiry; negative once it has passed.
  [[nodiscard]] duration expires_from_now() const requires has_deprecated
  {
    return detail::difference(this->expiry(), Clock::now());
  }

  /// As expires_after().
  std::size_t expires_from_now(const detail::any_duration<duration>& delay) requires has_deprecated
  {
    return this->expires_after(delay);
  }

  /// As expires_after(); clears `ec`.
  std::size_t expires_from_now(const detail::any_duration<duration>& delay,
                               error_code& ec) requires has_deprecated
  {
    ec.clear();
    return this->expires_after(delay);
  }
};

using steady_timer = basic_waitable_timer<std::chrono::steady_clock>;  ///< as wheel_timer
using system_timer = basic_waitable_timer<std::chrono::system_clock>;  ///< by the time of day
using high_resolution_timer =
  basic_waitable_timer<std::chrono::high_resolution_clock>;  ///< by the finest clock

}  // namespace drop_in
}  // namespace asio_wheel
