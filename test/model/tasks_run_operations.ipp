// What the operations of heartbeats and intervals have in common.
#include "model/tasks_run.hpp"

namespace model {

std::shared_ptr<tasks_run::operation> tasks_run::begin(beat* of, operands& o)
{
  auto op = std::make_shared<operation>();
  op->number = ++numbers_;
  op->of = of;
  op->started = wheel.now();
  op->does = o.take(24);
  op->is_refused = is_full();
  operations_.push_back(op);
  return op;
}

template <class Value>
void tasks_run::complete(const std::shared_ptr<operation>& op, error_code ec, Value value)
{
  expect(!calling_, "a handler was called inline");
  tell("{{ operation {} at {}: {}", op->number, elapsed().count(), ec.message());
  if (ec)
    expect(is_expected(*op, ec), "an error of an operation");
  else
    happened(*op, value);
  std::erase(operations_, op);
  const struct end {
    ~end() { tell("}}"); }
  } when_over;
  perform_inside(op->does);
}

bool tasks_run::is_expected(const operation& op, error_code ec) const
{
  if (ec == asio::error::operation_aborted) return op.is_cancelled;
  return ec == wheel_errc::too_many_pending && op.is_refused;
}

}  // namespace model
