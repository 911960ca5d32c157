// L3 roof: the texts that fmt.hpp promises.
#include <asio_wheel/fmt.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace asio_wheel {
namespace {

/// Three digits, in the unit that leaves the fewest before the point.
std::string human(double ns)
{
  struct unit {
    double ns;
    double below;  ///< of which it takes fewer, once rounded
    const char* name;
  };
  static constexpr unit units[] = {{1, 999.5, "ns"},      {1e3, 999.5, "us"},   {1e6, 999.5, "ms"},
                                   {1e9, 119.5, "s"},     {60e9, 119.5, "min"}, {3600e9, 47.5, "h"},
                                   {86'400e9, 729.5, "d"}};
  for (const unit& u : units) {
    if (ns / u.ns < u.below) return fmt::format("{:.3g} {}", ns / u.ns, u.name);
  }
  return fmt::format("{:.3g} y", ns / (365 * 86'400e9));
}

std::string human(std::chrono::nanoseconds d)
{
  return human(static_cast<double>(d.count()));
}

std::string percentiles(const log2_histogram& h)
{
  return fmt::format("p50 {}, p90 {}, p99 {}, max {}", human(h.percentile(50)),
                     human(h.percentile(90)), human(h.percentile(99)), human(h.max()));
}

std::string text(clock_source clock)
{
  switch (clock) {
    case clock_source::precise: return "precise";
    case clock_source::coarse: return "coarse";
  }
  return fmt::format("clock_source({})", static_cast<int>(clock));
}

std::string text(const wheel_options& o)
{
  return fmt::format("tick {}, slots {}, shards {}, max_pending {}, clock {}", human(o.tick),
                     o.slots, o.shards == 0 ? "auto" : std::to_string(o.shards),
                     o.max_pending == 0 ? "unlimited" : std::to_string(o.max_pending),
                     text(o.clock));
}

std::string text(const wheel_stats& s)
{
  const auto most = std::max({s.pending, s.started, s.expired, s.cancelled, s.rejected, s.wakeups,
                              s.cascaded, s.largest_batch});
  const std::size_t width = fmt::formatted_size("{}", most);
  std::string lines;
  const auto row = [&](const char* name, std::uint64_t n) {
    fmt::format_to(std::back_inserter(lines), "{:<13}  {:>{}}\n", name, n, width);
  };
  row("pending", s.pending);
  row("started", s.started);
  row("expired", s.expired);
  row("cancelled", s.cancelled);
  row("rejected", s.rejected);
  row("wakeups", s.wakeups);
  row("cascaded", s.cascaded);
  row("largest batch", s.largest_batch);
  return fmt::format("{}{:<13}  {}", lines, "lateness", percentiles(s.lateness));
}

std::string text(const log2_histogram& h)
{
  constexpr double longest_bar = 40;
  const auto& buckets = h.buckets();
  const std::uint64_t most = *std::max_element(buckets.begin(), buckets.end());
  const std::size_t width = fmt::formatted_size("{}", most);
  std::string lines = fmt::format("count {}, {}", h.count(), percentiles(h));
  // From the first bucket that counts anything to the last.
  const auto counts = [](std::uint64_t n) { return n != 0; };
  auto bucket = std::find_if(buckets.begin(), buckets.end(), counts);
  const auto end =
    std::find_if(buckets.rbegin(), std::make_reverse_iterator(bucket), counts).base();
  for (; bucket < end; ++bucket) {
    const auto bar = longest_bar * static_cast<double>(*bucket) / static_cast<double>(most);
    fmt::format_to(std::back_inserter(lines), "\n< {:<8}  {:>{}}{}{}",
                   human(std::exp2(bucket - buckets.begin())), *bucket, width,
                   *bucket == 0 ? "" : "  ",
                   std::string(static_cast<std::size_t>(std::ceil(bar)), '#'));
  }
  return lines;
}

}  // namespace

template <class T>
fmt::format_context::iterator text_formatter<T>::format(const T& value,
                                                        fmt::format_context& context) const
{
  return fmt::formatter<std::string_view>::format(text(value), context);
}

template struct text_formatter<clock_source>;
template struct text_formatter<wheel_options>;
template struct text_formatter<wheel_stats>;
template struct text_formatter<log2_histogram>;

}  // namespace asio_wheel
