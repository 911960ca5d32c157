// Durations and dates as they are typed, and as they are shown.
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <boost/program_options/errors.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace durable_jobs {

constexpr std::chrono::milliseconds longest_duration = std::chrono::days{10'000};

/// "250ms", "30s", "5m", "2h", "1d"; rounded up. Nothing if it is no duration. One that is negative
/// or too long stays so: ask is_in_range().
inline std::optional<std::chrono::milliseconds> parse_duration(std::string_view text)
{
  struct unit {
    std::string_view name;
    std::int64_t ms;
  };
  static constexpr unit units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  double number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec == std::errc::invalid_argument || std::isnan(number)) return std::nullopt;
  const auto name = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& u : units) {
    if (name != u.name) continue;
    if (ec == std::errc::result_out_of_range) return std::chrono::milliseconds::max();
    const double most = static_cast<double>(longest_duration.count()) + 1;
    if (number < 0) return std::chrono::milliseconds::min();
    const double ms = std::min(number * static_cast<double>(u.ms), most);
    return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(ms)));
  }
  return std::nullopt;
}

inline bool is_in_range(std::chrono::milliseconds d)
{
  return d >= d.zero() && d <= longest_duration;
}

/// An option's value. Throws po::error.
inline std::chrono::milliseconds duration_option(std::string_view name, const std::string& value)
{
  if (const auto d = parse_duration(value)) {
    if (is_in_range(*d)) return *d;
    throw boost::program_options::error(
      fmt::format("--{} must be within 0s and 10000d, not '{}'", name, value));
  }
  throw boost::program_options::error(
    fmt::format("--{} must be a duration like 250ms, 30s, 5m, 2h or 1d, not '{}'", name, value));
}

/// "2030-01-31T23:59:00Z", since 1970. Throws po::error.
inline std::chrono::milliseconds date_option(std::string_view name, const std::string& value)
{
  std::tm date{};
  std::istringstream text(value);
  text >> std::get_time(&date, "%Y-%m-%dT%H:%M:%S");
  const auto day = std::chrono::year(date.tm_year + 1900) / (date.tm_mon + 1) / date.tm_mday;
  if (text.fail() || (text.peek() != EOF && text.get() != 'Z') || text.peek() != EOF || !day.ok())
    throw boost::program_options::error(
      fmt::format("--{} must be a UTC time like 2030-01-31T23:59:00Z, not '{}'", name, value));
  return std::chrono::sys_days(day).time_since_epoch() + std::chrono::hours(date.tm_hour) +
         std::chrono::minutes(date.tm_min) + std::chrono::seconds(date.tm_sec);
}

/// "in 1:02:03.456", or "1:02:03.456 ago".
inline std::string relative(std::chrono::milliseconds d)
{
  const auto ms = std::chrono::abs(d).count();
  const auto text = fmt::format("{}:{:02}:{:02}.{:03}", ms / 3'600'000, ms / 60'000 % 60,
                                ms / 1000 % 60, ms % 1000);
  return d.count() >= 0 ? "in " + text : text + " ago";
}

}  // namespace durable_jobs
