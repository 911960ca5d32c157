// L2 service: checks and rounds the options.
#include <asio_wheel/wheel_options.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <thread>

namespace asio_wheel {
namespace {

constexpr std::chrono::nanoseconds shortest_tick = std::chrono::microseconds{1};
constexpr std::chrono::nanoseconds longest_tick = std::chrono::hours{24};
constexpr std::size_t most_slots = 65536;

template <class Value>
[[noreturn]] void reject(const char* name, const Value& value, const char* range)
{
  throw std::invalid_argument(
    fmt::format("wheel_options::{} is {}; it must be {}", name, value, range));
}

}  // namespace

wheel_options resolve(wheel_options options)
{
  if (options.tick < shortest_tick || options.tick > longest_tick)
    reject("tick", std::chrono::nanoseconds{options.tick}, "from 1us to 24h");
  if (options.slots < 1 || options.slots > most_slots)
    reject("slots", options.slots, "from 1 to 65536");
  if (options.shards > max_shards)
    reject("shards", options.shards, "from 1 to 64, or 0 to have it chosen");
  if (options.clock != clock_source::precise && options.clock != clock_source::coarse)
    reject("clock", static_cast<int>(options.clock), "clock_source::precise or ::coarse");

  if (options.shards == 0)
    options.shards = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, max_shards);
  options.shards = std::bit_ceil(options.shards);
  options.slots = std::bit_ceil(std::max<std::size_t>(options.slots, 2));
  return options;
}

}  // namespace asio_wheel
