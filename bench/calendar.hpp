// The least that keeps waits and calls their handlers: the floor of whatever does more.
#pragma once

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <detail/base/memory.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "asio_timers.hpp"
#include "measure.hpp"

namespace bench {

// A wait, whatever its handler is.
class wait_base {
public:
  // Frees the wait and calls its handler.
  virtual void complete(const error_code& ec) = 0;

protected:
  ~wait_base() = default;
};

template <class Handler>
class wait final : public wait_base {
public:
  static wait& make(Handler h) { return *std::construct_at(memory{}.allocate(1), std::move(h)); }

  explicit wait(Handler h) : handler_{std::move(h)} {}

  void complete(const error_code& ec) override
  {
    Handler h{std::move(handler_)};
    std::destroy_at(this);
    memory{}.deallocate(this, 1);
    std::move(h)(ec);
  }

private:
  using memory = asio::recycling_allocator<wait>;

  Handler handler_;
};

// Keeps the waits of each millisecond in an array, wakes up when one is over, by a steady_timer on
// a strand, and calls their handlers. Takes waits for up to eight seconds, from one thread, and
// cancels none.
class calendar {
public:
  explicit calendar(asio::io_context& context)
    : strand_{context.get_executor()},
      timer_{context},
      ticks_(words * 64)
  {}

  void add(time_point deadline, wait_base& w)
  {
    const auto tick = std::max(passed_ + 1, ceil<milliseconds>(deadline - origin_).count());
    ticks_[place(tick)].push_back(&w);
    occupied_[place(tick) / 64] |= std::uint64_t{1} << tick % 64;
    if (tick < next_ && !passing_) wake_at(tick);
  }

private:
  static constexpr std::size_t words = 128;
  static constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

  static std::size_t place(std::int64_t tick)
  {
    return static_cast<std::size_t>(tick) % (words * 64);
  }

  void wake_at(std::int64_t tick)
  {
    next_ = tick;
    if (tick == none) return;
    timer_.expires_at(origin_ + milliseconds{tick});
    timer_.async_wait(asio::bind_executor(strand_, [this](const error_code& ec) {
      if (!ec) pass();
    }));
  }

  void pass()
  {
    passing_ = true;
    const auto now = floor<milliseconds>(steady_clock::now() - origin_).count();
    for (auto tick = next_; tick <= now; tick = first_behind(tick)) {
      passed_ = tick;
      occupied_[place(tick) / 64] &= ~(std::uint64_t{1} << tick % 64);
      call(ticks_[place(tick)]);
    }
    passing_ = false;
    wake_at(first_behind(passed_));
  }

  static void call(std::vector<wait_base*>& waits)
  {
    constexpr std::size_t ahead = 8;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (i + ahead < waits.size()) asio_wheel::detail::prefetch(waits[i + ahead]);
      waits[i]->complete({});
    }
    waits.clear();
  }

  // The first tick behind this one that has waits.
  std::int64_t first_behind(std::int64_t tick) const
  {
    const auto from = tick + 1;
    auto word = place(from) / 64;
    auto begin = from / 64 * 64;
    std::uint64_t set = occupied_[word] & ~std::uint64_t{0} << from % 64;
    for (std::size_t i = 0; set == 0; ++i) {
      if (i == words) return none;
      word = (word + 1) % words;
      begin += 64;
      set = occupied_[word];
    }
    return begin + std::countr_zero(set);
  }

  const time_point origin_ = steady_clock::now();
  asio::strand<asio::io_context::executor_type> strand_;
  asio::steady_timer timer_;
  std::vector<std::vector<wait_base*>> ticks_;
  std::array<std::uint64_t, words> occupied_{};
  std::int64_t passed_ = 0, next_ = none;
  bool passing_ = false;
};

}  // namespace bench
