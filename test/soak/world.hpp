// A context with a wheel, threads that run it, and a constant number of sessions. Each session has
// one pending operation at any time, whose end starts the next.
#pragma once

#include "soak/books.hpp"
#include "support/earliest.hpp"
#include "support/socket_pair.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace soak {

using namespace std::chrono_literals;
using duration = asio_wheel::wheel_timer_service::duration;
using asio_wheel::missed_tick;
using support::earliest;

/// SplitMix64. Seeding one with the numbers of another makes an independent one.
class random_source {
public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}

  std::uint64_t operator()()
  {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

private:
  std::uint64_t state_;
};

/// Thrown by handlers on purpose.
struct deliberate {};

/// Mostly a few milliseconds; sometimes zero, negative, or longer than the run.
inline duration some_delay(random_source& random)
{
  const auto draw = random() % 1000;
  if (draw < 50) return 0ns;
  if (draw < 55) return duration{-1'000'000'000};
  if (draw < 56) return 1h;
  if (draw < 57) return duration::max();
  if (draw < 800) return std::chrono::microseconds{random() % 3'000};
  return std::chrono::microseconds{random() % 60'000};
}

class world;

/// The base of all sessions: their world, and random numbers of their own. One handler at a time
/// uses them.
struct session_base {
  session_base(world& w, std::uint64_t seed)
    : in(&w),
      random(seed),
      touched_by_visitors(random() % 2 == 0)
  {}

  world* in;
  random_source random;

  /// If several threads touch at the same time, any touch may count, even the one that read the
  /// clock first. So nobody can say what is early.
  const bool touched_by_visitors;
};

struct wait_session : session_base {
  using session_base::session_base;
  void next();
};

struct timer_session : session_base {
  timer_session(world& w, std::uint64_t seed);
  void next();

  asio_wheel::wheel_timer timer;  ///< which visitors cancel and set
};

struct interval_session : session_base {
  interval_session(world& w, std::uint64_t seed);
  void next();

  asio_wheel::wheel_interval ticks;
};

struct watchdog_session : session_base {
  static constexpr duration least_timeout = 2ms;

  watchdog_session(world& w, std::uint64_t seed);
  void next();

  asio_wheel::wheel_watchdog dog;
};

struct heartbeat_session : session_base {
  static constexpr duration interval = 3ms;

  heartbeat_session(world& w, std::uint64_t seed);
  void next();

  asio_wheel::heartbeat beat;
};

class world {
public:
  world(books& b, const asio_wheel::wheel_options& options, std::uint64_t seed);
  world(const world&) = delete;
  world& operator=(const world&) = delete;
  ~world();

  /// Starts every session, and threads that run them.
  void start(int threads);

  [[nodiscard]] bool is_going() const { return going_; }

  /// Starts nothing more, ends all pending operations and returns when the context is out of work.
  /// Reports it if that takes more than a minute.
  void drain();

  /// Stops the context with all that is pending in it, for its destruction.
  void abandon();

  [[nodiscard]] ticket open(kind k, time_point at = time_point::min())
  {
    return {ledger, k, wheel, at};
  }

  books& ledger;
  asio::io_context context;
  wheel_timer_service& wheel;
  asio_wheel::keyed_scheduler<int> scheduler;
  std::deque<wait_session> waits;
  std::deque<timer_session> timers;
  std::deque<interval_session> intervals;
  std::deque<watchdog_session> watchdogs;
  std::deque<heartbeat_session> heartbeats;

private:
  using stream = support::pair_socket;

  void run();
  void open_pair();
  void end_pending();
  asio::awaitable<void> talk(stream peer, std::uint64_t seed);

  std::atomic<bool> going_{true};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::vector<std::thread> threads_;
  std::atomic<int> running_{0};
  random_source random_;
};

inline void wait_session::next()
{
  if (!in->is_going()) return;
  const duration delay = some_delay(random);
  const auto go_on = [this](error_code ec, ticket t) {
    const bool throws = random() % 10'000 == 0;
    t.end(ec);
    books& b = in->ledger;
    next();
    if (!throws) return;
    ++b.thrown;
    throw deliberate{};
  };
  auto handler = [go_on, t = in->open(kind::wait, earliest(in->wheel, delay))](
                   error_code ec) mutable { go_on(ec, std::move(t)); };
  if (random() % 2 == 0)
    in->wheel.async_wait(delay, std::move(handler));
  else
    in->wheel.async_wait(delay, counted(in->ledger, std::move(handler)));
}

inline timer_session::timer_session(world& w, std::uint64_t seed)
  : session_base(w, seed),
    timer(w.wheel)
{}
inline void timer_session::next()
{
  if (!in->is_going()) return;
  if (random() % 4 != 0) timer.expires_after(some_delay(random));
  timer.async_wait([this, t = in->open(kind::timer)](error_code ec) mutable {
    t.end(ec);
    next();
  });
}

inline interval_session::interval_session(world& w, std::uint64_t seed)
  : session_base(w, seed),
    ticks(w.wheel, std::chrono::microseconds{500 + random() % 4'000},
          std::array{missed_tick::burst, missed_tick::delay, missed_tick::skip}[random() % 3])
{}
inline void interval_session::next()
{
  if (!in->is_going()) return;
  ticks.async_tick([this, t = in->open(kind::interval)](error_code ec, time_point tick) mutable {
    if (!ec && in->wheel.now() < tick) in->ledger.violated("a tick came early");
    t.end(ec);
    next();
  });
}

inline watchdog_session::watchdog_session(world& w, std::uint64_t seed)
  : session_base(w, seed),
    dog(w.wheel, least_timeout)
{}
inline void watchdog_session::next()
{
  if (!in->is_going()) return;
  const time_point at =
    touched_by_visitors ? time_point::min() : earliest(in->wheel, least_timeout);
  dog.touch();
  dog.async_expired(
    counted(in->ledger, [this, t = in->open(kind::watchdog, at)](error_code ec) mutable {
      t.end(ec);
      next();
    }));
}

inline heartbeat_session::heartbeat_session(world& w, std::uint64_t seed)
  : session_base(w, seed),
    beat(w.wheel, {interval, 1 + random() % 3})
{}
inline void heartbeat_session::next()
{
  if (!in->is_going()) return;
  const time_point at = touched_by_visitors ? time_point::min() : earliest(in->wheel, interval);
  beat.sent();
  beat.received();
  beat.async_next(
    [this, t = in->open(kind::heartbeat, at)](error_code ec, asio_wheel::heartbeat_event) mutable {
      t.end(ec);
      next();
    });
}

inline world::world(books& b, const asio_wheel::wheel_options& options, std::uint64_t seed)
  : ledger(b),
    wheel(asio_wheel::make_wheel(context, options)),
    scheduler(wheel),
    work_(context.get_executor()),
    random_(seed)
{
  for (int i = 0; i < 400; ++i) waits.emplace_back(*this, random_());
  for (int i = 0; i < 100; ++i) timers.emplace_back(*this, random_());
  for (int i = 0; i < 20; ++i) intervals.emplace_back(*this, random_());
  for (int i = 0; i < 100; ++i) watchdogs.emplace_back(*this, random_());
  for (int i = 0; i < 50; ++i) heartbeats.emplace_back(*this, random_());
  for (int i = 0; i < 30; ++i) open_pair();
}

inline world::~world()
{
  abandon();
}

inline void world::open_pair()
{
  const auto strand = asio::make_strand(context);
  stream one(strand);
  stream other(strand);
  support::connect_pair(one, other);
  asio::co_spawn(strand, talk(std::move(one), random_()), asio::detached);
  asio::co_spawn(strand, talk(std::move(other), random_()), asio::detached);
}

/// Reads and writes with deadlines, about half of which pass.
inline asio::awaitable<void> world::talk(stream peer, std::uint64_t seed)
{
  random_source random(seed);
  std::array<char, 64> data{};
  while (is_going()) {
    const duration limit = std::chrono::microseconds{random() % 4'000};
    if (random() % 2 == 0) {
      const time_point due = earliest(wheel, limit);
      ticket t = open(kind::deadline);
      auto [ec, n] = co_await peer.async_read_some(
        asio::buffer(data), asio_wheel::timeout_after(limit, asio::as_tuple(asio::use_awaitable)));
      if (ec == asio::error::timed_out) {
        if (wheel.now() < due) ledger.violated("a timeout came early");
        ec.clear();
      }
      const bool closed = ec == asio::error::eof || ec == asio::error::connection_reset;
      t.end(closed ? error_code{} : ec);
      if (closed) co_return;
    } else {
      ticket t = open(kind::wait, earliest(wheel, limit / 2));
      const auto [waited] =
        co_await wheel.async_wait(limit / 2, asio::as_tuple(asio::use_awaitable));
      t.end(waited);
      ticket u = open(kind::deadline);
      const auto [ec, n] = co_await peer.async_write_some(
        asio::buffer(data, 1 + random() % data.size()),
        asio_wheel::cancel_after(1ms, asio::as_tuple(asio::use_awaitable)));
      u.end(ec == asio::error::broken_pipe ? error_code{} : ec);
      if (ec == asio::error::broken_pipe) co_return;
    }
  }
}

inline void world::start(int threads)
{
  for (auto& s : waits) s.next();
  for (auto& s : timers) s.next();
  for (auto& s : intervals) s.next();
  for (auto& s : watchdogs) s.next();
  for (auto& s : heartbeats) s.next();
  running_ = threads;
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

inline void world::run()
{
  for (;;) {
    try {
      context.run();
      break;
    } catch (const deliberate&) {
    } catch (const boost::system::system_error& e) {
      // This is how a scheduler reports that the wheel had no room for a task.
      if (e.code() != asio_wheel::wheel_errc::too_many_pending)
        ledger.violated("run() threw {}", e.what());
    } catch (const std::exception& e) {
      ledger.violated("run() threw {}", e.what());
    }
  }
  --running_;
}

inline void world::end_pending()
{
  for (auto& s : timers) s.timer.cancel();
  for (auto& s : intervals) s.ticks.cancel();
  for (auto& s : watchdogs) s.dog.cancel();
  for (auto& s : heartbeats) s.beat.cancel();
  wheel.cancel_all();
}

inline void world::drain()
{
  going_ = false;
  work_.reset();
  const auto limit = std::chrono::steady_clock::now() + 1min;
  while (running_ > 0 && std::chrono::steady_clock::now() < limit) {
    // Repeats, because a session may just have started its last operation.
    end_pending();
    std::this_thread::sleep_for(5ms);
  }
  if (running_ > 0)
    ledger.violated("run() does not return, {} waits are pending", wheel.pending());
  else if (wheel.pending() != 0 || scheduler.size() != 0)
    ledger.violated("run() returned with {} waits and {} tasks pending", wheel.pending(),
                    scheduler.size());
  abandon();
}

inline void world::abandon()
{
  going_ = false;
  context.stop();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace soak
