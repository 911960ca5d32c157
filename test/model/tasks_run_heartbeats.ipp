// What a script does to heartbeats.
#include <algorithm>
#include <utility>

#include "model/tasks_run.hpp"

namespace model {

void tasks_run::make(beat& b, operands& o)
{
  b = {};
  b.interval = take_period(o);
  b.max_missed = static_cast<int>(1 + o.take(2));
  b.sent = b.received = wheel.now();
  b.object.emplace(wheel, heartbeat_options{b.interval, static_cast<unsigned>(b.max_missed)});
}

void tasks_run::start_beat(operands& o)
{
  beat& b = pick_beat(o);
  if (has_enough_operations()) return;
  const auto op = begin(&b, o);
  tell("next event of heartbeat {}: operation {}", number_of(b), op->number);
  b.object->async_next(recorder{this, op, life_});
}

void tasks_run::happened(const operation& op, heartbeat_event event)
{
  tell("{}", event == heartbeat_event::send_ping ? "send a ping" : "the peer is lost");
  expect(!op.is_cancelled && !op.is_refused, "an event that had been cancelled or refused");
  beat& b = *op.of;
  expect_due(b.deadline(), op.started, op.started, "an event");
  if (b.received >= b.reported) b.pings = 0;
  const time_point silent_since = std::max(b.received, b.reported);
  const bool lost = silent_since + b.interval * (b.max_missed - b.pings + 1) <= wheel.now();
  b.pings = lost ? b.max_missed : b.pings + 1;
  b.reported = wheel.now();
  expect((event == heartbeat_event::peer_lost) == lost, "which event it was");
}

time_point tasks_run::beat::deadline() const
{
  return std::max(std::min(sent, received), reported) + interval;
}

void tasks_run::say_sent(operands& o)
{
  beat& b = pick_beat(o);
  tell("heartbeat {} sent", number_of(b));
  b.object->sent();
  b.sent = wheel.now();
}

void tasks_run::say_received(operands& o)
{
  beat& b = pick_beat(o);
  tell("heartbeat {} received", number_of(b));
  b.object->received();
  b.received = wheel.now();
}

void tasks_run::cancel_beat(operands& o)
{
  beat& b = pick_beat(o);
  tell("cancel heartbeat {}", number_of(b));
  expect(b.object->cancel() == cancelled_of(b), "how many a heartbeat cancelled");
}

std::size_t tasks_run::cancelled_of(const beat& b)
{
  std::size_t n = 0;
  for (const auto& op : operations_) {
    if (op->of != &b || op->is_cancelled || op->is_refused) continue;
    op->is_cancelled = true;
    ++n;
  }
  return n;
}

void tasks_run::move_beat(operands& o)
{
  const auto number = o.take(1);
  beat& to = beats_[number];
  beat& from = beats_[1 - number];
  tell("move a heartbeat to {}", number_of(to));
  cancelled_of(to);
  *to.object = std::move(*from.object);
  for (const auto& op : operations_)
    if (op->of == &from) op->of = &to;
  to.interval = from.interval;
  to.max_missed = from.max_missed;
  to.sent = from.sent;
  to.received = from.received;
  to.reported = from.reported;
  to.pings = from.pings;
}

}  // namespace model
