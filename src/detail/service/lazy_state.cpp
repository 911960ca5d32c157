// L2 service: starting waits with a moving deadline, and filing them earlier.
#include <asio_wheel/detail/service/lazy_state.hpp>

namespace asio_wheel::detail {

void lazy_state::start(lazy_wait_op& op)
{
  op.set_deadline(*this);
  timer_waits::start(op, [this] { return present_tick(); }, [] {});
}

void lazy_state::hasten() noexcept
{
  // This object may be gone when the section ends, and so may the waits; the context may not.
  wheel_core& c = core();
  tick when;
  {
    const section s(*this);
    s.at().settle();
    when = present_tick();
    waits().for_each([&](timer_wait_op& op) { s.at().hasten(op, when); });
  }
  c.wake_at(when);
}

void lazy_state::adopt_waits() noexcept
{
  waits().for_each(
    [this](timer_wait_op& op) { static_cast<lazy_wait_op&>(op).set_deadline(*this); });
}

}  // namespace asio_wheel::detail
