// L2 engine: sets the timer, and acts when it fires.
#include <asio_wheel/asio.hpp>

#include "driver.hpp"

#include ASIO_WHEEL_ASIO(bind_allocator.hpp)
#include ASIO_WHEEL_ASIO(bind_executor.hpp)
#include ASIO_WHEEL_ASIO(system_executor.hpp)

#include <shared_mutex>
#include <utility>

namespace asio_wheel::detail {

driver::driver(const native_executor& native, asio::execution_context& context,
               const wheel_clock& clock, driver_client& client)
  : clock_(clock),
    client_(client),
    inner_{native, context, client, strand_memory_, strand_run(strand_memory_)},
    strand_(std::make_unique<strand>(inner_executor<>(inner_))),
    timer_(std::make_unique<timer>(*strand_))
{}

void driver::close() noexcept
{
  gate_.close();
  wake_ = at_once;
  timer_.reset();
  inner_.run.drop();  // its function has the strand, which must not outlive the context
  strand_.reset();
  work_ = {};
  retry_work_ = {};
}

void driver::wake_at(maybe_tick when) noexcept
{
  if (when < wake_.load(std::memory_order_seq_cst)) wake_earlier(*when);
}

void driver::rearm() noexcept
{
  const std::shared_lock inside(gate_, std::try_to_lock);
  if (inside) request();
}

void driver::go_on_in_child() noexcept
{
  requested_ = false;
  rearm();
}

void driver::cancel_wake_up(tick unneeded) noexcept
{
  if (unneeded > wake_.load(std::memory_order_seq_cst)) return;
  const std::shared_lock inside(gate_, std::try_to_lock);
  if (inside) request();
}

void driver::wake_earlier(tick when) noexcept
{
  const std::shared_lock inside(gate_, std::try_to_lock);
  if (!inside) return;
  // Only in the context's own threads: elsewhere, a moment between two waits of the timer could
  // leave the context without work.
  try {
    if (when != at_once && inner_.native.running_in_this_thread() && set_timer()) return;
  } catch (...) {
    // The strand will try again.
  }
  request(when == at_once);
}

/// Makes sure that the strand sets the timer after this call, and makes a pass first if requested.
/// Requires that the gate is open.
void driver::request(bool pass, maybe_tick rung) noexcept
{
  bool again = false;
  {
    const locked lock(timer_mutex_);
    pass_requested_ |= pass;
    if (rung && armed_ == rung) armed_ = disarmed;
    if (requested_.exchange(true)) return;
    if (turn_refused_) [[unlikely]] {
      turn_refused_ = false;
      again = true;
    }
    wake_ = at_once;  // the turn will see what is there by then: nobody else need request one
    // A pass mostly keeps what the timer is set for.
    if (!pass && armed_ && inner_.native.counts_timers) {
      // The timer's function becomes the turn. It is work of the context, and needs no memory.
      armed_ = disarmed;
      timer_->cancel();
      return;
    }
  }
  try {
    if (!again)
      asio::post(*strand_, [this] { on_turn({}, disarmed); });
    else if (!inner_.post_run())
      retry_turn();
  } catch (...) {
    requested_ = false;  // no memory: the next caller may request again
  }
}

void driver::retry_turn() noexcept
{
  const std::shared_lock inside(gate_, std::try_to_lock);
  if (!inside) return;
  asio::any_io_executor work = inner_.native.work();
  const locked lock(timer_mutex_);
  turn_refused_ = true;
  std::swap(retry_work_, work);
  try {
    start_timer(clock_.tick_floor(clock_.running_now()) + 1);
  } catch (...) {
    requested_ = false;  // the next caller requests both
  }
}

/// In Asio's own thread, for a context that does not complete its timers: requests a turn.
void driver::ring(const error_code& ec, tick when) noexcept
{
  if (ec) return;  // replaced by another wait
  const std::shared_lock inside(gate_, std::try_to_lock);
  if (!inside) return;
  bool again = false;
  asio::any_io_executor work;  // goes when the turn is posted
  {
    const locked lock(timer_mutex_);
    again = std::exchange(turn_refused_, false);
    if (again && armed_ == when) armed_ = disarmed;
    std::swap(retry_work_, work);
  }
  if (!again) {
    wakeups_.fetch_add(1, std::memory_order_relaxed);
    request(true, when);
  } else if (!inner_.post_run()) {
    retry_turn();
  }
}

/// On the strand: serves a request, or the end of the timer's wait for tick `when`.
void driver::on_turn(const error_code& ec, maybe_tick when)
{
  // Cancelled without a request, the wait was replaced.
  if (ec && !requested_) return;
  const bool fired = !ec && when;
  bool pass = false;
  {
    const locked lock(timer_mutex_);
    requested_ = false;
    pass = fired || std::exchange(pass_requested_, false);
    wake_ = disarmed;  // before it reads the first shard
    // The timer may have been set for something else by now.
    if (fired && armed_ == when) armed_ = disarmed;
  }
  try {
    if (fired) wakeups_.fetch_add(1, std::memory_order_relaxed);
    if (pass || !set_timer()) {
      client_.pass();
      if (!set_timer()) rearm();
    }
    if (!inner_.native.counts_timers) hold_work(is_awaited());
  } catch (...) {
    // The exception leaves by run(). The next run() must find work.
    rearm();
    throw;
  }
}

/// Sets the timer for the next pass, unless a request will do so. If its time is past, the timer
/// fires at once. Returns false if a pass is needed first.
bool driver::set_timer()
{
  const locked lock(timer_mutex_);
  if (requested_) return true;
  wake_ = disarmed;
  const maybe_tick next = client_.next_tick();
  if (next == at_once) return false;
  if (!next) {
    if (!armed_) return true;
    armed_ = disarmed;
    timer_->cancel();
  } else if (!clock_.is_stopped()) {
    arm(*next);
    wake_ = next;
  } else {
    const tick present = clock_.tick_floor(clock_.now());
    arm(*next <= present ? tick{} : never);
    wake_ = present + 1;
  }
  return true;
}

/// Returns true if a turn will come, by the timer or by a request.
bool driver::is_awaited() noexcept
{
  const locked lock(timer_mutex_);
  return armed_ || requested_;
}

/// Keeps the context running while the timer waits. Such a context cannot say which threads it
/// runs, so only the strand sets the timer.
void driver::hold_work(bool waits) noexcept
{
  work_ = waits ? inner_.native.work() : asio::any_io_executor();
}

void driver::arm(tick when)
{
  if (when != armed_) start_timer(when);
}

void driver::start_timer(tick when)
{
  armed_ = disarmed;  // in case the rest throws
  timer_->expires_at(clock_.time_of(when));
  const task_allocator memory(&timer_memory_);
  if (inner_.native.counts_timers) {
    timer_->async_wait(
      asio::bind_allocator(memory, [this, when](const error_code& ec) { on_turn(ec, when); }));
  } else {
    timer_->async_wait(asio::bind_executor(
      asio::system_executor(),  // runs it in place
      asio::bind_allocator(memory, [this, when](const error_code& ec) { ring(ec, when); })));
  }
  armed_ = when;
}

}  // namespace asio_wheel::detail
