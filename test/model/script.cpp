// Generates scripts, and shortens one that fails.
#include "model/script.hpp"

#include <cstdlib>
#include <functional>
#include <random>
#include <string>

namespace model {
namespace {

bool& aloud_now()
{
  static bool value = std::getenv("ASIO_WHEEL_MODEL_ALOUD") != nullptr;
  return value;
}

std::size_t from_environment(const char* name, std::size_t otherwise)
{
  const char* const value = std::getenv(name);
  return value ? std::stoul(value) : otherwise;
}

script random_script(std::uint64_t seed)
{
  // Of different lengths: short scripts leave little pending, long ones get far.
  script words(std::size_t{16} << seed % 4);
  std::mt19937_64 random(seed);
  std::generate(words.begin(), words.end(), std::ref(random));
  return words;
}

/// Applies `change` to `words` if the result still fails.
template <class Change>
bool improve(player play, script& words, Change change)
{
  script other = words;
  change(other);
  if (other == words || play(other).empty()) return false;
  words = std::move(other);
  return true;
}

script shorten(player play, script words)
{
  for (std::size_t piece = words.size() / 2; piece > 0; piece /= 2) {
    for (std::size_t from = 0; from + piece <= words.size();) {
      const bool gone = improve(play, words, [&](script& w) {
        const auto begin = w.begin() + static_cast<std::ptrdiff_t>(from);
        w.erase(begin, begin + static_cast<std::ptrdiff_t>(piece));
      });
      if (!gone) from += piece;
    }
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (unsigned bits = 0; bits < 64; bits += 8)
      improve(play, words, [&](script& w) { w[i] &= ~(std::uint64_t{255} << bits); });
  }
  return words;
}

}  // namespace

bool aloud()
{
  return aloud_now();
}

script script_of(std::span<const std::uint8_t> bytes)
{
  script words((bytes.size() + 7) / 8);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    words[i / 8] |= std::uint64_t{bytes[i]} << i % 8 * 8;
  return words;
}

std::size_t steps_to_take(std::size_t otherwise)
{
  return from_environment("ASIO_WHEEL_MODEL_STEPS", otherwise);
}

std::string first_fault(player play, std::size_t steps,
                        const std::function<void(std::uint64_t)>& before_each)
{
  for (std::uint64_t seed = from_environment("ASIO_WHEEL_MODEL_SEED", 0); steps > 0; ++seed) {
    before_each(seed);
    const script words = random_script(seed);
    const std::string fault = play(words);
    if (!fault.empty()) {
      const script shortest = shorten(play, words);
      aloud_now() = true;
      return fmt::format("seed {}: {}; shortest script {{{:#x}}}: {}", seed, fault,
                         fmt::join(shortest, ", "), play(shortest));
    }
    steps -= std::min(steps, words.size());
  }
  return {};
}

}  // namespace model
