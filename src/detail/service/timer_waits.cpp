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
  const home& here = core().local();  // which may be made for it, with no lock held
  section s = enter();
  return cancel(s, here);
}

std::size_t timer_waits::cancel(section& s, const home& here) noexcept
{
  if (waits_.empty()) return 0;
  return s.cancel(waits_, &s.at() == &here);
}

void timer_waits::take_over(timer_waits& other, const section& s) noexcept
{
  home_ = &s.at();
  waits_.splice_back(other.waits_);
}

void timer_waits::go_here() noexcept
{
  home& here = core().local();
  if (is_at(here)) return;
  const section s = enter();
  if (waits_.empty()) go_to(here);
}

}  // namespace asio_wheel::detail
