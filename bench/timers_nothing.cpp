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
// `ticks` has its waits in a calendar. What is left is the workload, Asio, and the memory of timers
// and handlers: the floor for anything with Asio's interface.
#include <boost/asio/async_result.hpp>
#include <boost/version.hpp>
#include <detail/base/memory.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "asio_timers.hpp"
#include "calendar.hpp"
#include "workloads.hpp"

namespace {

using namespace bench;

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
