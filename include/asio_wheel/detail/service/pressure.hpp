// L2 service: how busy the program says it is, and who wants to know.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/ground/intrusive_list.hpp>
#include <asio_wheel/detail/ground/spin_lock.hpp>
#include <asio_wheel/detail/ground/tick.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>

namespace asio_wheel::detail {

/// Something with a deadline that depends on the pressure.
class under_pressure : private list_link {
public:
  under_pressure() = default;
  under_pressure(const under_pressure&) = delete;
  under_pressure& operator=(const under_pressure&) = delete;

  /// The pressure has risen: what is pending may be due earlier. Returns a tick to wake up at.
  [[nodiscard]] virtual tick follow() noexcept = 0;

  [[nodiscard]] static list_link& link_of(under_pressure& u) noexcept { return u; }
  [[nodiscard]] static under_pressure& of_link(list_link& link) noexcept
  {
    return static_cast<under_pressure&>(link);
  }

protected:
  ~under_pressure() = default;
};

/// The pressure, and the list of those that follow it.
///
/// Falling pressure takes no telling: deadlines that have moved are found out about when they come
/// (lazy_state.hpp). When it rises, whoever is in the list is told, a few at a time: the list turns
/// under the lock, so that those who come and go meanwhile are in nobody's way.
class ASIO_WHEEL_EXPORT pressure {
public:
  /// How many are told at a time: some ten microseconds of work.
  static constexpr std::size_t piece = 64;

  [[nodiscard]] double value() const noexcept { return value_.load(std::memory_order_relaxed); }

  /// Sets it. Whether tell_some() is to be called until it returns false, and nobody does so yet.
  [[nodiscard]] bool set(double p) noexcept;

  /// Tells the next ones, and sets `when` to a tick to wake up at. Whether there are more.
  [[nodiscard]] bool tell_some(tick& when) noexcept;

  void add(under_pressure& u) noexcept;
  void remove(under_pressure& u) noexcept;

  /// For someone in the list who is about to move: nobody is told meanwhile.
  [[nodiscard]] std::unique_lock<spin_lock> hush() noexcept
  {
    return std::unique_lock<spin_lock>(mutex_);
  }

private:
  std::atomic<double> value_{0};
  spin_lock mutex_;  ///< guards all below; taken before the shards' locks
  intrusive_list<under_pressure> followers_;
  std::size_t count_ = 0;
  std::size_t untold_ = 0;
  bool telling_ = false;
};

}  // namespace asio_wheel::detail
