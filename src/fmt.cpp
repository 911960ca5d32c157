// L3 roof: the texts that fmt.hpp promises. They are made without {fmt}, so that nobody needs that
// at run time who does not format himself.
#include <asio_wheel/fmt.hpp>

#include <algorithm>
#include <array>
#include <charconv>
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

/// Appends the parts, each a text.
template <class... Parts>
void append(std::string& text, const Parts&... parts)
{
  (text.append(std::string_view(parts)), ...);
}

template <class... Parts>
std::string joined(const Parts&... parts)
{
  std::string text;
  append(text, parts...);
  return text;
}

std::string aligned_right(const std::string& text, std::size_t width)
{
  return joined(std::string(width - std::min(width, text.size()), ' '), text);
}

std::string aligned_left(std::string text, std::size_t width)
{
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

/// `x` as std::to_chars writes it: by default with as few digits as tell it.
template <class... How>
std::string digits(double x, How... how)
{
  std::array<char, 32> text{};  // the longest is -2.2250738585072014e-308
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), x, how...).ptr};
}

std::string three_digits(double x)
{
  return digits(x, std::chars_format::general, 3);
}

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
    if (ns / u.ns < u.below) return joined(three_digits(ns / u.ns), " ", u.name);
  }
  return joined(three_digits(ns / (365 * 86'400e9)), " y");
}

std::string human(std::chrono::nanoseconds d)
{
  return human(static_cast<double>(d.count()));
}

std::string percentiles(const log2_histogram& h)
{
  return joined("p50 ", human(h.percentile(50)), ", p90 ", human(h.percentile(90)), ", p99 ",
                human(h.percentile(99)), ", max ", human(h.max()));
}

/// A time, as seen from `now`.
std::string relative(detail::time_point t, detail::time_point now)
{
  if (t == detail::time_point::max()) return "never";
  if (t < now) return joined(human(now - t), " ago");
  return joined("in ", human(t - now));
}

/// Writes metrics, all with the same labels.
class exposition {
public:
  explicit exposition(std::string_view labels) : labels_(labels) {}

  void add(const char* name, const char* type, const char* help, std::uint64_t value)
  {
    head(name, type, help);
    sample(name, "", "", std::to_string(value));
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
      sample(name, "_bucket", joined("le=\"", digits(bound), "\""), std::to_string(below));
    }
    sample(name, "_bucket", "le=\"+Inf\"", std::to_string(h.count()));
    sample(name, "_sum", "", digits(static_cast<double>(h.sum().count()) / 1e9));
    sample(name, "_count", "", std::to_string(h.count()));
  }

  [[nodiscard]] std::string text() && { return std::move(text_); }

private:
  void head(const char* name, const char* type, const char* help)
  {
    append(text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  }

  void sample(const char* name, const char* suffix, const std::string& own,
              const std::string& value)
  {
    const char* const comma = labels_.empty() || own.empty() ? "" : ",";
    const std::string all = joined(labels_, comma, own);
    append(text_, name, suffix, all.empty() ? "" : "{", all, all.empty() ? "" : "}", " ", value,
           "\n");
  }

  std::string_view labels_;
  std::string text_;
};

}  // namespace

namespace detail {

std::string text_of(clock_source clock)
{
  switch (clock) {
    case clock_source::precise: return "precise";
    case clock_source::coarse: return "coarse";
  }
  return joined("clock_source(", std::to_string(static_cast<int>(clock)), ")");
}

std::string text_of(const wheel_options& o)
{
  return joined("tick ", human(o.tick), ", slots ", std::to_string(o.slots), ", shards ",
                o.shards == 0 ? "auto" : std::to_string(o.shards), ", max_pending ",
                o.max_pending == 0 ? "unlimited" : std::to_string(o.max_pending), ", clock ",
                text_of(o.clock));
}

std::string text_of(const wheel_stats& s)
{
  const auto most = std::max({s.pending, s.started, s.expired, s.cancelled, s.met, s.abandoned,
                              s.rejected, s.wakeups, s.cascaded, s.largest_batch});
  const std::size_t width = std::to_string(most).size();
  constexpr std::size_t longest_name = 13;
  std::string lines;
  const auto row = [&](const char* name, std::uint64_t n) {
    append(lines, aligned_left(name, longest_name), "  ", aligned_right(std::to_string(n), width),
           "\n");
  };
  row("pending", s.pending);
  row("started", s.started);
  row("expired", s.expired);
  row("cancelled", s.cancelled);
  row("met", s.met);
  row("abandoned", s.abandoned);
  row("rejected", s.rejected);
  row("wakeups", s.wakeups);
  row("cascaded", s.cascaded);
  row("largest batch", s.largest_batch);
  return joined(lines, aligned_left("lateness", longest_name), "  ", percentiles(s.lateness));
}

std::string text_of(const log2_histogram& h)
{
  constexpr double longest_bar = 40;
  const auto& buckets = h.buckets();
  const std::uint64_t most = *std::max_element(buckets.begin(), buckets.end());
  const std::size_t width = std::to_string(most).size();
  std::string lines = joined("count ", std::to_string(h.count()), ", ", percentiles(h));
  // From the first bucket that counts anything to the last.
  const auto counts = [](std::uint64_t n) { return n != 0; };
  auto bucket = std::find_if(buckets.begin(), buckets.end(), counts);
  const auto end =
    std::find_if(buckets.rbegin(), std::make_reverse_iterator(bucket), counts).base();
  for (; bucket < end; ++bucket) {
    const auto bar = longest_bar * static_cast<double>(*bucket) / static_cast<double>(most);
    append(lines, "\n< ", aligned_left(human(std::exp2(bucket - buckets.begin())), 8), "  ",
           aligned_right(std::to_string(*bucket), width));
    if (*bucket != 0)
      append(lines, "  ", std::string(static_cast<std::size_t>(std::ceil(bar)), '#'));
  }
  return lines;
}

std::string text_of(const pending_handlers& p)
{
  struct line {
    std::string count, earliest, latest;
    std::string_view handler;
  };
  std::vector<line> lines{{"count", "earliest", "latest", "handler"}};
  for (const auto& row : p.rows)
    lines.push_back({std::to_string(row.count), relative(row.earliest, p.read_at),
                     relative(row.latest, p.read_at), row.handler});
  std::size_t count_width = 0, earliest_width = 0, latest_width = 0;
  for (const line& l : lines) {
    count_width = std::max(count_width, l.count.size());
    earliest_width = std::max(earliest_width, l.earliest.size());
    latest_width = std::max(latest_width, l.latest.size());
  }
  std::string all;
  for (const line& l : lines)
    append(all, all.empty() ? "" : "\n", aligned_right(l.count, count_width), "  ",
           aligned_right(l.earliest, earliest_width), "  ", aligned_right(l.latest, latest_width),
           "  ", l.handler);
  return all;
}

}  // namespace detail

std::string prometheus(const wheel_stats& s, std::string_view labels)
{
  exposition e(labels);
  e.add("asio_wheel_pending", "gauge", "Waits that have neither begun nor been cancelled.",
        s.pending);
  e.add("asio_wheel_started_total", "counter", "Waits accepted.", s.started);
  e.add("asio_wheel_expired_total", "counter", "Waits that came to their deadline.", s.expired);
  e.add("asio_wheel_cancelled_total", "counter", "Waits that were cancelled.", s.cancelled);
  e.add("asio_wheel_met_total", "counter", "Deadlines whose operation ended before them.", s.met);
  e.add("asio_wheel_abandoned", "gauge", "Operations that go on after they were given up.",
        s.abandoned);
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

}  // namespace asio_wheel
