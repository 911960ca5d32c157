// What a script does to timers, signals and all waits at once.
#include "model/service_run.hpp"

namespace model {

void service_run::cancel(operands& o)
{
  timer& t = pick_timer(o);
  tell("cancel timer {}", number_of(t));
  expect_cancelled(o, waits_of(t), [&] { return t.object->cancel(); });
  let_go_of_waits(t);
}

void service_run::cancel_one(operands& o)
{
  timer& t = pick_timer(o);
  tell("cancel one wait of timer {}", number_of(t));
  const auto waits = waits_of(t);
  const std::size_t n = count_cancelled(o, [&] { return t.object->cancel_one(); });
  report(waits_->cancelled_one(waits, n));
}

void service_run::expire_after(operands& o)
{
  if (at_present()) return expire_at(o);
  timer& t = pick_timer(o);
  const duration d = delay(o);
  set_expiry(o, t, add(wheel_.now(), d), [&] { return t.object->expires_after(d); });
}

void service_run::expire_at(operands& o)
{
  timer& t = pick_timer(o);
  const time_point expiry = deadline(o);
  set_expiry(o, t, expiry, [&] { return t.object->expires_at(expiry); });
}

template <class Set>
void service_run::set_expiry(operands& o, timer& t, time_point expiry, Set set)
{
  t.expiry = expiry;
  t.tick = tick_ahead(expiry);
  tell("timer {} is to expire in tick {}", number_of(t), tick_for(expiry));
  expect_cancelled(o, waits_of(t), set);
  let_go_of_waits(t);
}

void service_run::move_construct(operands& o)
{
  timer& from = pick_timer(o);
  timer& to = pick_timer(o);
  tell("make timer {} out of {}", number_of(to), number_of(from));
  if (&from == &to) {
    wheel_timer away(std::move(*from.object));
    from.object.emplace(std::move(away));
    return;
  }
  expect_cancelled(o, waits_of(to), [&] { to.object.emplace(std::move(*from.object)); });
  take_over(to, from);
}

void service_run::move_assign(operands& o)
{
  timer& from = pick_timer(o);
  timer& to = pick_timer(o);
  tell("move timer {} to {}", number_of(from), number_of(to));
  const auto waits = &from == &to ? pending_waits::list{} : waits_of(to);
  expect_cancelled(o, waits, [&] { *to.object = std::move(*from.object); });
  if (&from != &to) take_over(to, from);
}

void service_run::take_over(timer& to, timer& from)
{
  let_go_of_waits(to);
  for (wait* w : waits_of(from)) w->timer = number_of(to);
  to.expiry = std::exchange(from.expiry, {});
  to.tick = std::exchange(from.tick, std::nullopt);
}

void service_run::make_anew(operands& o)
{
  timer& t = pick_timer(o);
  tell("make timer {} anew", number_of(t));
  const bool with_expiry = o.take(1) == 1;
  const time_point expiry = with_expiry ? deadline(o) : time_point{};
  expect_cancelled(o, waits_of(t), [&] {
    if (with_expiry)
      t.object.emplace(executor_of_wheel(), expiry);
    else
      t.object.emplace(wheel_);
  });
  let_go_of_waits(t);
  t.expiry = expiry;
  t.tick = with_expiry ? tick_ahead(expiry) : std::nullopt;
}

void service_run::emit(operands& o)
{
  using asio::cancellation_type;
  const auto signal = o.take(2);
  const auto type = std::array{cancellation_type::terminal, cancellation_type::partial,
                               cancellation_type::total, cancellation_type::none}[o.take(2)];
  tell("emit signal {}, type {}", signal, static_cast<unsigned>(type));
  const auto number = static_cast<int>(signal);
  const bool counts = type != cancellation_type::none;
  const auto waits = waits_->those([&](const wait& w) { return counts && w.signal == number; });
  std::array<int, 4> asked{};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const limited_run& op = *operations_[i];
    const bool listens = counts && op.signal == number && op.at == limited_run::stage::running;
    asked[i] = op.asked + (listens ? 1 : 0);
  }
  expect_cancelled(o, waits, [&] {
    emitting_ = number;
    signals_[signal]->emit(type);
    emitting_ = -1;
  });
  for (std::size_t i = 0; i < asked.size(); ++i)
    expect(operations_[i]->asked == asked[i], "the cancellations that an operation saw");
}

void service_run::make_signal_anew(operands& o)
{
  const auto signal = o.take(2);
  tell("make signal {} anew", signal);
  expect_cancelled(o, {}, [&] { signals_[signal].emplace(); });
  take_slot(static_cast<int>(signal));
}

void service_run::cancel_all(operands& o)
{
  tell("cancel all");
  expect_cancelled(o, waits_->those([](const wait&) { return true; }),
                   [&] { return wheel_.cancel_all(); });
}

pending_waits::list service_run::waits_of(const timer& t) const
{
  return waits_->those([i = number_of(t)](const wait& w) { return w.timer == i; });
}

void service_run::let_go_of_waits(const timer& t)
{
  for (wait* w : waits_of(t)) w->timer = -1;
}

}  // namespace model
