// L2 engine: reads clocks, and computes ticks from time points and back.
#include "wheel_clock.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#if defined(__linux__)
#include <ctime>
#endif

namespace asio_wheel::detail {
namespace {

using std::chrono::nanoseconds;
static_assert(std::is_same_v<duration, nanoseconds>, "ticks are counted from nanoseconds");

// steady_clock is CLOCK_MONOTONIC on Linux. CLOCK_MONOTONIC_COARSE is on the same time line, but
// behind: the kernel moves it at each of its ticks, by the whole ticks that have passed. So it is
// behind by less than two ticks, unless the host of a virtual machine holds up the kernel.
#if defined(__linux__)
duration coarse_grain() noexcept
{
  timespec grain{};
  return clock_getres(CLOCK_MONOTONIC_COARSE, &grain) == 0
           ? 2 * (std::chrono::seconds{grain.tv_sec} + nanoseconds{grain.tv_nsec})
           : duration{};
}

time_point coarse_now() noexcept
{
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return time_point{std::chrono::seconds{now.tv_sec} + nanoseconds{now.tv_nsec}};
}
#else
duration coarse_grain() noexcept
{
  return {};
}
time_point coarse_now() noexcept
{
  return clock_type::now();
}
#endif

}  // namespace

constinit wheel_clock::population wheel_clock::clocks{};

wheel_clock::wheel_clock(clock_source source, nanoseconds tick_length)
  : origin_(clock_type::now()),
    tick_ns_(static_cast<std::uint64_t>(tick_length.count())),
    last_{static_cast<std::uint64_t>((time_point::max() - origin_).count()) / tick_ns_},
    grain_(coarse_grain()),
    is_coarse_(source == clock_source::coarse && grain_ != duration{})
{
  if (is_coarse_) clocks.grain.store(grain_, std::memory_order_relaxed);
  ++(is_coarse_ ? clocks.coarse : clocks.precise);
}

wheel_clock::~wheel_clock()
{
  if (is_stopped()) run();
  --(is_coarse_ ? clocks.coarse : clocks.precise);
}

void wheel_clock::stop_at(time_point t) noexcept
{
  if (!is_stopped()) {
    ++clocks.precise;
    ++clocks.coarse;
  }
  stopped_at_ = t.time_since_epoch().count();
}

void wheel_clock::run() noexcept
{
  stopped_at_ = 0;
  --clocks.precise;
  --clocks.coarse;
}

time_point wheel_clock::now() const noexcept
{
  const auto stopped = stopped_at_.load(std::memory_order_relaxed);
  if (stopped != 0) return time_point{duration{stopped}};
  return is_coarse_ ? running_now() : clock_type::now();
}

bool wheel_clock::has_surely_passed(time_point deadline) const noexcept
{
  if (grain_ != duration{} && !is_stopped() && deadline > soon()) return false;
  return deadline <= now();
}

time_point wheel_clock::running_now() const noexcept
{
  const time_point precise = clock_type::now();
  return is_coarse_ ? std::min(precise, soon()) : precise;
}

time_point wheel_clock::start_of_delay() const noexcept
{
  const auto stopped = stopped_at_.load(std::memory_order_relaxed);
  if (stopped != 0) return time_point{duration{stopped}};
  return is_coarse_ ? soon() : clock_type::now();
}

time_point wheel_clock::soon() const noexcept
{
  return coarse_now() + grain_;
}

time_point wheel_clock::early_start_of_coarse_delay() noexcept
{
  if (clocks.precise.load(std::memory_order_relaxed) != 0) return unknown;
  return coarse_now() + clocks.grain.load(std::memory_order_relaxed);
}

time_point wheel_clock::deadline_after(duration delay, time_point early) const noexcept
{
  // A delay of zero or less must not start after now(), as delays by a coarse clock do.
  if (delay <= duration::zero()) return sum(now(), delay);
  return sum(early != unknown ? early : start_of_delay(), delay);
}

void wheel_clock::sleep_towards(time_point deadline) const
{
  // In pieces: standard libraries differ in sleeping until the last time point, and a stopped clock
  // may move at any time.
  const duration piece =
    is_stopped() ? duration{std::chrono::milliseconds{1}} : std::chrono::hours{1};
  std::this_thread::sleep_for(std::min(deadline - now(), piece));
}

tick wheel_clock::tick_ceil(time_point t) const noexcept
{
  if (t == time_point::max()) return never;
  if (t <= origin_) return tick{};
  // The tick after the tick of the nanosecond before.
  return tick{(static_cast<std::uint64_t>((t - origin_).count()) - 1) / tick_ns_ + 1};
}

tick wheel_clock::tick_floor(time_point t) const noexcept
{
  if (t <= origin_) return tick{};
  return tick{static_cast<std::uint64_t>((t - origin_).count()) / tick_ns_};
}

tick wheel_clock::tick_for(time_point deadline) const noexcept
{
  return has_surely_passed(deadline) ? at_once : tick_ceil(deadline);
}

tick wheel_clock::tick_for(duration delay) const noexcept
{
  // Either way it is known whether the deadline has passed.
  return delay > duration::zero() ? tick_ceil(sum(start_of_delay(), delay)) : at_once;
}

time_point wheel_clock::time_of(maybe_tick t) const noexcept
{
  if (t > last_) return time_point::max();
  return origin_ + duration{static_cast<duration::rep>(count(*t) * tick_ns_)};
}

}  // namespace asio_wheel::detail
