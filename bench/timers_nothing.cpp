// Event-loop timers: three that do next to nothing.
//   nothing             a callback per wait
//   nothing_coroutine   a coroutine per timer, by use_awaitable
//   nothing_deferred    the same by deferred
//   clocked             a callback per wait
//   clocked_coroutine   a coroutine per timer, by use_awaitable
//   ticks               a callback per wait, which expires and cannot be cancelled
// `nothing` keeps each wait until it is cancelled, and lets the loop run aborted handlers, 64 at a
// time. It knows no time, no order and no other threads, and no wait expires. `clocked` is the
// same, but knows when its wait would expire, for which each start takes a reading of the clock.
// `ticks` keeps the waits of each millisecond in an array, wakes up when one is over, by a
// steady_timer on a strand, and calls their handlers. It takes waits for up to eight seconds, from
// one thread. What is left is the workload, Asio, and the memory of timers and handlers: the floor
// for anything with Asio's interface.
#include <asio_wheel/detail/ground/memory.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/version.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "asio_timers.hpp"
#include "timers_main.hpp"

namespace {

using namespace bench;

class wait_base {
public:
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

// Waits that this thread cancelled. They go to the loop in batches as large as a turn.
class aborted_waits {
public:
  void push(wait_base& w, const asio::io_context::executor_type& ex)
  {
    asio_wheel::detail::prefetch(&w);
    waits_[size_++] = &w;
    if (size_ < waits_.size()) return;
    size_ = 0;
    asio::post(ex, [waits = waits_] {
      for (wait_base* each : waits) each->complete(asio::error::operation_aborted);
    });
  }

private:
  std::array<wait_base*, 64> waits_;
  std::size_t size_ = 0;
};

thread_local aborted_waits aborted;

struct timeless {
  void expires_after(nanoseconds) {}
  void expires_at(time_point) {}
};

class timed {
public:
  void expires_after(nanoseconds delay) { deadline_ = steady_clock::now() + delay; }
  void expires_at(time_point deadline) { deadline_ = deadline; }

protected:
  time_point deadline_;
};

template <class Expiry>
class timer : Expiry {
public:
  explicit timer(const asio::io_context::executor_type& ex) : executor_{ex} {}

  void expires_after(nanoseconds delay)
  {
    Expiry::expires_after(delay);
    cancel();
  }
  void expires_at(time_point deadline)
  {
    Expiry::expires_at(deadline);
    cancel();
  }
  void cancel()
  {
    if (wait_) aborted.push(*std::exchange(wait_, nullptr), executor_);
  }

  template <class Token>
  auto async_wait(Token&& token)
  {
    return asio::async_initiate<Token, void(error_code)>(
      [this](auto handler) { wait_ = &wait<decltype(handler)>::make(std::move(handler)); }, token);
  }

private:
  asio::io_context::executor_type executor_;
  wait_base* wait_ = nullptr;
};

// The waits of each millisecond, and the one timer.
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

std::optional<calendar> the_calendar;

struct calendar_service {
  static void install(asio::io_context& context, const options&) { the_calendar.emplace(context); }
};

class tick_timer : public timed {
public:
  explicit tick_timer(const asio::io_context::executor_type&) {}

  template <class Token>
  auto async_wait(Token&& token)
  {
    return asio::async_initiate<Token, void(error_code)>(
      [this](auto handler) {
        the_calendar->add(deadline_, wait<decltype(handler)>::make(std::move(handler)));
      },
      token);
  }
};

struct ticks : contender_base {
  static constexpr auto name = "ticks";
  static constexpr bool cancels = false;
  template <class Work>
  using timers = callback_timers<tick_timer, calendar_service, Work>;
};

struct nothing : contender_base {
  static constexpr auto name = "nothing";
  static constexpr bool many_threads = true;
  static constexpr bool expires = false;
  template <class Work>
  using timers = callback_timers<timer<timeless>, no_service, Work>;
};

struct nothing_coroutine : contender_base {
  static constexpr auto name = "nothing_coroutine";
  static constexpr bool expires = false;
  template <class Work>
  using timers = coroutine_timers<timer<timeless>, no_service, Work, asio::use_awaitable_t<>>;
};

struct nothing_deferred : contender_base {
  static constexpr auto name = "nothing_deferred";
  static constexpr bool expires = false;
  template <class Work>
  using timers = coroutine_timers<timer<timeless>, no_service, Work, asio::deferred_t>;
};

struct clocked : contender_base {
  static constexpr auto name = "clocked";
  static constexpr bool many_threads = true;
  static constexpr bool expires = false;
  template <class Work>
  using timers = callback_timers<timer<timed>, no_service, Work>;
};

struct clocked_coroutine : contender_base {
  static constexpr auto name = "clocked_coroutine";
  static constexpr bool expires = false;
  template <class Work>
  using timers = coroutine_timers<timer<timed>, no_service, Work, asio::use_awaitable_t<>>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(
    argc, argv,
    contenders<nothing, nothing_coroutine, nothing_deferred, clocked, clocked_coroutine, ticks>(),
    {{"boost", BOOST_LIB_VERSION}});
}
