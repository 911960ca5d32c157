// L2 service: starting waits with a moving deadline, and filing them earlier.
#include <asio_wheel/service/lazy_waits.hpp>

namespace asio_wheel {

void lazy_waits::start(timer_wait_op& op)
{
  op.lazy_ = true;
  const tick guess = shards().clock().tick_ceil(deadline());
  waits_of_timer::start(op, guess, [this] { return present_tick(); });
}

void lazy_waits::hasten() noexcept
{
  // This object may be gone when the section ends, and so may the waits; the context may not.
  shard_set& set = shards();
  tick when;
  {
    const section s(*this);
    when = present_tick();
    for (timer_wait_op* op = first(); op; op = next(*op)) s.home().hasten(*op, when);
  }
  set.confirm(when);
}

}  // namespace asio_wheel
