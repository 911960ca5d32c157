// What a script does to a wheel and its timers, and what becomes of it.
#include "model/service_run.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/post.hpp>
#include <limits>
#include <type_traits>
#include <utility>

#include "support/other_thread.hpp"

namespace model {

std::string play_on_service(script_view words)
{
  const service_settings s(take_first(words));
  return service_run(s).play_all(words);
}

service_run::service_run(const service_settings& s)
  : settings_(s),
    context_(std::in_place),
    wheel_(make_wheel(*context_, s.options)),
    time_(std::in_place, wheel_)
{
  // From here on, what is a whole number of ticks away is exact.
  wheel_.async_wait(1ns, [](error_code) {});
  time_->advance_to_next();
  waits_.emplace(time_line(wheel_.now() - s.options.tick, s.options.tick), s.options.max_pending);
  waits_->now_is(wheel_.now());
  for (auto& t : timers_) t.object.emplace(wheel_);
  for (auto& signal : signals_) signal.emplace();
  tell("ticks of {}, {} slots, {} shards, at most {} pending", s.options.tick.count(),
       s.options.slots, s.options.shards, s.options.max_pending);
}

std::string service_run::play_all(script_view words)
{
  play(words);
  if (fault_.empty() && settings_.runs_to_end) run_to_end();
  destroy();
  return fault_;
}

void service_run::play(script_view words)
{
  while (!words.empty() && fault_.empty()) {
    operands o(words.front());
    words = words.subspan(1);
    perform(o, words);
    compare();
  }
}

void service_run::perform(operands& o, script_view& rest)
{
  switch (o.take(5)) {
    case 0:
    case 1:
    case 2: return wait_for(o, rest);
    case 3:
    case 4: return wait_until(o, rest);
    case 5:
    case 6:
    case 7:
    case 8: return wait_on_timer(o, rest);
    case 9:
    case 10: return expire_after(o);
    case 11: return expire_at(o);
    case 12: return cancel(o);
    case 13: return cancel_one(o);
    case 14: return move_construct(o);
    case 15: return move_assign(o);
    case 16: return make_anew(o);
    case 17:
    case 18: return emit(o);
    case 19: return make_signal_anew(o);
    case 20: return cancel_all(o);
    case 21: return post(o, rest);
    default: break;
  }
  if (depth_ > 0) {
    if (o.take(2) == 0) throw thrown_by_script{};
    return;
  }
  perform_outside(o);
}

/// What may not be done from a handler.
void service_run::perform_outside(operands& o)
{
  switch (o.take(3)) {
    case 0:
    case 1:
    case 2: return advance(delay(o));
    case 3:
    case 4: return advance_to_next();
    case 5:
    case 6: return run_one_handler();
    default:
      if (o.take(4) == 0) set_clock_anew();
  }
}

duration service_run::delay(operands& o) const
{
  const time_line& line = waits_->line();
  switch (o.take(3)) {
    case 0: return 0ns;
    case 1: return -line.ticks(o.magnitude());
    case 2: {
      using limits = std::numeric_limits<duration::rep>;
      return duration{std::array{limits::max(), limits::min(), limits::max() - 1,
                                 (time_point::max() - wheel_.now()).count()}[o.take(2)]};
    }
    case 3: {
      const duration whole = line.ticks(o.magnitude());
      const duration part = settings_.options.tick / 256 * static_cast<int>(o.take(8));
      return whole < duration::max() - part ? whole + part : duration::max();
    }
    default: return line.ticks(o.magnitude());
  }
}

time_point service_run::deadline(operands& o)
{
  switch (o.take(3)) {
    case 0: return std::array{time_point::min(), time_point::max()}[o.take(1)];
    case 1: return pick_timer(o).expiry;
    case 2: return add(waits_->line().begin_of(0), waits_->line().ticks(o.magnitude()));
    default: return add(wheel_.now(), delay(o));
  }
}

void service_run::wait_for(operands& o, script_view& rest)
{
  const duration d = delay(o);
  const time_point t = add(wheel_.now(), d);
  start({.deadline = t, .tick = tick_for(t)}, o, rest,
        [this, d](auto&& handler) { wheel_.async_wait(d, std::move(handler)); });
}

void service_run::wait_until(operands& o, script_view& rest)
{
  const time_point t = deadline(o);
  start({.deadline = t, .tick = tick_for(t)}, o, rest,
        [this, t](auto&& handler) { wheel_.async_wait(t, std::move(handler)); });
}

void service_run::wait_on_timer(operands& o, script_view& rest)
{
  timer& t = pick_timer(o);
  // An expiry that was past in its tick need not be so any more: the clock may have been set
  // back.
  if (waits_->line().begin_of(t.tick) < t.expiry && wheel_.now() < t.expiry)
    t.tick = tick_for(t.expiry);
  start({.timer = number_of(t), .deadline = t.expiry, .tick = t.tick}, o, rest,
        [&t](auto&& handler) { t.object->async_wait(std::move(handler)); });
}

template <class Initiate>
void service_run::start(wait w, operands& o, script_view& rest, Initiate initiate)
{
  w.elsewhere = settings_.two_threads && o.take(1) == 1;
  w.body = take_body(o, rest);
  if (const auto i = static_cast<int>(o.take(3)); i < static_cast<int>(signals_.size()))
    w.signal = i;
  // More than a batch holds, though not out of every handler of such a batch.
  for (int n = o.take(4) == 0 && depth_ == 0 ? 70 : 1; n > 0; --n) start_one(w, initiate);
}

template <class Initiate>
void service_run::start_one(const wait& what, Initiate initiate)
{
  if (what.signal >= 0) {
    for (wait* w : waits_->those([&](const wait& x) { return x.signal == what.signal; }))
      w->signal = -1;
  }
  const std::size_t before = wheel_.pending();
  const auto w = waits_->start(what, before);
  tell("wait {} until tick {}, timer {}, signal {}, {} to do then{}", w->number, w->tick, w->timer,
       w->signal, w->body.size(), w->elsewhere ? ", elsewhere" : "");
  call(w->elsewhere, [&] {
    if (w->signal < 0) return initiate(recorder{this, w});
    const auto slot = signals_[static_cast<std::size_t>(w->signal)]->slot();
    initiate(asio::bind_cancellation_slot(slot, recorder{this, w}));
  });
  expect(wheel_.pending() == before + (w->how != fate::rejected), "pending() after a start");
}

/// The words that a handler plays follow the one that starts its wait.
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
  t.tick = tick_for(expiry);
  tell("timer {} is to expire in tick {}", number_of(t), t.tick);
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
  to.tick = std::exchange(from.tick, 0);
}

void service_run::make_anew(operands& o)
{
  timer& t = pick_timer(o);
  tell("make timer {} anew", number_of(t));
  const bool with_expiry = o.take(1) == 1;
  const time_point expiry = with_expiry ? deadline(o) : time_point{};
  expect_cancelled(o, waits_of(t), [&] {
    if (with_expiry)
      t.object.emplace(*context_, expiry);
    else
      t.object.emplace(wheel_);
  });
  let_go_of_waits(t);
  t.expiry = expiry;
  t.tick = with_expiry ? tick_for(expiry) : 0;
}

void service_run::emit(operands& o)
{
  using asio::cancellation_type;
  const auto signal = o.take(2);
  const auto type = std::array{cancellation_type::terminal, cancellation_type::partial,
                               cancellation_type::total, cancellation_type::none}[o.take(2)];
  tell("emit signal {}, type {}", signal, static_cast<unsigned>(type));
  const auto waits = waits_->those([&](const wait& w) {
    return w.signal == static_cast<int>(signal) && type != cancellation_type::none;
  });
  expect_cancelled(o, waits, [&] { signals_[signal]->emit(type); });
}

void service_run::make_signal_anew(operands& o)
{
  const auto signal = o.take(2);
  tell("make signal {} anew", signal);
  expect_cancelled(o, {}, [&] { signals_[signal].emplace(); });
  for (wait* w : waits_->those([&](const wait& x) { return x.signal == static_cast<int>(signal); }))
    w->signal = -1;
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

/// How many waits `f` cancels, which is what it returns, if anything.
template <class Function>
std::size_t service_run::count_cancelled(operands& o, Function f)
{
  const std::size_t before = wheel_.pending();
  const bool elsewhere = settings_.two_threads && o.take(1) == 1;
  std::optional<std::size_t> returned;
  call(elsewhere, [&] {
    if constexpr (std::is_void_v<decltype(f())>)
      f();
    else
      returned = f();
  });
  const std::size_t n = before - wheel_.pending();
  expect(!returned || *returned == n, "the number of waits cancelled that was returned");
  return n;
}

template <class Function>
void service_run::expect_cancelled(operands& o, const pending_waits::list& waits, Function f)
{
  report(waits_->cancelled(waits, count_cancelled(o, f)));
}

/// Calls a function of the wheel's, which must not call handlers.
template <class Function>
void service_run::call(bool elsewhere, Function f)
{
  calling_ = true;
  if (elsewhere)
    support::in_other_thread(f);
  else
    f();
  calling_ = false;
}

void service_run::compare()
{
  waits_->now_is(wheel_.now());
  report(waits_->are_pending(wheel_.pending()));
  for (const timer& t : timers_) expect(t.object->expiry() == t.expiry, "expiry()");
}

}  // namespace model
