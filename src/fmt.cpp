// L3 timers: the texts that fmt.hpp promises. Made without {fmt}, so that a program without
// formatting does not need it at run time.
#include <asio_wheel/fmt.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace asio_wheel {
namespace {

/// Appends texts.
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

/// `x` as std::to_chars writes it, by default in the shortest form.
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

/// Three digits, in the first unit where they suffice.
std::string human(double ns)
{
  struct unit {
    double ns;
    double below;  ///< from here on the next unit, as numbers are rounded
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

/// Writes metrics of several objects of one kind, each with its own labels.
template <class Stats>
class exposition {
public:
  void add(Stats stats, std::string labels)
  {
    all_.push_back({std::move(stats), std::move(labels)});
  }

  template <class Value, class Part>
  void write(const char* name, const char* type, const char* help, Value Part::*value)
  {
    append(text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
    for (const labelled& one : all_) samples(name, one.labels, one.stats.*value);
  }

  [[nodiscard]] std::string text() && { return std::move(text_); }

private:
  struct labelled {
    Stats stats;
    std::string labels;
  };

  void samples(const char* name, const std::string& labels, std::uint64_t value)
  {
    sample(name, "", labels, "", std::to_string(value));
  }

  void samples(const char* name, const std::string& labels, double value)
  {
    sample(name, "", labels, "", digits(value));
  }

  void samples(const char* name, const std::string& labels, const log2_histogram& h)
  {
    // Bucket i counts durations below 2^i ns; a bound counts durations not above it.
    constexpr std::size_t first = 10, last = 36;
    std::uint64_t below = 0;
    for (std::size_t i = 0; i <= last; ++i) {
      below += h.buckets()[i];
      if (i >= first)
        bucket(name, labels, digits((std::exp2(static_cast<double>(i)) - 1) / 1e9), below);
    }
    sums(name, labels, static_cast<double>(h.sum().count()) / 1e9, h.count());
  }

  void samples(const char* name, const std::string& labels, const share_histogram& h)
  {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < share_histogram::size; ++i)
      bucket(name, labels, digits(share_histogram::bounds[i]), below += h.buckets[i]);
    sums(name, labels, h.sum, h.count());
  }

  void bucket(const char* name, const std::string& labels, std::string_view bound,
              std::uint64_t below)
  {
    sample(name, "_bucket", labels, joined("le=\"", bound, "\""), std::to_string(below));
  }

  void sums(const char* name, const std::string& labels, double sum, std::uint64_t count)
  {
    bucket(name, labels, "+Inf", count);
    sample(name, "_sum", labels, "", digits(sum));
    sample(name, "_count", labels, "", std::to_string(count));
  }

  void sample(const char* name, const char* suffix, const std::string& labels,
              const std::string& own, const std::string& value)
  {
    const char* const comma = labels.empty() || own.empty() ? "" : ",";
    const std::string all = joined(labels, comma, own);
    append(text_, name, suffix, all.empty() ? "" : "{", all, all.empty() ? "" : "}", " ", value,
           "\n");
  }

  std::vector<labelled> all_;
  std::string text_;
};

/// The label of a policy.
std::string label_of(const timeout_policy& policy)
{
  std::string value;
  for (const char c : policy.name()) {
    if (c == '\\' || c == '"') value += '\\';
    append(value, c == '\n' ? std::string_view("\\n") : std::string_view(&c, 1));
  }
  return joined("policy=\"", value, "\"");
}

struct policy_figures : timeout_policy_stats {
  double limit_s = 0;
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

std::string prometheus(const wheel_stats& stats, std::string_view labels)
{
  const labelled_stats one[] = {{stats, labels}};
  return prometheus(one);
}

std::string prometheus(std::span<const labelled_stats> wheels)
{
  exposition<wheel_stats> e;
  for (const labelled_stats& w : wheels) e.add(w.stats, std::string(w.labels));
  using s = wheel_stats;
  e.write("asio_wheel_pending", "gauge", "Waits that have neither begun nor been cancelled.",
          &s::pending);
  e.write("asio_wheel_started_total", "counter", "Waits accepted.", &s::started);
  e.write("asio_wheel_expired_total", "counter", "Waits that came to their deadline.", &s::expired);
  e.write("asio_wheel_cancelled_total", "counter", "Waits that were cancelled.", &s::cancelled);
  e.write("asio_wheel_met_total", "counter", "Deadlines whose operation ended before them.",
          &s::met);
  e.write("asio_wheel_abandoned", "gauge", "Operations that go on after they were given up.",
          &s::abandoned);
  e.write("asio_wheel_rejected_total", "counter", "Waits rejected, as too many were pending.",
          &s::rejected);
  e.write("asio_wheel_wakeups_total", "counter", "Times the steady_timer of the wheel fired.",
          &s::wakeups);
  e.write("asio_wheel_cascaded_total", "counter", "Moves of a wait to a finer level.",
          &s::cascaded);
  e.write("asio_wheel_largest_batch", "gauge",
          "Most expiries delivered before the wheel ran out of them.", &s::largest_batch);
  e.write("asio_wheel_lateness_seconds", "histogram",
          "From the tick of an expired wait to its delivery.", &s::lateness);
  return std::move(e).text();
}

std::string prometheus(std::span<const timeout_policy* const> policies, std::string_view labels)
{
  exposition<policy_figures> e;
  for (const timeout_policy* p : policies) {
    const std::chrono::duration<double> limit = p->limit();
    e.add({p->stats(), limit.count()}, joined(labels, labels.empty() ? "" : ",", label_of(*p)));
  }
  using s = policy_figures;
  e.write("asio_wheel_timeout_limit_seconds", "gauge", "How long an operation may take.",
          &s::limit_s);
  e.write("asio_wheel_timeout_started_total", "counter", "Operations started.", &s::started);
  e.write("asio_wheel_timeout_met_total", "counter", "Operations that ended before their deadline.",
          &s::met);
  e.write("asio_wheel_timeout_expired_total", "counter", "Operations whose deadline came.",
          &s::expired);
  e.write("asio_wheel_timeout_abandoned_total", "counter", "Operations that were given up.",
          &s::abandoned);
  e.write("asio_wheel_timeout_used_ratio", "histogram",
          "Share of the time allowed that was used by operations that met it.", &s::share_used);
  return std::move(e).text();
}

}  // namespace asio_wheel
