// Plays libFuzzer's scripts on a wheel in virtual time and on its model.
#include "fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
  return fuzz::play(model::play_on_service, {bytes, size});
}
