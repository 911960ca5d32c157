// Prints to stderr.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace common {

/// Unlike fmt::print, does not throw where stderr is closed, or on a disk that is full: that is no
/// reason for a server to end.
template <class... Args>
void print_error(fmt::format_string<Args...> text, Args&&... args)
{
  std::fputs(fmt::format(text, std::forward<Args>(args)...).c_str(), stderr);
}

}  // namespace common
