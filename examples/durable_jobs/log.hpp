// Lines with the time of day.
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace durable_jobs {

template <class... Args>
void log(fmt::format_string<Args...> text, Args&&... args)
{
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  fmt::print("{:%H:%M:%S}.{:03} {}\n", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
             (now - seconds).count(), fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace durable_jobs
