// How a script starts waits, and how they complete.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "model/service_run.hpp"

namespace model {

void service_run::wait_for(operands& o, script_view& rest)
{
  if (at_present()) return wait_until(o, rest);
  const duration d = delay(o);
  const time_point t = add(wheel_.now(), d);
  start({.deadline = t, .tick = tick_for(t)}, o, rest,
        [this, d](auto&& handler) { wheel_.async_wait(d, std::move(handler)); });
}

void service_run::wait_until(operands& o, script_view& rest)
{
  const time_point t = deadline(o);
  wait_until(t, o, rest);
}

void service_run::wait_until(time_point t, operands& o, script_view& rest)
{
  start({.deadline = t, .tick = tick_for(t)}, o, rest,
        [this, t](auto&& handler) { wheel_.async_wait(t, std::move(handler)); });
}

void service_run::wait_on_timer(operands& o, script_view& rest)
{
  timer& t = pick_timer(o);
  const auto tick = t.tick ? *t.tick : tick_for(t.expiry);
  start({.timer = number_of(t), .deadline = t.expiry, .tick = tick}, o, rest,
        [&t](auto&& handler) { t.object->async_wait(std::move(handler)); });
}

void service_run::wait_on_watchdog(operands& o, script_view& rest)
{
  watchdog& d = pick_watchdog(o);
  start({.watchdog = number_of(d), .deadline = d.deadline(), .tick = tick_for(d.deadline())}, o,
        rest, [&d](auto&& handler) { d.object->async_expired(std::move(handler)); });
}

template <class Initiate>
void service_run::start(wait w, operands& o, script_view& rest, Initiate initiate)
{
  w.elsewhere = take_elsewhere(o);
  w.body = take_body(o, rest);
  w.signal = take_signal(o);
  // Now and then more than a batch holds, but not from handlers: those of a batch would start many.
  const int n = o.take(4) == 0 && depth_ == 0 ? 70 : 1;
  w.foreign = o.take(2) == 0;
  for (int i = 0; i < n; ++i) start_one(w, initiate);
}

template <class Initiate>
void service_run::start_one(const wait& what, Initiate initiate)
{
  take_slot(what.signal);
  const std::size_t before = wheel_.pending();
  const auto w = waits_->start(what, before);
  tell("wait {} until tick {}, timer {}, watchdog {}, signal {}, {} to do then{}{}", w->number,
       w->tick, w->timer, w->watchdog, w->signal, w->body.size(), w->elsewhere ? ", elsewhere" : "",
       w->foreign ? ", of the other context" : "");
  call(w->elsewhere, [&] {
    const auto initiate_with = [&](auto handler) {
      if (w->signal < 0) return initiate(std::move(handler));
      const auto slot = signals_[static_cast<std::size_t>(w->signal)]->slot();
      initiate(asio::bind_cancellation_slot(slot, std::move(handler)));
    };
    if (w->foreign)
      initiate_with(asio::bind_executor(executor_of_others(), recorder{this, w}));
    else
      initiate_with(recorder{this, w});
  });
  waits_->has_started(*w, wheel_.now());
  expect(wheel_.pending() == before + (w->how != fate::rejected), "pending() after a start");
}

/// Whatever is in the signal's slot loses it to a new operation.
void service_run::take_slot(int signal)
{
  if (signal < 0) return;
  for (wait* w : waits_->those([&](const wait& x) { return x.signal == signal; })) w->signal = -1;
  for (auto& op : operations_) {
    if (op->signal == signal) op->signal = -1;
  }
}

int service_run::take_signal(operands& o)
{
  const auto i = static_cast<int>(o.take(3));
  return i < 4 ? i : -1;
}

/// The words that a handler plays: they follow the word that starts its wait.
script_view service_run::take_body(operands& o, script_view& rest)
{
  std::size_t n = o.take(3);
  if (n >= 4) return {};
  n = std::min(n, rest.size());
  const script_view body = rest.first(n);
  rest = rest.subspan(n);
  return body;
}

void service_run::complete(wait& w, error_code ec)
{
  const inside here(*this);
  tell("{{ wait {} completes in tick {}: {}", w.number, waits_->line().floor(wheel_.now()),
       ec.message());
  waits_->now_is(wheel_.now());
  expect(other_context_->get_executor().running_in_this_thread() == w.foreign,
         "the context that called a handler");
  report(waits_->completed(w, ec));
  play(w.body);
  tell("}}");
}

void service_run::post(operands& o, script_view& rest)
{
  const script_view body = take_body(o, rest);
  tell("post, {} to do then", body.size());
  ++posted_;
  asio::post(*context_, [this, body] {
    const inside here(*this);
    tell("{{ posted");
    --posted_;
    play(body);
    tell("}}");
  });
}

}  // namespace model
