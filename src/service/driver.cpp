// L2 service: requesting and making passes.
#include <asio_wheel/service/driver.hpp>

#include <asio_wheel/service/shard_set.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/post.hpp>

#include <thread>

namespace asio_wheel {

driver::driver(shard_set& shards, asio::execution_context& context)
  : shards_(shards),
    strand_(posting_executor(shards.native(), context, memory_)),
    timer_(strand_)
{}

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
  try {
    asio::post(strand_, [this] { pass(); });
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

  const auto next = shards_.advance();
  const wheel_clock& clock = shards_.clock();
  const bool stopped = clock.is_stopped();  // if that changes from here on, another pass follows
  if (next) {
    arm(stopped ? never : *next);
  } else if (armed_ != disarmed) {
    armed_ = disarmed;
    timer_.cancel();
  }
  wake_ = next && stopped ? clock.tick_floor(clock.now()) + 1 : armed_;
}

void driver::arm(tick when)
{
  if (when == armed_) return;
  armed_ = disarmed;  // should one of the following throw
  timer_.expires_at(shards_.clock().time_of(when));
  try {
    timer_.async_wait(
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

}  // namespace asio_wheel
