// The figures as text and as JSON.
#include "stats.hpp"

#include <fmt/format.h>
#include <asio_wheel/fmt.hpp>
// Boost.JSON as a part of this program, which needs no library of it then.
#include <boost/json/src.hpp>

#include <chrono>
#include <ctime>

namespace web {
namespace {

namespace json = boost::json;

double cpu_seconds()
{
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

json::value lateness(const asio_wheel::log2_histogram& h)
{
  return {{"p50_ns", h.percentile(50).count()},
          {"p99_ns", h.percentile(99).count()},
          {"max_ns", h.max().count()},
          {"buckets", json::array(h.buckets().begin(), h.buckets().end())}};
}

/// From the reading to `t`, in ms; null for never.
json::value in_ms(const snapshot& s, std::chrono::steady_clock::time_point t)
{
  if (t == t.max()) return nullptr;
  return std::chrono::duration<double, std::milli>(t - s.waiting.read_at).count();
}

json::array timeouts(const snapshot& s)
{
  json::array rows;
  for (const auto* policy : s.timeouts.all()) {
    const auto figures = policy->stats();
    rows.push_back(
      {{"name", policy->name()},
       {"limit_ms", std::chrono::duration<double, std::milli>(policy->limit()).count()},
       {"started", figures.started},
       {"met", figures.met},
       {"expired", figures.expired},
       {"used_p50", figures.share_used.percentile(50)},
       {"used_p99", figures.share_used.percentile(99)}});
  }
  return rows;
}

/// A line for each.
std::string timeouts_as_text(const snapshot& s)
{
  std::string lines;
  for (const auto* policy : s.timeouts.all()) {
    const auto figures = policy->stats();
    lines += fmt::format(
      "{:<8}{:>6} ms: {} operations, {} expired; half used up to {:.1f} %, "
      "99 % up to {:.1f} %\n",
      policy->name(),
      std::chrono::duration_cast<std::chrono::milliseconds>(policy->limit()).count(),
      figures.started, figures.expired, 100 * figures.share_used.percentile(50),
      100 * figures.share_used.percentile(99));
  }
  return lines;
}

json::array waiting(const snapshot& s)
{
  json::array rows;
  for (const auto& row : s.waiting.rows)
    rows.push_back({{"handler", row.handler},
                    {"count", row.count},
                    {"earliest_ms", in_ms(s, row.earliest)},
                    {"latest_ms", in_ms(s, row.latest)}});
  return rows;
}

}  // namespace

std::string to_text(const snapshot& s)
{
  std::string dropped;
  for (std::size_t p = 0; p != phases; ++p)
    dropped += fmt::format("  {} {}", phase_names[p], s.counted.timed_out[p]);
  return fmt::format(
    "connections    {}\npressure       {:.2f}\naccepted       {}\nrequests       {}\nrefused       "
    " {}\n"
    "timed out    {}\nevicted        {}\ncpu            {:.2f} s\n\n"
    "Its timeouts, and how much of their time was used:\n{}\n"
    "The wheel:\n{}\n\nIts lateness:\n{}\n\nWho waits:\n{}\n",
    s.connections, s.pressure, s.counted.accepted, s.counted.requests, s.counted.refused, dropped,
    s.counted.evicted, cpu_seconds(), timeouts_as_text(s), s.wheel, s.wheel.lateness, s.waiting);
}

std::string to_json(const snapshot& s)
{
  json::object timed_out;
  for (std::size_t p = 0; p != phases; ++p) timed_out[phase_names[p]] = s.counted.timed_out[p];
  const auto& w = s.wheel;
  return serialize(json::value{{"cpu_s", cpu_seconds()},
                               {"connections", s.connections},
                               {"pressure", s.pressure},
                               {"accepted", s.counted.accepted},
                               {"requests", s.counted.requests},
                               {"refused", s.counted.refused},
                               {"evicted", s.counted.evicted},
                               {"timed_out", std::move(timed_out)},
                               {"timeouts", timeouts(s)},
                               {"waiting", waiting(s)},
                               {"wheel",
                                {{"pending", w.pending},
                                 {"started", w.started},
                                 {"expired", w.expired},
                                 {"cancelled", w.cancelled},
                                 {"met", w.met},
                                 {"wakeups", w.wakeups},
                                 {"lateness", lateness(w.lateness)}}}});
}

std::string to_metrics(const snapshot& s)
{
  std::string text = asio_wheel::prometheus(s.wheel) + asio_wheel::prometheus(s.timeouts.all());
  const auto add = [&text](const char* name, const char* type, const char* help, auto value) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
  };
  add("http_server_connections", "gauge", "Connections that are open.", s.connections);
  add("http_server_pressure", "gauge", "Share of the places that are taken.", s.pressure);
  add("http_server_accepted_total", "counter", "Connections accepted.", s.counted.accepted);
  add("http_server_requests_total", "counter", "Requests answered.", s.counted.requests);
  add("http_server_refused_total", "counter", "Requests refused.", s.counted.refused);
  add("http_server_evicted_total", "counter", "Connections that gave way to others.",
      s.counted.evicted);
  text +=
    "# HELP http_server_timed_out_total Connections dropped at a deadline, by phase.\n"
    "# TYPE http_server_timed_out_total counter\n";
  for (std::size_t p = 0; p != phases; ++p)
    text += fmt::format("http_server_timed_out_total{{phase=\"{}\"}} {}\n", phase_names[p],
                        s.counted.timed_out[p]);
  return text;
}

}  // namespace web
