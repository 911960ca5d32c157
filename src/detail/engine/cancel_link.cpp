// L2 engine: cancelling a wait by its handler's slot.
#include <asio_wheel/detail/engine/cancel_link.hpp>

#include "core.hpp"

namespace asio_wheel::detail {

slot_link::~slot_link()
{
  shard* const sh = at();
  if (!sh) return;
  const locked lock(*sh);
  if (wait()) shard::slot_unlinked(*wait());
}

void cancel_link::operator()(asio::cancellation_type_t type)
{
  shard* const sh = at();
  if (!sh || type == asio::cancellation_type::none) return;
  shard_lock lock(*sh);
  sh->apply_deferred_cancels();
  if (wait()) lock.cancel(*wait());
}

}  // namespace asio_wheel::detail
