// A thread from outside that uses the worlds in every way while their own threads run them.
#pragma once

#include "soak/world.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/use_future.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

namespace soak {

class visitor {
public:
  visitor(books& b, std::deque<world>& worlds, std::uint64_t seed)
    : books_(b),
      worlds_(worlds),
      random_(seed)
  {
    for (world& w : worlds_) {
      for (int i = 0; i < 32; ++i) timers_.emplace_back(w.wheel);
    }
  }

  /// Runs until `going` is false.
  void run(const std::atomic<bool>& going)
  {
    for (std::uint64_t round = 1; going; ++round) {
      for (world& w : worlds_) visit(w);
      churn();
      if (round % 16 == 0) emit(any_world());
      if (round % 64 == 0) hurry(any_world());
      if (round % 256 == 0) overfill(any_world());
      if (round % 512 == 0) live_shortly();
      if (round % 512 == 0) sit_and_wait(any_world());
      // The worlds' threads complete what this one starts, and may be slower.
      while (books_.open() > most_open && going) std::this_thread::sleep_for(1ms);
    }
  }

private:
  static constexpr std::uint64_t most_open = 10'000;

  template <class Range>
  [[nodiscard]] auto& any_of(Range& range)
  {
    return range[random_() % range.size()];
  }
  [[nodiscard]] world& any_world() { return any_of(worlds_); }
  [[nodiscard]] auto recorder(ticket t)
  {
    return [t = std::move(t)](error_code ec) mutable { t.end(ec); };
  }

  /// Touches, cancels and sets sessions, and schedules tasks by key.
  void visit(world& w)
  {
    for (int i = 0; i < 8; ++i) {
      auto& s = any_of(w.watchdogs);
      if (s.touched_by_visitors) s.dog.touch();
    }
    any_of(w.watchdogs).dog.set_timeout(watchdog_session::least_timeout * (1 + random_() % 4));
    if (auto& s = any_of(w.heartbeats); s.touched_by_visitors) {
      s.beat.sent();
      s.beat.received();
    }
    any_of(w.timers).timer.expires_after(some_delay(random_));
    any_of(w.timers).timer.expires_at(w.wheel.now() + 1ms);
    any_of(w.timers).timer.cancel_one();
    any_of(w.timers).timer.cancel();

    // A task that is refused, cancelled or ended by cancel_all() is destroyed, which also counts.
    const int key = static_cast<int>(random_() % 64);
    const duration delay = some_delay(random_);
    w.scheduler.run_after(
      key, delay, [t = w.open(kind::task, earliest(w.wheel, delay))]() mutable { t.end({}); });
    w.scheduler.run_every(
      64 + key, 3ms, [] {}, 1 + random_() % 5);
    w.scheduler.cancel(static_cast<int>(random_() % 128));
  }

  /// Starts timers of its own, and cancels most of them.
  void churn()
  {
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      world& w = worlds_[i / 32];
      const duration delay = some_delay(random_);
      const time_point at = earliest(w.wheel, delay);
      timers_[i].expires_after(delay);
      timers_[i].async_wait(recorder(w.open(kind::timer, at)));
    }
    world& w = any_world();
    asio_wheel::wheel_timer a(w.wheel, 2ms);
    a.async_wait(recorder(w.open(kind::timer)));
    a.async_wait(counted(books_, recorder(w.open(kind::timer))));
    asio_wheel::wheel_timer b(std::move(a));
    a = asio_wheel::wheel_timer(w.wheel, 0ms);
    a.async_wait(recorder(w.open(kind::timer)));
  }

  /// Cancels waits through slots that belong to this thread and go before the waits.
  void emit(world& w)
  {
    std::array<asio::cancellation_signal, 8> signals;
    for (auto& signal : signals) {
      w.wheel.async_wait(some_delay(random_),
                         asio::bind_cancellation_slot(signal.slot(), recorder(w.open(kind::wait))));
    }
    for (auto& signal : signals) signal.emit(asio::cancellation_type::total);
  }

  /// Resets and cancels what sessions wait for. Rare, since it disturbs the rest.
  void hurry(world& w)
  {
    any_of(w.intervals).ticks.reset();
    any_of(w.intervals).ticks.cancel();
    any_of(w.watchdogs).dog.cancel();
    any_of(w.heartbeats).beat.cancel();
  }

  /// Starts more waits than a world with a limit has room for.
  void overfill(world& w)
  {
    for (int i = 0; i < 500; ++i)
      w.wheel.async_wait(5ms, recorder(w.open(kind::wait, earliest(w.wheel, 5ms))));
  }

  /// Makes and destroys a context, perhaps in an earlier one's memory, with waits that never end.
  void live_shortly()
  {
    std::vector<asio_wheel::wheel_timer> survivors;
    asio::io_context context;
    auto& wheel = asio_wheel::use_wheel(context);
    for (int i = 0; i < 32; ++i) {
      auto& timer = survivors.emplace_back(context.get_executor(), 1min * (i % 4));
      timer.async_wait(recorder({books_, kind::timer, wheel}));
      wheel.async_wait(1h, recorder({books_, kind::wait, wheel}));
    }
    asio_wheel::virtual_time time(wheel);
    time.advance(90s);
  }

  /// Blocks this thread until a wait ends.
  void sit_and_wait(world& w)
  {
    ticket t = w.open(kind::wait, earliest(w.wheel, 1ms));
    error_code ec;
    try {
      w.wheel.async_wait(1ms, asio::use_future).get();
    } catch (const boost::system::system_error& e) {
      ec = e.code();
    }
    t.end(ec);
  }

  books& books_;
  std::deque<world>& worlds_;
  random_source random_;
  std::vector<asio_wheel::wheel_timer> timers_;
};

}  // namespace soak
