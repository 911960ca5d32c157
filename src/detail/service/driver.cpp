// L2 service: requesting and making passes.
#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/service/driver.hpp>

#include <thread>
#include <utility>

namespace asio_wheel::detail {

driver::driver(const native_executor& native, asio::execution_context& context,
               const wheel_clock& clock, pass_function pass)
  : clock_(clock),
    make_pass_(std::move(pass)),
    strand_(std::make_unique<strand>(posting_executor(native, context, memory_))),
    timer_(std::make_unique<timer>(*strand_))
{}

void driver::close() noexcept
{
  gate_.close();
  wake_ = tick{};
  timer_.reset();
  strand_.reset();
}

void driver::insist() noexcept
{
  for (;;) {
    try {
      return request_pass();
    } catch (...) {
      std::this_thread::yield();
    }
  }
}

void driver::forget(tick unneeded) noexcept
{
  if (unneeded > wake_.load(std::memory_order_relaxed)) return;
  try {
    request_pass();
  } catch (...) {
  }
}

void driver::request_pass()
{
  if (pass_requested_.exchange(true)) return;
  const gate::visit inside(gate_);
  try {
    if (inside) asio::post(*strand_, [this] { pass(); });
  } catch (...) {
    pass_requested_ = false;
    throw;
  }
}

void driver::pass()
{
  // Both before the first look at a shard: a wait that is filed behind that look sees them.
  pass_requested_ = false;
  wake_ = disarmed;

  const auto next = make_pass_();
  const bool stopped = clock_.is_stopped();  // if that changes from here on, another pass follows
  if (next) {
    arm(stopped ? never : *next);
  } else if (armed_ != disarmed) {
    armed_ = disarmed;
    timer_->cancel();
  }
  wake_ = next && stopped ? clock_.tick_floor(clock_.now()) + 1 : armed_;
}

void driver::arm(tick when)
{
  if (when == armed_) return;
  armed_ = disarmed;  // should one of the following throw
  timer_->expires_at(clock_.time_of(when));
  try {
    timer_->async_wait(
      asio::bind_allocator(task_allocator<std::byte>(memory_), [this, when](const error_code& ec) {
        if (ec) return;
        // A pass that came in between has set the timer for something else.
        if (armed_ == when) armed_ = disarmed;
        wakeups_.fetch_add(1, std::memory_order_relaxed);
        pass();
      }));
  } catch (...) {
    // The exception leaves by run(). Called again, that is to find work to do.
    insist();
    throw;
  }
  armed_ = when;
}

}  // namespace asio_wheel::detail
