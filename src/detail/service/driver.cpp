// L2 service: requesting and making passes.
#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/service/driver.hpp>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <thread>

namespace asio_wheel::detail {

driver::driver(const native_executor& native, asio::execution_context& context,
               const wheel_clock& clock, driven& whom)
  : clock_(clock),
    driven_(whom),
    inner_{native, context, whom},
    strand_(std::make_unique<strand>(inner_executor<>(inner_))),
    timer_(std::make_unique<timer>(*strand_))
{}

void driver::close() noexcept
{
  gate_.close();
  wake_ = tick{};
  timer_.reset();
  strand_.reset();
  work_ = {};
}

void driver::wake_at(tick when) noexcept
{
  if (when < wake_.load(std::memory_order_seq_cst)) wake_earlier(when);
}

void driver::insist() noexcept
{
  wake_at(tick{});
}

void driver::forget(tick unneeded) noexcept
{
  if (unneeded > wake_.load(std::memory_order_seq_cst)) return;
  const std::shared_lock inside(gate_, std::try_to_lock);
  if (inside) (void)request_pass();
}

void driver::wake_earlier(tick when) noexcept
{
  const std::shared_lock inside(gate_, std::try_to_lock);
  if (!inside) return;
  // Outside of the context, to cancel the timer's wait and start another could leave it without
  // work.
  if (inner_.native.running_in_this_thread() && !clock_.is_stopped() &&
      when > clock_.tick_floor(clock_.now()) && set_earlier(when))
    return;
  while (!request_pass()) std::this_thread::yield();
}

/// Sets the timer for `when`, unless a pass comes before that. Whether there is no need for a
/// request.
bool driver::set_earlier(tick when) noexcept
{
  try {
    const std::lock_guard lock(timer_mutex_);
    if (pass_requested_ || when >= wake_) return true;
    wake_ = when;
    if (when < armed_) arm(when);
  } catch (...) {
    return false;
  }
  // The wait may have ended before the timer was set for it. Then nobody tells the driver any more.
  return driven_.needs_pass(when);
}

/// Makes sure of a pass that begins after this. False if the executor, one that makes its own
/// memory for a function, had none. Requires that the gate is open.
bool driver::request_pass() noexcept
{
  {
    const std::lock_guard lock(timer_mutex_);
    if (pass_requested_.exchange(true)) return true;
    if (armed_ != disarmed && inner_.native.counts_timers()) {
      // Its function is work of the context, and makes the pass. That takes no memory.
      armed_ = disarmed;
      timer_->cancel();
      return true;
    }
  }
  try {
    asio::post(*strand_, [this] { pass(); });
    return true;
  } catch (...) {
    const std::lock_guard lock(timer_mutex_);
    pass_requested_ = false;
    return false;
  }
}

/// Makes a pass, because it was requested or because the timer has fired for tick `fired`.
void driver::pass(tick fired)
{
  {
    const std::lock_guard lock(timer_mutex_);
    // Before the first look at a shard: a wait that is filed behind that look asks again.
    pass_requested_ = false;
    wake_ = disarmed;
    // It may have been set for something else by now.
    if (armed_ == fired) armed_ = disarmed;
  }
  const tick next = driven_.pass();
  try {
    set_timer(next);
  } catch (...) {
    // The exception leaves by run(). Called again, that is to find work to do.
    insist();
    throw;
  }
}

void driver::set_timer(tick next)
{
  if (!inner_.native.counts_timers()) hold_work(next != no_tick);
  // If that changes from here on, another pass follows.
  const bool stopped = next != no_tick && clock_.is_stopped();
  const std::lock_guard lock(timer_mutex_);
  const tick when = std::min(wake_.load(), next);
  if (stopped) {
    arm(never);
  } else if (when != disarmed) {
    arm(when);
  } else if (armed_ != disarmed) {
    armed_ = disarmed;
    timer_->cancel();
  }
  wake_ = stopped ? clock_.tick_floor(clock_.now()) + 1 : armed_;
}

/// Keeps the context running while the timer waits. Such a context cannot say what it runs, so that
/// none but passes set its timer.
void driver::hold_work(bool waits) noexcept
{
  work_ = waits ? inner_.native.work() : asio::any_io_executor();
}

/// Requires the timer's lock.
void driver::arm(tick when)
{
  if (when == armed_) return;
  armed_ = disarmed;  // should one of the following throw
  timer_->expires_at(clock_.time_of(when));
  timer_->async_wait(
    asio::bind_allocator(task_allocator(&timer_memory_), [this, when](const error_code& ec) {
      // Cancelled without a request, it was replaced.
      if (ec && !pass_requested_) return;
      if (!ec) wakeups_.fetch_add(1, std::memory_order_relaxed);
      pass(ec ? disarmed : when);
    }));
  armed_ = when;
}

}  // namespace asio_wheel::detail
