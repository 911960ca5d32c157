// The wheel that the command line asks for.
#pragma once

#include <asio_wheel.hpp>

#include <chrono>

#include "command_line.hpp"

namespace bench {

inline asio_wheel::wheel_timer_service& install_wheel(asio_wheel::asio::io_context& context,
                                                      const options& o)
{
  asio_wheel::wheel_options w;
  w.tick = std::chrono::microseconds{o.tick_us};
  if (o.slots) w.slots = o.slots;
  w.shards = o.shards;
  if (o.clock == "coarse") w.clock = asio_wheel::clock_source::coarse;
  return asio_wheel::make_wheel(context, w);
}

}  // namespace bench
