// The figures as text and as JSON.
#include "stats.hpp"

#include <fmt/format.h>
#include <asio_wheel/fmt.hpp>
// Boost.JSON as a part of this program, which needs no library of it then.
#include <boost/json/src.hpp>

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

}  // namespace

std::string to_text(const snapshot& s)
{
  std::string dropped;
  for (std::size_t p = 0; p != phases; ++p)
    dropped += fmt::format("  {} {}", phase_names[p], s.counted.timed_out[p]);
  return fmt::format(
    "connections    {}\naccepted       {}\nrequests       {}\nrefused        {}\n"
    "timed out    {}\nevicted        {}\ncpu            {:.2f} s\n\n"
    "The wheel{}:\n{}\n\nIts lateness:\n{}\n",
    s.connections, s.counted.accepted, s.counted.requests, s.counted.refused, dropped,
    s.counted.evicted, cpu_seconds(),
    s.steady ? ", idle since the deadlines are on steady_timer" : "", s.wheel, s.wheel.lateness);
}

std::string to_json(const snapshot& s)
{
  json::object timed_out;
  for (std::size_t p = 0; p != phases; ++p) timed_out[phase_names[p]] = s.counted.timed_out[p];
  const auto& w = s.wheel;
  return serialize(json::value{{"timer", s.steady ? "steady" : "wheel"},
                               {"cpu_s", cpu_seconds()},
                               {"connections", s.connections},
                               {"accepted", s.counted.accepted},
                               {"requests", s.counted.requests},
                               {"refused", s.counted.refused},
                               {"evicted", s.counted.evicted},
                               {"timed_out", std::move(timed_out)},
                               {"wheel",
                                {{"pending", w.pending},
                                 {"started", w.started},
                                 {"expired", w.expired},
                                 {"cancelled", w.cancelled},
                                 {"wakeups", w.wakeups},
                                 {"lateness", lateness(w.lateness)}}}});
}

}  // namespace web
