// Plays libFuzzer's scripts on a timing wheel and on its model.
#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
  return fuzz::play(model::play_on_wheel, {bytes, size});
}
