#include "report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/os.h>
#include <asio_wheel/fmt.hpp>

#include <chrono>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <tuple>

namespace simulate {
namespace {

double to_ms(std::chrono::nanoseconds d)
{
  return std::chrono::duration<double, std::milli>(d).count();
}

template <class Value>
void row(std::string_view name, const Value& value, std::string_view remark = {})
{
  fmt::print("{:<32}{:>16}{}{}\n", name, value, remark.empty() ? "" : "  ", remark);
}

std::string readable(double seconds)
{
  if (seconds < 120) return fmt::format("{:.1f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

/// Prints what this load would cost a real server.
void print_load(const results& r)
{
  const figures& f = r.total();
  const auto per_second = [&](std::uint64_t n) {
    return fmt::format("{:.1f}", static_cast<double>(n) / r.simulated_seconds());
  };
  fmt::print("\nEach second of this in a real server:\n");
  row("waits that expire", per_second(f.expired()), fmt::format("up to {} in a tick", f.busiest));
  row("waits that are cancelled", per_second(f.answered));
  row("moves to a finer level", per_second(r.wheel.cascaded), "of waits; fewer with more slots");
  row("wake-ups by the wheel", per_second(f.wakeups));
  row("processor time", fmt::format("{:.2f} %", 100 * r.processor_seconds / r.simulated_seconds()),
      "of one, with what the simulation itself takes");
  for (const double p : {50.0, 99.0, 99.9, 100.0})
    row(p == 100 ? std::string("lateness, max") : fmt::format("lateness, p{:g}", p),
        r.lateness.count() == 0 ? "-" : fmt::format("{:.3f} ms", to_ms(r.lateness.percentile(p))),
        p == 50 ? "rounding to the tick, and an estimate of the queue" : "");
}

void print_simulation(const settings& s, const results& r)
{
  const double cpu = r.processor_seconds;
  fmt::print("\nThe simulation:\n");
  row("memory, at most", fmt::format("{:.0f} MB", r.memory / 1e6),
      fmt::format("{:.0f} bytes per connection, with the program", r.memory / s.connections));
  row("processor time", readable(cpu), fmt::format("in {}", readable(r.real_seconds)));
  row("waits that ended per second",
      fmt::format("{:.0f}", static_cast<double>(r.total().ended()) / cpu), "of processor time");
  row("a day of this takes", readable(cpu * 86'400 / r.simulated_seconds()), "of it, extrapolated");
}

[[noreturn]] void cannot_write(const std::string& file, const std::system_error& e)
{
  throw std::runtime_error(fmt::format("cannot write {}: {}", file, e.code().message()));
}

class sentences {
public:
  template <class... Args>
  void expect(bool good, fmt::format_string<Args...> error, Args&&... args)
  {
    if (!good) errors.push_back(fmt::format(error, std::forward<Args>(args)...));
  }

  std::vector<std::string> errors;
};

}  // namespace

std::vector<std::string> audit(const settings& s, const results& r)
{
  const figures& f = r.total();
  const auto& w = r.wheel;
  const std::uint64_t closed = r.samples.back().closed;
  sentences all;
  all.expect(w.started == w.expired + w.cancelled + w.pending,
             "{} waits were started, but {} expired + {} cancelled + {} pending", w.started,
             w.expired, w.cancelled, w.pending);
  all.expect(w.expired == f.expired(),
             "{} waits expired, but there were {} heartbeats + {} reconnects + {} timeouts",
             w.expired, f.beats, f.reconnects, f.timed_out);
  all.expect(w.expired == r.lateness.count(), "{} waits expired, but {} were late, or not",
             w.expired, r.lateness.count());
  all.expect(w.cancelled == f.answered, "{} waits were cancelled, but {} requests answered in time",
             w.cancelled, f.answered);
  all.expect(w.pending == s.connections + f.in_flight(),
             "{} waits are pending, but there are {} connections + {} requests in flight",
             w.pending, s.connections, f.in_flight());
  all.expect(f.late_answers <= f.timed_out, "{} answers were late, but only {} requests timed out",
             f.late_answers, f.timed_out);
  all.expect(f.failures >= f.lost && f.lost >= f.reconnects && closed <= s.connections,
             "{} peers failed, {} were lost and {} came back", f.failures, f.lost, f.reconnects);
  return all.errors;
}

void print(const settings& s, const results& r)
{
  const figures& f = r.total();
  fmt::print("{} connections for {:.4g} h: {}\n\n", s.connections, r.samples.back().hours, s.wheel);
  row("heartbeats", f.beats);
  row("requests", f.requests);
  row("  answered", f.answered);
  row("  timed out", f.timed_out, fmt::format("{} answers came late", f.late_answers));
  row("  in flight", f.in_flight());
  row("peers that failed", f.failures);
  row("  lost", f.lost, fmt::format("{} not noticed yet", r.failing));
  row("  connected again", f.reconnects);
  print_load(r);
  print_simulation(s, r);
}

void need_writable(const std::string& file)
try {
  fmt::file(file, fmt::file::WRONLY | fmt::file::CREATE | fmt::file::APPEND);
} catch (const std::system_error& e) {
  cannot_write(file, e);
}

void write_json(const std::string& file, const settings& s, const results& r)
try {
  auto out = fmt::output_file(file);
  const figures& f = r.total();
  out.print(
    R"({{"connections": {}, "hours": {}, "wheel": "{}",
 "processor_seconds": {}, "real_seconds": {}, "memory": {}, "busiest_tick": {},
 "totals": {{"heartbeats": {}, "requests": {}, "answered": {}, "timed_out": {}, "in_flight": {},
  "late_answers": {}, "failures": {}, "failing": {}, "lost": {}, "closed": {}, "reconnects": {},
  "started": {}, "expired": {}, "cancelled": {}, "pending": {}}},
)",
    s.connections, r.samples.back().hours, s.wheel, r.processor_seconds, r.real_seconds, r.memory,
    f.busiest, f.beats, f.requests, f.answered, f.timed_out, f.in_flight(), f.late_answers,
    f.failures, r.failing, f.lost, r.samples.back().closed, f.reconnects, r.wheel.started,
    r.wheel.expired, r.wheel.cancelled, r.wheel.pending);

  out.print(R"( "samples": [["hours", "expired", "cancelled", "wakeups", "in_flight", "closed"])");
  for (const sample& a : r.samples)
    out.print(",\n  [{}, {}, {}, {}, {}, {}]", a.hours, a.counted.expired(), a.counted.answered,
              a.counted.wakeups, a.counted.in_flight(), a.closed);
  out.print("],\n \"lateness\": [[\"below_ns\", \"waits\"]");
  const auto& buckets = r.lateness.buckets();
  for (std::size_t b = 0; b < buckets.size(); ++b)
    if (buckets[b]) out.print(", [{}, {}]", histogram::end_of(b).count(), buckets[b]);
  out.print("]}}\n");
} catch (const std::system_error& e) {
  cannot_write(file, e);
}

}  // namespace simulate
