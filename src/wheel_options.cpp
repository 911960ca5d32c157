// L2 engine: checks and rounds the options.
#include <asio_wheel/wheel_options.hpp>

#include "detail/engine/fail_invalid.hpp"

#include <algorithm>
#include <bit>
#include <thread>

namespace asio_wheel {
namespace {

constexpr std::chrono::nanoseconds shortest_tick = std::chrono::microseconds{1};
constexpr std::chrono::nanoseconds longest_tick = std::chrono::hours{24};
constexpr std::size_t most_slots = 65536;

}  // namespace

wheel_options resolve(wheel_options options)
{
  using detail::fail_invalid;
  if (options.tick < shortest_tick || options.tick > longest_tick)
    fail_invalid("wheel_options::tick is %lldns; it must be from 1us to 24h",
                 detail::in_ns(options.tick));
  if (options.slots < 1 || options.slots > most_slots)
    fail_invalid("wheel_options::slots is %zu; it must be from 1 to 65536", options.slots);
  if (options.shards > max_shards)
    fail_invalid("wheel_options::shards is %zu; it must be from 1 to 64, or 0 to have it chosen",
                 options.shards);
  if (options.clock != clock_source::precise && options.clock != clock_source::coarse)
    fail_invalid("wheel_options::clock is %d; it must be clock_source::precise or ::coarse",
                 static_cast<int>(options.clock));

  if (options.shards == 0)
    options.shards = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, max_shards);
  options.shards = std::bit_ceil(options.shards);
  options.slots = std::bit_ceil(std::max<std::size_t>(options.slots, 2));
  return options;
}

}  // namespace asio_wheel
