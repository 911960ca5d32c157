// L2 service: cancelling a wait by its handler's slot.
#include <asio_wheel/detail/service/cancel_link.hpp>

#include "core.hpp"

#include <mutex>

namespace asio_wheel::detail {

slot_link::~slot_link()
{
  home* const h = at();
  if (!h) return;
  const std::lock_guard lock(*h);
  if (wait()) shard::forget_link(*wait());
}

void cancel_link::operator()(asio::cancellation_type_t type)
{
  home* const h = at();
  if (!h || type == asio::cancellation_type::none) return;
  section s(*h);
  h->settle();
  if (wait()) s.cancel(*wait());
}

}  // namespace asio_wheel::detail
