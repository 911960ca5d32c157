// A context with a wheel of any options.
#pragma once

#include <asio_wheel.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <random>

namespace support {

struct context_with_wheel {
  explicit context_with_wheel(asio_wheel::wheel_options options = {})
    : wheel(asio_wheel::make_wheel(context, options))
  {}

  boost::asio::io_context context;
  asio_wheel::wheel_timer_service& wheel;
};

inline asio_wheel::wheel_options with_tick(std::chrono::nanoseconds tick)
{
  asio_wheel::wheel_options options;
  options.tick = tick;
  return options;
}

inline asio_wheel::wheel_options with_shards(std::size_t shards, std::chrono::nanoseconds tick)
{
  auto options = with_tick(tick);
  options.shards = shards;
  return options;
}

/// Waits of less than 65,536 ticks do not cascade, so each costs one wake-up.
inline asio_wheel::wheel_options with_long_finest_level(std::chrono::nanoseconds tick)
{
  auto options = with_tick(tick);
  options.slots = 65536;
  return options;
}

inline asio_wheel::wheel_options with_limit(std::size_t max_pending)
{
  asio_wheel::wheel_options options;
  options.max_pending = max_pending;
  return options;
}

/// Pseudo-random delays, the same in every run.
class delays {
public:
  delays(std::chrono::nanoseconds from, std::chrono::nanoseconds to)
    : spread_(from.count(), to.count())
  {}

  [[nodiscard]] std::chrono::nanoseconds next()
  {
    return std::chrono::nanoseconds{spread_(random_)};
  }

private:
  std::mt19937 random_{2024};
  std::uniform_int_distribution<std::chrono::nanoseconds::rep> spread_;
};

}  // namespace support
