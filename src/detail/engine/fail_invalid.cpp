// L2 engine: the texts for values out of range.
#include "fail_invalid.hpp"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <stdexcept>

namespace asio_wheel::detail {

void fail_invalid(const char* format, ...)
{
  std::array<char, 256> text{};
  std::va_list values;
  va_start(values, format);
  static_cast<void>(std::vsnprintf(text.data(), text.size(), format, values));
  va_end(values);
  throw std::invalid_argument(text.data());
}

}  // namespace asio_wheel::detail
