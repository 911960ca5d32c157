// L2 service: cancelling the waits of one object, and taking them elsewhere.
#include <asio_wheel/detail/service/timer_waits.hpp>

namespace asio_wheel::detail {

timer_waits::timer_waits(wheel_core& c) noexcept : home_(&c.local())
{
  intrusive_ptr_add_ref(&c);
}

timer_waits::~timer_waits()
{
  cancel();
  intrusive_ptr_release(&core());
}

std::size_t timer_waits::cancel() noexcept
{
  section s(*this);
  return cancel(s);
}

std::size_t timer_waits::cancel(section& s) noexcept
{
  if (waits_.empty()) return 0;
  return s.cancel(waits_, &s.at() == &core().local());
}

void timer_waits::take_over(timer_waits& other, const section& s) noexcept
{
  home_ = &s.at();
  waits_.splice_back(other.waits_);
}

void timer_waits::come_home(section& s) noexcept
{
  home* const local = &core().local();
  if (&s.at() != local) home_.store(local, std::memory_order_release);
}

/// Takes an object without waits to another home.
void timer_waits::move_to(home& local) noexcept
{
  const section s(*this);
  if (waits_.empty()) home_.store(&local, std::memory_order_release);
}

}  // namespace asio_wheel::detail
