// What the fuzzers share. Given one input as an argument, and ASIO_WHEEL_MODEL_ALOUD in the
// environment, they print what they do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "model/script.hpp"

namespace fuzz {

/// Ends the process if the script in `bytes` shows a fault.
inline int play(model::player play, std::span<const std::uint8_t> bytes)
{
  const std::string fault = play(model::script_of(bytes));
  if (fault.empty()) return 0;
  fmt::print(stderr, "{}\n", fault);
  std::abort();
}

}  // namespace fuzz
