// What the client counts, the table it prints, and the proof that the figures add up.
#pragma once

#include "../common/process.hpp"
#include "client.hpp"
#include "protocol.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rpc {

/// Counters. Every call is in exactly one of answered, timed_out, failed and in flight.
struct tally : side_notes {
  std::uint64_t connections = 0;  // opened for the load, the silent ones included
  std::uint64_t silent = 0;       // of these, the ones that never say anything
  std::uint64_t idle_drops = 0;   // silent connections that the server closed
  std::uint64_t lost = 0;         // connections that the server closed although they were not idle

  std::uint64_t calls = 0;
  std::uint64_t answered = 0;   // before the deadline
  std::uint64_t timed_out = 0;  // the deadline came first
  std::uint64_t failed = 0;     // the connection closed first
  std::uint64_t stalled = 0;    // calls that asked for an answer after their deadline
  std::uint64_t stalled_timed_out = 0;
  std::uint64_t stalled_failed = 0;
  std::uint64_t wrong_answers = 0;    // not what was sent
  std::uint64_t early_deadlines = 0;  // came too early

  std::vector<clock::duration> lateness;  // of each deadline that expired

  std::uint64_t in_flight() const { return calls - answered - timed_out - failed; }
  std::uint64_t all_answers() const { return answered + late_answers; }
  bool server_is_done() const { return all_answers() + dropped == calls; }
};

/// A finished run.
struct results {
  std::string_view timer;  // of the client's timeouts
  tally client;
  clock::duration calling{};    // how long calls were made
  clock::duration listening{};  // how long the silent connections had to be dropped
  common::usage used;           // by the client
  asio_wheel::wheel_stats wheel;
  std::vector<std::pair<std::string, asio_wheel::timeout_policy_stats>> timeouts;  // by name
  std::optional<server_figures> server;  // of this run alone

  /// Whether the server's figures hold no other client's calls.
  bool server_was_ours() const { return server && server->connections <= client.connections; }
};

/// The value that `share` of the samples do not exceed. Needs at least one; reorders them.
inline clock::duration percentile(std::vector<clock::duration>& samples, double share)
{
  const double last = static_cast<double>(samples.size() - 1);
  const auto nth = samples.begin() + static_cast<std::ptrdiff_t>(share * last);
  std::nth_element(samples.begin(), nth, samples.end());
  return *nth;
}

inline double to_ms(clock::duration d)
{
  return std::chrono::duration<double, std::milli>(d).count();
}

/// Prints a pair of columns for each run.
inline void print_table(std::vector<results> runs)
{
  using cell = std::function<std::string(results&)>;
  const auto row = [&](std::string_view name, const cell& client, const cell& server = {}) {
    fmt::print("{:<30}", name);
    for (results& r : runs) fmt::print("{:>12}{:>12}", client(r), server ? server(r) : "");
    fmt::print("\n");
  };
  const auto title = [](std::string text) -> cell { return [=](results&) { return text; }; };
  const auto count = [](std::uint64_t tally::*member) -> cell {
    return [=](results& r) { return fmt::to_string(r.client.*member); };
  };
  // The server's totals say nothing about this run if there were other clients.
  const auto total = [](std::uint64_t server_figures::*member) -> cell {
    return
      [=](results& r) { return r.server_was_ours() ? fmt::to_string((*r.server).*member) : "-"; };
  };
  const auto waits = [](std::uint64_t asio_wheel::wheel_stats::*member) -> cell {
    return [=](results& r) { return fmt::to_string(r.wheel.*member); };
  };
  const auto lateness = [](double share) -> cell {
    return [=](results& r) {
      if (r.client.lateness.empty()) return std::string("-");
      return fmt::format("{:.3f} ms", to_ms(percentile(r.client.lateness, share)));
    };
  };
  const auto seconds = [](std::uint64_t us) {
    return fmt::format("{:.2f} s", static_cast<double>(us) / 1e6);
  };

  row("", [](results& r) { return std::string(r.timer); });
  row("", title("client"), title("server"));
  row("connections", count(&tally::connections), total(&server_figures::connections));
  row("  dropped as idle", count(&tally::idle_drops), total(&server_figures::idle_drops));
  row("  lost", count(&tally::lost));
  row("calls", count(&tally::calls), total(&server_figures::calls));
  row("  answered", count(&tally::answered));
  row("  timed out", count(&tally::timed_out));
  row("  failed", count(&tally::failed));
  row("late answers", count(&tally::late_answers));
  row("dropped unserved", count(&tally::dropped), total(&server_figures::dropped));
  row(
    "all answers", [](results& r) { return fmt::to_string(r.client.all_answers()); },
    total(&server_figures::answers));
  row("stalled past the deadline", count(&tally::stalled), total(&server_figures::stalled));
  row("heartbeats", count(&tally::heartbeats), total(&server_figures::heartbeats));
  row("calls per second", [](results& r) {
    const double calling = std::chrono::duration<double>(r.calling).count();
    return calling > 0 ? fmt::format("{:.0f}", static_cast<double>(r.client.calls) / calling) : "-";
  });
  row("lateness of a deadline, p50", lateness(0.5));
  row("                        p99", lateness(0.99));
  row("                        max", lateness(1));
  row("waits started on the wheel", waits(&asio_wheel::wheel_stats::started));
  row("  cancelled", waits(&asio_wheel::wheel_stats::cancelled));
  row("  met: the operation ended in time", waits(&asio_wheel::wheel_stats::met));
  row("  expired: pauses between calls, too", waits(&asio_wheel::wheel_stats::expired));
  for (std::size_t i = 0; i < runs.front().timeouts.size(); ++i) {
    const auto used = [=](results& r) -> std::string {
      const auto& h = r.timeouts[i].second.share_used;
      return h.count() != 0 ? fmt::format("{:.1f} %", 100 * h.percentile(99)) : "-";
    };
    row(fmt::format("used of '{}', p99 up to", runs.front().timeouts[i].first), used);
  }
  row("wake-ups by the wheel", waits(&asio_wheel::wheel_stats::wakeups));
  row(
    "wake-ups in all", [](results& r) { return fmt::to_string(r.used.wakeups); },
    total(&server_figures::wakeups));
  row(
    "processor time", [=](results& r) { return seconds(r.used.cpu_us); },
    [=](results& r) { return r.server_was_ours() ? seconds(r.server->cpu_us) : "-"; });
}

/// Prints what a call of the second run cost, as a multiple of one of the first. Warns if the runs
/// had different loads.
inline void print_ratios(const results& first, const results& second)
{
  const auto calls = [](const results& r) { return static_cast<double>(r.client.calls); };
  const auto ratio = [&](std::uint64_t a, std::uint64_t b) {
    const double per_call = static_cast<double>(b) / calls(second);
    return a > 0 ? fmt::format("{:.2f}", per_call * calls(first) / static_cast<double>(a)) : "-";
  };
  const bool both = first.server_was_ours() && second.server_was_ours();
  const auto row = [&](std::string_view name, auto client, auto server) {
    fmt::print("{:<30}{:>12}{:>12}\n", name, client, both ? server() : "-");
  };
  fmt::print("\n{:<30}{:>12}{:>12}\n", fmt::format("{} / {}, per call", second.timer, first.timer),
             "client", "server");
  row("wake-ups in all", ratio(first.used.wakeups, second.used.wakeups),
      [&] { return ratio(first.server->wakeups, second.server->wakeups); });
  row("processor time", ratio(first.used.cpu_us, second.used.cpu_us),
      [&] { return ratio(first.server->cpu_us, second.server->cpu_us); });
  if (calls(second) < 0.95 * calls(first) || calls(first) < 0.95 * calls(second))
    fmt::print(
      "The runs made {} and {} calls: the machine was too busy for this load, and the ratios\n"
      "say little.\n",
      first.client.calls, second.client.calls);
  fmt::print("\n");
}

/// Checks the figures: a sentence for each that does not add up, and for each disturbance of the
/// run.
class audit {
public:
  explicit audit(const results& r)
  {
    check_calls(r.client);
    check_connections(r);
    check_wheel(r.wheel);
    if (r.server_was_ours()) check_server(r.client, *r.server);
  }

  bool adds_up() const { return errors_.empty(); }
  const std::vector<std::string>& errors() const { return errors_; }
  const std::vector<std::string>& disturbances() const { return disturbances_; }

private:
  template <class... Args>
  void expect(bool good, fmt::format_string<Args...> error, Args&&... args)
  {
    if (!good) errors_.push_back(fmt::format(error, std::forward<Args>(args)...));
  }

  template <class... Args>
  void hope(bool good, fmt::format_string<Args...> disturbance, Args&&... args)
  {
    if (!good) disturbances_.push_back(fmt::format(disturbance, std::forward<Args>(args)...));
  }

  void check_calls(const tally& c)
  {
    expect(c.calls == c.answered + c.timed_out + c.failed,
           "{} calls were made, but {} answered + {} timed out + {} failed = {}", c.calls,
           c.answered, c.timed_out, c.failed, c.answered + c.timed_out + c.failed);
    expect(c.stalled == c.stalled_timed_out + c.stalled_failed,
           "{} calls were stalled past their deadline, but only {} of them timed out", c.stalled,
           c.stalled_timed_out);
    expect(c.late_answers <= c.timed_out, "{} late answers, but only {} calls timed out",
           c.late_answers, c.timed_out);
    expect(c.lateness.size() == c.timed_out, "{} calls timed out, but {} deadlines expired",
           c.timed_out, c.lateness.size());
    expect(c.early_deadlines == 0, "{} deadlines expired before their time", c.early_deadlines);
    expect(c.unexpected_answers + c.wrong_answers == 0, "{} answers fit no call",
           c.unexpected_answers + c.wrong_answers);
  }

  void check_connections(const results& r)
  {
    const tally& c = r.client;
    hope(c.lost == 0, "{} connections were lost that were not idle, and {} calls failed", c.lost,
         c.failed);
    hope(c.server_is_done() || c.failed > 0,
         "{} calls were neither answered, not even late, nor dropped",
         c.calls - c.all_answers() - c.dropped);
    hope(r.server.has_value(), "the server did not tell its figures at the end");
    if (!r.server) return;

    const std::chrono::milliseconds idle_timeout(r.server->idle_timeout_ms);
    // With a second to spare, because the machine may be busy.
    const bool all_due = r.listening > idle_timeout + std::chrono::seconds(1);
    expect(!all_due || c.idle_drops == c.silent,
           "{} connections were silent for {:.1f} s, but only {} were dropped as idle", c.silent,
           to_ms(r.listening) / 1e3, c.idle_drops);
  }

  void check_wheel(const asio_wheel::wheel_stats& w)
  {
    expect(w.pending == 0, "{} waits are still on the wheel", w.pending);
    expect(w.started == w.cancelled + w.met + w.expired + w.pending,
           "{} waits were started, but {} cancelled + {} met + {} expired + {} pending", w.started,
           w.cancelled, w.met, w.expired, w.pending);
  }

  void check_server(const tally& c, const server_figures& s)
  {
    hope(s.connections == c.connections, "{} connections were opened, but the server accepted {}",
         c.connections, s.connections);
    // Until its answer is there, a call may still be on the way to the server.
    const bool all_in = c.server_is_done();
    expect(all_in ? s.calls == c.calls : s.calls <= c.calls,
           "{} calls were made, but the server received {}", c.calls, s.calls);
    expect(all_in ? s.stalled == c.stalled : s.stalled <= c.stalled,
           "{} calls asked to be stalled, but the server stalled {}", c.stalled, s.stalled);
    const std::uint64_t answers = c.all_answers();
    expect(all_in ? s.answers == answers : s.answers >= answers,
           "{} answers came, but the server sent {}", answers, s.answers);
    expect(all_in ? s.dropped == c.dropped : s.dropped >= c.dropped,
           "{} calls were dropped, but the server dropped {}", c.dropped, s.dropped);
    // A ping may have followed the question for the server's figures.
    expect(s.heartbeats + 1 >= c.heartbeats,
           "{} heartbeats were answered, but the server answered {}", c.heartbeats, s.heartbeats);
    // The server may drop a silent connection at the moment at which the client closes it.
    expect(s.idle_drops >= c.idle_drops && s.idle_drops <= c.silent + c.lost,
           "{} connections were dropped as idle, but the server dropped {}", c.idle_drops,
           s.idle_drops);
  }

  std::vector<std::string> errors_, disturbances_;
};

}  // namespace rpc
