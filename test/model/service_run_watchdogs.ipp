// What a script does to watchdogs.
#include <algorithm>
#include <utility>

#include "model/service_run.hpp"

namespace model {

/// Does nothing in the real present, where nobody knows the tick of the touch.
void service_run::touch(operands& o)
{
  if (at_present()) return;
  watchdog& d = pick_watchdog(o);
  const time_point before = d.deadline();
  d.touched = wheel_.now();
  tell("touch watchdog {}, to expire in tick {}", number_of(d), tick_for(d.deadline()));
  for (wait* w : waits_of(d)) w->may_be_late |= d.deadline() < before;
  waits_->put_off(waits_of(d), d.deadline());
  call(take_elsewhere(o), [&] { d.object->touch(); });
}

void service_run::set_timeout(operands& o)
{
  if (at_present()) return;
  watchdog& d = pick_watchdog(o);
  d.timeout = take_timeout(o);
  tell("set the timeout of watchdog {}, to expire in tick {}", number_of(d),
       tick_for(d.deadline()));
  waits_->put_off(waits_of(d), d.deadline());
  call(take_elsewhere(o), [&] { d.object->set_timeout(d.timeout); });
}

duration service_run::take_timeout(operands& o) const
{
  return std::max(delay(o), duration{1});
}

void service_run::end_watch(operands& o)
{
  watchdog& d = pick_watchdog(o);
  watchdog& other = pick_watchdog(o);
  const auto how = o.take(2);
  if (how == 0) return move_watchdog(d, other, true, o);
  if (how == 1) return move_watchdog(d, other, false, o);
  if (how == 2 && !at_present()) {
    tell("make watchdog {} anew", number_of(d));
    const duration timeout = take_timeout(o);
    d.touched = wheel_.now();
    d.timeout = timeout;
    expect_cancelled(o, waits_of(d), [&] { d.object.emplace(wheel_, timeout); });
  } else {
    tell("cancel watchdog {}", number_of(d));
    expect_cancelled(o, waits_of(d), [&] { return d.object->cancel(); });
  }
  let_go_of_waits(d);
}

void service_run::move_watchdog(watchdog& to, watchdog& from, bool construct, operands& o)
{
  tell("{} watchdog {} to {}", construct ? "move-construct" : "move", number_of(from),
       number_of(to));
  if (&to == &from) {
    wheel_watchdog away(std::move(*from.object));
    *from.object = std::move(away);
    return;
  }
  expect_cancelled(o, waits_of(to), [&] {
    if (construct)
      to.object.emplace(std::move(*from.object));
    else
      *to.object = std::move(*from.object);
  });
  let_go_of_waits(to);
  for (wait* w : waits_of(from)) w->watchdog = number_of(to);
  to.touched = from.touched;
  to.timeout = from.timeout;
}

pending_waits::list service_run::waits_of(const watchdog& d) const
{
  return waits_->those([i = number_of(d)](const wait& w) { return w.watchdog == i; });
}

/// Its waits stay a watchdog's, but no longer this one's.
void service_run::let_go_of_waits(const watchdog& d)
{
  for (wait* w : waits_of(d)) w->watchdog = static_cast<int>(watchdogs_.size());
}

}  // namespace model
