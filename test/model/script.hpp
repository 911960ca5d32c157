// Scripts of operations: reads and generates them, and shortens one that fails. The fuzzers of
// test/fuzz and the model checks share this.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace model {

/// One operation per word. Any words are a script, and so is any part of one.
using script = std::vector<std::uint64_t>;
using script_view = std::span<const std::uint64_t>;

/// Plays a script on the library and on a model of it. Returns how the two differ; empty if they do
/// not.
using player = std::string (*)(script_view);

/// Takes a word apart, from its lowest bit.
class operands {
public:
  explicit operands(std::uint64_t word) : rest_(word) {}

  [[nodiscard]] std::uint64_t take(unsigned bits)
  {
    const std::uint64_t value = rest_ & ((std::uint64_t{1} << bits) - 1);
    rest_ >>= bits;
    return value;
  }

  /// From 0 to beyond 2^63; small numbers more often than large ones, many close to a power of two.
  [[nodiscard]] std::uint64_t magnitude()
  {
    std::uint64_t exponent = take(6);
    exponent &= take(6);
    const std::uint64_t nine_bits = 256 | take(8);
    const std::uint64_t n =
      exponent < 8 ? nine_bits >> (8 - exponent) : nine_bits << (exponent - 8);
    return n - 1 + take(2);
  }

private:
  std::uint64_t rest_;
};

/// Takes off a script's first word, which holds its settings.
[[nodiscard]] inline operands take_first(script_view& words)
{
  if (words.empty()) return operands(0);
  const operands first(words.front());
  words = words.subspan(1);
  return first;
}

/// The script in a fuzzer's input: eight bytes a word, the lowest first.
[[nodiscard]] script script_of(std::span<const std::uint8_t> bytes);

/// How many steps a model check takes: ASIO_WHEEL_MODEL_STEPS in the environment, which the presets
/// set, or `otherwise`.
[[nodiscard]] std::size_t steps_to_take(std::size_t otherwise);

/// Plays random scripts of `steps` words in all. Returns what is wrong with the first that fails,
/// its seed, and what is left of it after removing words and bytes as long as it fails; empty if
/// none fails. Calls `before_each` with the seed, because a script may end the process.
/// ASIO_WHEEL_MODEL_SEED in the environment is the first seed.
[[nodiscard]] std::string first_fault(player play, std::size_t steps,
                                      const std::function<void(std::uint64_t)>& before_each);

/// Whether players print to stderr what they do: for the shortened script that fails, and always if
/// ASIO_WHEEL_MODEL_ALOUD is set.
[[nodiscard]] bool aloud();

template <class... Args>
void tell(fmt::format_string<Args...> what, Args&&... args)
{
  if (aloud()) fmt::print(stderr, "{}\n", fmt::format(what, std::forward<Args>(args)...));
}

/// Thrown by a function or a handler when a script demands it.
struct thrown_by_script {};

/// All players.
[[nodiscard]] std::string play_on_wheel(script_view words);
[[nodiscard]] std::string play_on_service(script_view words);
[[nodiscard]] std::string play_on_stream(script_view words);
[[nodiscard]] std::string play_on_tasks(script_view words);

}  // namespace model
