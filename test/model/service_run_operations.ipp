// What a script does with operations that have deadlines, and what becomes of them.
#include <utility>

#include "model/service_run.hpp"

namespace model {

using stage = limited_run::stage;

void service_run::start_operation(operands& o, script_view& rest)
{
  auto& slot = operations_[o.take(2)];
  if (slot->at == stage::running) return end_operation(*slot, reaction(o.take(2)), false);
  if (slot->at == stage::ended) return;
  slot = std::make_shared<limited_run>();
  const auto op = slot;
  op->number = operations_started_++;
  op->reports_timeout = o.take(1) == 1;
  op->when_cancelled = reaction(o.take(2));
  op->when_initiated = o.take(2) == 0 ? reaction(o.take(2)) : reaction::none;
  op->initiated = [this, p = op.get()] { initiated(*p); };
  op->cancelled = [this, p = op.get()](asio::cancellation_type_t type) { cancelled(*p, type); };
  op->body = take_body(o, rest);
  op->signal = take_signal(o);
  const auto executor = o.take(2);
  op->foreign = executor == 0;
  const bool elsewhere = take_elsewhere(o);
  const bool by_delay = o.take(1) == 0 && !at_present();
  const duration d = by_delay ? delay(o) : duration{};
  const time_point t = by_delay ? add(wheel_.now(), d) : deadline(o);

  const int signal = std::exchange(op->signal, -1);
  take_slot(signal);
  op->signal = signal;
  const std::size_t before = wheel_.pending();
  if (op->when_initiated == reaction::none && t != time_point::max()) {
    op->deadline = waits_->start(
      {.elsewhere = elsewhere, .foreign = op->foreign, .deadline = t, .tick = tick_for(t)}, before);
  }
  tell(
    "operation {}, {} in tick {} as wait {}, signal {}, cancelled {}, initiated {}, {} to do{}{}",
    op->number, op->reports_timeout ? "timeout" : "cancel", tick_for(t),
    op->deadline ? op->deadline->number : -1, op->signal, static_cast<int>(op->when_cancelled),
    static_cast<int>(op->when_initiated), op->body.size(), elsewhere ? ", elsewhere" : "",
    op->foreign ? ", of the other context" : "");
  op->at = stage::running;
  call(elsewhere, [&] {
    const auto run = [&](auto handler) {
      if (by_delay)
        op->reports_timeout ? op->async_run(timeout_after(wheel_, d, handler))
                            : op->async_run(cancel_after(wheel_, d, handler));
      else
        op->reports_timeout ? op->async_run(timeout_at(wheel_, t, handler))
                            : op->async_run(cancel_at(wheel_, t, handler));
    };
    asio::cancellation_slot cancels;
    if (op->signal >= 0) cancels = signals_[static_cast<std::size_t>(op->signal)]->slot();
    const auto handler = asio::bind_cancellation_slot(cancels, result_recorder{this, op});
    if (executor > 1) return run(handler);
    if (!op->foreign && settings_.has_own_executor)
      return run(asio::bind_executor(executor_of_wheel(), handler));
    if (op->foreign) return run(asio::bind_executor(executor_of_others(), handler));
    run(asio::bind_executor(context_->get_executor(), handler));
  });
  if (op->deadline) waits_->has_started(*op->deadline, wheel_.now());
  const bool counts = op->deadline && op->deadline->how == fate::pending;
  expect(wheel_.pending() == before + counts, "pending() after the start of an operation");
}

void service_run::initiated(limited_run& op)
{
  react(op, op.when_initiated, true);
}

/// The signal that is being emitted cancelled it or, if none is, its deadline.
void service_run::cancelled(limited_run& op, asio::cancellation_type_t type)
{
  ++op.asked;
  const bool by_signal = emitting_ >= 0;
  if (by_signal) {
    expect(op.signal == emitting_, "an operation was cancelled by a signal that is not its own");
  } else {
    expect(type == asio::cancellation_type::terminal, "a deadline's type of cancellation");
    fired(op);
  }
  react(op, op.when_cancelled, true);
}

void service_run::fired(limited_run& op)
{
  const auto w = op.deadline;
  if (!w || w->completed) return report(fmt::format("operation {} was cancelled", op.number));
  expect(!calling_, "a deadline fired inline");
  expect(other_context_->get_executor().running_in_this_thread() == op.foreign,
         "the context that called a cancellation");
  tell("the deadline of operation {} fires in tick {}", op.number,
       waits_->line().floor(wheel_.now()));
  waits_->now_is(wheel_.now());
  switch (w->how) {
    case fate::pending:
      if (op.reports_timeout) op.verdict = asio::error::timed_out;
      return report(waits_->completed(*w, {}));
    case fate::cancelled: return report(waits_->completed(*w, asio::error::operation_aborted));
    case fate::rejected:
      op.verdict = wheel_errc::too_many_pending;
      return report(waits_->completed(*w, op.verdict));
  }
}

/// Ends the operation during its initiation or cancellation.
void service_run::react(limited_run& op, reaction how, bool posted)
{
  op.posted = posted;
  switch (how) {
    case reaction::none: return;
    case reaction::drop:
      set_ended(op, {});
      op.at = stage::over;
      return op.drop();
    case reaction::abort: {
      const error_code own = asio::error::operation_aborted;
      set_ended(op, own);
      return op.complete(own, op.number);
    }
    case reaction::succeed: set_ended(op, {}); return op.complete({}, op.number);
  }
}

void service_run::end_operation(operands& o)
{
  limited_run& op = *operations_[o.take(2)];
  const auto how = reaction(o.take(2));
  end_operation(op, how, take_elsewhere(o));
}

/// Ends the operation, which calls its handler at once.
void service_run::end_operation(limited_run& op, reaction how, bool elsewhere)
{
  if (op.at != stage::running) return;
  tell("operation {} ends: {}{}", op.number, static_cast<int>(how), elsewhere ? ", elsewhere" : "");
  op.posted = false;
  const error_code own =
    how == reaction::abort ? error_code(asio::error::operation_aborted) : error_code();
  set_ended(op, own);
  if (how == reaction::drop) {
    op.at = stage::over;
    return call(elsewhere, [&] { op.drop(); });
  }
  in_thread(elsewhere, [&] {
    try {
      op.complete(own, op.number);
    } catch (thrown_by_script) {
    }
  });
}

void service_run::set_ended(limited_run& op, error_code own)
{
  const auto& w = op.deadline;
  op.may_lag = op.foreign && w && !w->completed &&
               (over_ || w->was_due || w->how != fate::pending ||
                w->tick <= waits_->line().floor(wheel_.now()));
  op.result = own == asio::error::operation_aborted && op.verdict ? op.verdict : own;
  op.at = stage::ended;
  if (op.deadline && !op.deadline->completed) waits_->met_by(*op.deadline);
  op.deadline = nullptr;
}

void service_run::deliver(limited_run& op, error_code ec, int n)
{
  expect(op.at == stage::ended, "an operation completed that had not ended");
  expect(ec == op.result && n == op.number, "the result of an operation");
  op.at = stage::delivering;
  const while_delivering until_called{op};
  tell("{{ operation {} completes: {}", op.number, ec.message());
  if (over_) return;
  const inside here(*this);
  if (op.posted)
    expect(other_context_->get_executor().running_in_this_thread() == op.foreign,
           "the context that called an operation's handler");
  compare();
  play(op.body);
  tell("}}");
}

void service_run::compare_operations()
{
  for (const auto& op : operations_) {
    // One whose deadline is on its way comes behind that.
    expect(op->at != stage::ended || op->posted || op->may_lag,
           "an operation's handler was not called at once");
    expect(op->at != stage::over || op.use_count() == 1 || op->may_lag,
           "the handler of an operation lives on");
  }
}

void service_run::expect_operations_delivered(bool everywhere)
{
  for (const auto& op : operations_)
    expect(op->at != stage::ended || (op->foreign && !everywhere),
           "the result of an operation got lost");
}

void service_run::end_operations()
{
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const auto op = operations_[i];
    if (op->at != stage::running) continue;
    const auto how = static_cast<reaction>(1 + op->number % 3);
    end_operation(*op, how, false);
  }
}

}  // namespace model
