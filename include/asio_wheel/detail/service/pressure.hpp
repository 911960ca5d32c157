// L2 service: how busy the program says it is, and whose deadlines depend on that.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>
#include <asio_wheel/detail/ground/intrusive_list.hpp>
#include <asio_wheel/detail/ground/locks.hpp>
#include <asio_wheel/detail/ground/memory.hpp>
#include <asio_wheel/detail/service/page_supply.hpp>
#include <asio_wheel/detail/service/wait_op.hpp>
#include <asio_wheel/detail/service/wheel_clock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace asio_wheel::detail {

/// What a pressure of `p` leaves of a timeout between `shortest` and `longest`.
[[nodiscard]] inline duration shortened(duration longest, duration shortest, double p) noexcept
{
  if (p == 1) return shortest;  // the product might not fit
  const double part = p * static_cast<double>((longest - shortest).count());
  return std::max(longest - duration{static_cast<duration::rep>(part)}, shortest);
}

/// What a deadline that depends on the pressure consists of. Stays where it is until it is removed.
struct follower {
  std::atomic<time_point> touched{};  ///< the timeout counts from here
  std::atomic<duration> longest{};
  std::atomic<duration> shortest{};
  moving_deadline* owner = nullptr;  ///< guarded by the pressure's lock
};

/// The pressure, and those that follow it.
///
/// Falling pressure takes no telling: deadlines that have moved are found out about when they come
/// (lazy_state.hpp). When it rises, all deadlines move forward at once, by as many different times
/// as there are timeouts, and nobody knows who has been put off by a store in the meantime. So
/// somebody has a **look** at all followers. One whose deadline is near, within a 32nd of its
/// timeout, is told to follow. The look also finds out when the next one is needed: before the
/// first of the others is due. When the longest timeout since the rise is over, all that was filed
/// under less pressure has come up, and no look is needed any more.
///
/// What a look takes is mostly memory. So followers lie side by side, with the time of their last
/// touch: half a line of memory each, where the watchdog itself would be another (bench/LOG.md).
/// They never move, since any thread may touch them.
///
/// A look is made by passes (driver.hpp), a piece in each. After it there is a pause, so that looks
/// take a small part of the time, however often the pressure rises.
class ASIO_WHEEL_EXPORT pressure {
public:
  explicit pressure(const wheel_clock& clock) noexcept : clock_(clock) {}

  [[nodiscard]] double value() const noexcept { return value_.load(std::memory_order_relaxed); }

  /// Sets it. Returns when to look; time_point::max() if there is no need.
  [[nodiscard]] time_point set(double p) noexcept;

  /// Has a piece of the look, if it is time for one. Returns when the next piece is needed;
  /// time_point::max() if none is.
  [[nodiscard]] time_point look() noexcept;
  static constexpr time_point at_once{};

  /// When the next piece is needed, which may be past.
  [[nodiscard]] time_point next_look() const noexcept { return next_look_; }

  /// From here on `owner` is told. Throws std::bad_alloc.
  [[nodiscard]] follower& add(moving_deadline& owner, time_point touched, duration longest,
                              duration shortest);
  void remove(follower& f) noexcept;

  /// For one whose owner is about to move: nobody is told meanwhile.
  [[nodiscard]] std::unique_lock<spin_lock> hush() noexcept
  {
    return std::unique_lock<spin_lock>(mutex_);
  }

private:
  // A piece takes some tens of microseconds: it ends after so many followers, or so many that
  // follow.
  static constexpr std::size_t most_seen = 4096;
  static constexpr std::size_t most_told = 64;

  static constexpr duration pause{40};  ///< after a look, for each follower

  static constexpr std::size_t word = 63;  ///< bits of a number that say who is there
  static constexpr std::size_t page_length = 2 * word;

  /// A page of memory. It goes when the last of its followers does.
  struct page : list_link {
    static list_link& link_of(page& p) noexcept { return p; }
    static page& of_link(list_link& l) noexcept { return static_cast<page&>(l); }
    static void* operator new(std::size_t) { return page_supply::instance().take(); }
    static void operator delete(void* p) noexcept { page_supply::instance().give_back(p); }

    [[nodiscard]] bool is_full() const noexcept;
    [[nodiscard]] bool is_empty() const noexcept { return used[0] == 0 && used[1] == 0; }

    std::array<std::uint64_t, 2> used{};  ///< a bit for each follower that is somebody's
    std::size_t place = 0;                ///< among the pages
    alignas(64) std::array<follower, page_length> followers;
  };
  static_assert(sizeof(page) == page_size);

  void add_page();
  void remove_page(page& p) noexcept;
  [[nodiscard]] std::size_t look_at(const page& p, time_point now) noexcept;
  [[nodiscard]] bool is_near(const follower& f, time_point now) noexcept;
  void end_look(time_point now) noexcept;
  [[nodiscard]] time_point end_of_pause() const noexcept;

  const wheel_clock& clock_;
  std::atomic<double> value_{0};

  /// When a look is needed. Read without the lock: who makes it earlier asks for a pass afterwards.
  std::atomic<time_point> next_look_{time_point::max()};

  spin_lock mutex_;  ///< guards all below; taken before the shards' locks
  std::vector<std::unique_ptr<page>> pages_;
  intrusive_list<page> with_room_;
  std::size_t size_ = 0;  ///< followers
  time_point last_rise_{};

  std::size_t left_ = 0;      ///< of a look: it has yet to come to the first so many pages
  bool risen_again_ = false;  ///< since it began
  time_point next_near_{};    ///< when the first of those that it has seen will be near
  time_point ended_{};        ///< when the latest did
};

}  // namespace asio_wheel::detail
