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
#include <string_view>
#include <utility>
#include <vector>

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
  const auto most = std::max({s.pending, s.started, s.expired, s.cancelled, s.met, s.rejected,
                              s.wakeups, s.cascaded, s.largest_batch});
  const std::size_t width = fmt::formatted_size("{}", most);
  std::string lines;
  const auto row = [&](const char* name, std::uint64_t n) {
    fmt::format_to(std::back_inserter(lines), "{:<13}  {:>{}}\n", name, n, width);
  };
  row("pending", s.pending);
  row("started", s.started);
  row("expired", s.expired);
  row("cancelled", s.cancelled);
  row("met", s.met);
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

/// A time, as seen from `now`.
std::string relative(detail::time_point t, detail::time_point now)
{
  if (t == detail::time_point::max()) return "never";
  if (t < now) return human(now - t) + " ago";
  return "in " + human(t - now);
}

std::string text(const pending_handlers& p)
{
  struct line {
    std::string count, earliest, latest;
    std::string_view handler;
  };
  std::vector<line> lines{{"count", "earliest", "latest", "handler"}};
  for (const auto& row : p.rows)
    lines.push_back({std::to_string(row.count), relative(row.earliest, p.read_at),
                     relative(row.latest, p.read_at), row.handler});
  std::size_t count = 0, earliest = 0, latest = 0;
  for (const line& l : lines) {
    count = std::max(count, l.count.size());
    earliest = std::max(earliest, l.earliest.size());
    latest = std::max(latest, l.latest.size());
  }
  std::string all;
  for (const line& l : lines)
    fmt::format_to(std::back_inserter(all), "{}{:>{}}  {:>{}}  {:>{}}  {}", all.empty() ? "" : "\n",
                   l.count, count, l.earliest, earliest, l.latest, latest, l.handler);
  return all;
}

/// Writes metrics, all with the same labels.
class exposition {
public:
  explicit exposition(std::string_view labels) : labels_(labels) {}

  void add(const char* name, const char* type, const char* help, std::uint64_t value)
  {
    head(name, type, help);
    sample(name, "", "", value);
  }

  void add(const char* name, const char* help, const log2_histogram& h)
  {
    // Bucket i holds what is below 2^i ns, and a bound counts what is not above it.
    constexpr std::size_t first = 10, last = 36;
    head(name, "histogram", help);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i <= last; ++i) {
      below += h.buckets()[i];
      if (i < first) continue;
      const double bound = (std::exp2(static_cast<double>(i)) - 1) / 1e9;
      sample(name, "_bucket", fmt::format("le=\"{}\"", bound), below);
    }
    sample(name, "_bucket", "le=\"+Inf\"", h.count());
    sample(name, "_sum", "", static_cast<double>(h.sum().count()) / 1e9);
    sample(name, "_count", "", h.count());
  }

  [[nodiscard]] std::string text() && { return std::move(text_); }

private:
  void head(const char* name, const char* type, const char* help)
  {
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }

  template <class T>
  void sample(const char* name, const char* suffix, const std::string& own, T value)
  {
    const bool both = !labels_.empty() && !own.empty();
    const bool any = !labels_.empty() || !own.empty();
    fmt::format_to(std::back_inserter(text_), "{}{}{}{}{}{}{} {}\n", name, suffix, any ? "{" : "",
                   labels_, both ? "," : "", own, any ? "}" : "", value);
  }

  std::string_view labels_;
  std::string text_;
};

}  // namespace

std::string prometheus(const wheel_stats& s, std::string_view labels)
{
  exposition e(labels);
  e.add("asio_wheel_pending", "gauge", "Waits that have neither begun nor been cancelled.",
        s.pending);
  e.add("asio_wheel_started_total", "counter", "Waits accepted.", s.started);
  e.add("asio_wheel_expired_total", "counter", "Waits that came to their deadline.", s.expired);
  e.add("asio_wheel_cancelled_total", "counter", "Waits that were cancelled.", s.cancelled);
  e.add("asio_wheel_met_total", "counter", "Deadlines whose operation ended before them.", s.met);
  e.add("asio_wheel_rejected_total", "counter", "Waits refused, as too many were pending.",
        s.rejected);
  e.add("asio_wheel_wakeups_total", "counter", "Times the steady_timer of the wheel fired.",
        s.wakeups);
  e.add("asio_wheel_cascaded_total", "counter", "Moves of a wait to a finer level.", s.cascaded);
  e.add("asio_wheel_largest_batch", "gauge",
        "Most expiries delivered before the wheel ran out of them.", s.largest_batch);
  e.add("asio_wheel_lateness_seconds", "From the tick of an expired wait to its delivery.",
        s.lateness);
  return std::move(e).text();
}

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
template struct text_formatter<pending_handlers>;

}  // namespace asio_wheel
