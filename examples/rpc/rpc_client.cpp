// A load client for rpc_server: many connections, each with a heartbeat, and thousands of calls a
// second, each with a deadline on the timing wheel. Nearly all of these are cancelled; the figures
// account for every one. --timer puts all timeouts on steady_timers instead.
#include "../common/command_line.hpp"
#include "../common/print_error.hpp"
#include "../common/process.hpp"
#include "client.hpp"
#include "connection.hpp"
#include "protocol.hpp"
#include "report.hpp"
#include "timers.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rpc {
namespace {

using namespace std::chrono_literals;
namespace po = common::po;
using common::ranged;

struct settings {
  std::string host = "127.0.0.1";
  int port = 7400;
  int connections = 1000;
  int silent = 0;
  double rate = 5000;         // calls per second, of all connections together
  double stall_share = 0.01;  // of the calls
  double duration = 10;       // s
  int deadline = 250;         // ms
  std::uint64_t seed = 1;
  std::string timer = "wheel";
  int compare_with = 0;  // port of a server to load with the other timer
};

/// Rewrites one line on a terminal. Elsewhere it prints a new line every two seconds.
class progress {
public:
  explicit progress(std::string_view timer) : timer_(timer) {}

  void show(const tally& t, clock::time_point start)
  {
    const auto now = clock::now();
    if (now < next_) return;
    next_ = now + (terminal_ ? 200ms : 2000ms);
    common::print_error("{}{:<6}{:5.1f} s  {} calls, {} answered, {} timed out, {} in flight{}",
                        terminal_ ? "\r" : "", timer_, to_ms(now - start) / 1e3, t.calls,
                        t.answered, t.timed_out, t.in_flight(), terminal_ ? "\x1b[K" : "\n");
  }
  void clear()
  {
    if (terminal_) common::print_error("\r\x1b[K");
  }

private:
  const std::string_view timer_;
  const bool terminal_ = common::stderr_is_terminal();
  clock::time_point next_{};
};

/// The whole run, from the first connection to the last.
template <class Timers>
class load {
public:
  using client = rpc::client<Timers>;

  load(asio::io_context& context, const settings& s)
    : settings_(s),
      context_(context),
      timers_(context),
      pause_(context),
      call_("call", std::chrono::milliseconds(s.deadline)),
      random_(s.seed)
  {}

  asio::awaitable<void> run()
  {
    co_await resolve();
    control_ = co_await connect();
    asio::co_spawn(context_, control_->listen(), rethrow);
    const auto before = co_await ask_figures();
    if (!before) throw std::runtime_error("this is no rpc_server: it does not tell its figures");
    control_->keep_alive(heartbeat_for(*before));

    co_await open_connections(*before);
    co_await make_calls();
    co_await finish_calls();
    results_.listening = clock::now() - connected_;
    closing_ = true;
    for (const auto& c : clients_) c->close();

    if (const auto after = co_await ask_figures()) results_.server = difference(*before, *after);
    control_->close();
    progress_.clear();
  }

  /// Stops making calls. run() still waits for those in flight.
  void stop() { stopping_ = true; }

  /// After run().
  results take_results()
  {
    results_.timer = Timers::name;
    results_.client = std::move(tally_);
    results_.wheel = timers_.stats();
    for (const asio_wheel::timeout_policy* p : {&connect_, &figures_, &call_})
      results_.timeouts.push_back({p->name(), p->stats()});
    const common::usage used = common::usage_so_far();
    results_.used = {used.cpu_us - used_before_.cpu_us, used.wakeups - used_before_.wakeups};
    return std::move(results_);
  }

private:
  static constexpr auto glance = 20ms;  // how often to check whether a phase is over

  asio::awaitable<void> resolve()
  {
    tcp::resolver resolver(context_);
    error_code ec;
    const auto found =
      co_await resolver.async_resolve(settings_.host, std::to_string(settings_.port),
                                      asio::redirect_error(asio::use_awaitable, ec));
    if (ec)
      throw std::runtime_error(fmt::format("cannot resolve {}: {}", settings_.host, ec.message()));
    endpoints_.assign(found.begin(), found.end());
  }

  asio::awaitable<std::shared_ptr<client>> connect()
  {
    tcp::socket socket(context_);
    error_code ec;
    const tcp::endpoint peer = co_await asio::async_connect(
      socket, endpoints_,
      timers_.timeout_after(connect_, asio::redirect_error(asio::use_awaitable, ec)));
    if (ec)
      throw std::runtime_error(fmt::format("cannot connect to {}:{}: {} (connection {})",
                                           settings_.host, settings_.port, ec.message(),
                                           clients_.size() + 1));
    endpoints_.assign(1, peer);
    co_return std::make_shared<client>(std::move(socket), tally_);
  }

  /// Nothing if the server does not answer in time.
  asio::awaitable<std::optional<server_figures>> ask_figures()
  {
    error_code ec;
    const std::string answer = co_await control_->async_call(
      kind::stats_query, {},
      timers_.timeout_after(figures_, asio::redirect_error(asio::use_awaitable, ec)));
    if (ec) co_return std::nullopt;
    co_return parse_figures(answer);
  }

  /// As patient with the server as the server is with its clients.
  static asio_wheel::heartbeat_options heartbeat_for(const server_figures& f)
  {
    const auto interval = std::max<std::uint64_t>(f.heartbeat_ms, 1);
    return {std::chrono::milliseconds(interval),
            std::max<std::uint64_t>(f.idle_timeout_ms / interval, 1)};
  }

  /// One after the other: a thousand at once would overflow the server's backlog.
  asio::awaitable<void> open_connections(const server_figures& server)
  {
    for (int i = 0; i < settings_.connections && !stopping_; ++i) {
      const bool silent = i < settings_.silent;
      // The server may accept the connection well before this process notices.
      const auto earliest_begin = clock::now();
      const auto c = clients_.emplace_back(co_await connect());
      ++tally_.connections;
      if (silent)
        ++tally_.silent;
      else
        c->keep_alive(heartbeat_for(server));
      const std::chrono::milliseconds idle_timeout(server.idle_timeout_ms);
      asio::co_spawn(context_, attend(c, silent, earliest_begin + idle_timeout), rethrow);
    }
    connected_ = clock::now();
  }

  /// The server has no reason to close the connection before `earliest_drop`, and after it only
  /// silence.
  asio::awaitable<void> attend(std::shared_ptr<client> c, bool silent,
                               clock::time_point earliest_drop)
  {
    co_await c->listen();
    if (closing_) co_return;
    ++(silent && clock::now() >= earliest_drop ? tally_.idle_drops : tally_.lost);
  }

  /// At random times: many users know nothing of each other.
  asio::awaitable<void> make_calls()
  {
    const auto start = clock::now();
    const auto end = start + seconds(settings_.duration);
    const bool any = settings_.rate > 0 && tally_.silent < clients_.size();
    std::exponential_distribution<double> gap(any ? settings_.rate : 1);
    // Counts from the last due time, so that a late wake-up does not lower the rate.
    auto due = any ? start + seconds(gap(random_)) : end;
    while (!stopping_ && clock::now() < end &&
           tally_.idle_drops + tally_.lost < tally_.connections) {
      progress_.show(tally_, connected_);
      co_await wait_until(std::min(std::min(due, end), clock::now() + glance));
      if (clock::now() < due) continue;
      if (due < end) co_await make_call();
      due += seconds(gap(random_));
    }
    results_.calling = clock::now() - start;
  }

  /// Calls through a random connection that is not silent.
  asio::awaitable<void> make_call()
  {
    std::uniform_int_distribution<std::size_t> any(tally_.silent, clients_.size() - 1);
    const auto c = clients_[any(random_)];
    co_await c->room();
    if (!c->is_open() || stopping_) co_return;
    owed_stalls_ += settings_.stall_share;
    const bool stalled = owed_stalls_ >= 1;
    if (stalled) --owed_stalls_;
    asio::co_spawn(context_, call(c, stalled), rethrow);
  }

  asio::awaitable<void> call(std::shared_ptr<client> c, bool stalled)
  {
    const std::chrono::milliseconds allowed(settings_.deadline);
    const auto text = fmt::format("call {}", ++tally_.calls);
    if (stalled) ++tally_.stalled;
    const call_request request{allowed, stalled ? stall() : 0ms, text};
    const auto deadline = clock::now() + allowed;
    error_code ec;
    const std::string answer = co_await c->async_call(
      kind::call, to_payload(request),
      timers_.timeout_after(call_, asio::redirect_error(asio::use_awaitable, ec)));

    const auto lateness = clock::now() - deadline;
    // Only the deadline aborts a call.
    const bool expired = ec == asio::error::timed_out || ec == asio::error::operation_aborted;
    if (expired || lateness >= 0ms) {
      // After a pause of this process the loop may see the answer, or the end of the connection,
      // before the deadline. The clock decides.
      if (!ec) ++tally_.late_answers;
      if (lateness < 0ms) ++tally_.early_deadlines;
      ++tally_.timed_out;
      if (stalled) ++tally_.stalled_timed_out;
      tally_.lateness.push_back(lateness);
    } else if (ec) {
      ++tally_.failed;
      if (stalled) ++tally_.stalled_failed;
    } else {
      ++tally_.answered;
      if (answer != text) ++tally_.wrong_answers;
    }
  }

  /// How long the server delays a stalled call: well past its deadline.
  std::chrono::milliseconds stall() const
  {
    return std::chrono::milliseconds(settings_.deadline + settings_.deadline / 2 + 20);
  }

  /// Every call ends by its deadline; a late answer, or word that there is none, takes a little
  /// longer.
  asio::awaitable<void> finish_calls()
  {
    stop();
    const auto end = clock::now() + stall() + 2s;
    while (clock::now() < end) {
      if (tally_.in_flight() == 0 && (tally_.server_is_done() || tally_.failed > 0)) break;
      progress_.show(tally_, connected_);
      co_await wait_until(clock::now() + glance);
    }
  }

  asio::awaitable<void> wait_until(clock::time_point t)
  {
    pause_.expires_at(t);
    co_await pause_.async_wait(asio::use_awaitable);
  }

  static clock::duration seconds(double s)
  {
    return std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(s));
  }

  static server_figures difference(const server_figures& before, server_figures after)
  {
    for (const auto member : server_figures::all) after.*member -= before.*member;
    after.idle_timeout_ms = before.idle_timeout_ms;
    after.heartbeat_ms = before.heartbeat_ms;
    return after;
  }

  const settings& settings_;
  asio::io_context& context_;
  const Timers timers_;
  typename Timers::timer pause_;
  asio_wheel::timeout_policy connect_{"connect", 5s}, figures_{"figures", 5s}, call_;
  const common::usage used_before_ = common::usage_so_far();
  std::vector<tcp::endpoint> endpoints_;  // after the first connection, only the one that worked
  std::shared_ptr<client> control_;       // makes no calls and is not counted
  std::vector<std::shared_ptr<client>> clients_;  // the silent ones first
  std::mt19937_64 random_;
  double owed_stalls_ = 0;  // the share is exact, not random
  clock::time_point connected_{};
  bool stopping_ = false, closing_ = false;
  tally tally_;
  progress progress_{Timers::name};
  results results_;
};

constexpr std::string_view intro =
  R"(Usage: rpc_client [option...]

Puts load on a running rpc_server, and prints what became of every call and
every connection. Ctrl-C ends the load early; a second one ends the program at
once. The exit status is 1 if the figures do not add up or the server
misbehaved, and 2 if an option is wrong.
)";

/// Reads the options. False if --help was asked for.
bool read_settings(int argc, char** argv, settings& s)
{
  po::options_description options("Options");
  auto add = options.add_options();
  add("host", po::value(&s.host)->default_value(s.host)->value_name("name"), "where the server is");
  add("port", ranged(s.port, "port", 1, 65'535, "n"), "its port");
  add("connections", ranged(s.connections, "connections", 1, 100'000, "n"), "connections to open");
  std::optional<int> silent;
  add("silent", po::value<std::string>()->value_name("n")->notifier([&](const std::string& n) {
    silent = common::number_in("silent", n, 0, 100'000);
  }),
      "how many of them never say a word, so that the server drops them as idle; 2 % if not set");
  add("rate", ranged(s.rate, "rate", 0.0, 1e6, "n"),
      "calls per second, of all connections together");
  add("stall-share", ranged(s.stall_share, "stall-share", 0.0, 1.0, "0..1"),
      "share of the calls that the server is asked to stall past their deadline");
  add("duration", ranged(s.duration, "duration", 0.1, 86'400.0, "s"), "how long to make calls");
  add("deadline", ranged(s.deadline, "deadline", 1, 30'000, "ms"), "of every call");
  add(
    "seed",
    ranged(s.seed, "seed", decltype(s.seed){0}, std::numeric_limits<decltype(s.seed)>::max(), "n"),
    "of the random times of calls, and of the connections that make them: the same seed makes the "
    "same load");
  add("timer", po::value(&s.timer)->default_value(s.timer)->value_name("wheel|steady"),
      "what all timeouts are on: the timing wheel, or Asio's steady_timer");
  add("compare-with",
      po::value<std::string>()->value_name("port")->notifier([&](const std::string& port) {
        s.compare_with = common::number_in("compare-with", port, 1, 65'535);
      }),
      "port of a second server, which is then loaded with the other timer, to print both");
  if (!common::parse_command_line(argc, argv, intro, options)) return false;
  s.silent = silent.value_or(s.connections / 50);
  if (s.silent < 0 || s.silent > s.connections)
    throw po::error(fmt::format("--silent must be within 0 and the {} connections, not {}",
                                s.connections, s.silent));
  return true;
}

/// Prints the results and every error. False if there was one.
bool report(const settings& s, const std::vector<results>& runs)
{
  fmt::print(
    "{} connections, {} of them silent; {} calls per second for {} s, at random\n"
    "times (seed {}); {:g} % of them stalled past their deadline of {} ms\n\n",
    s.connections, s.silent, s.rate, s.duration, s.seed, 100 * s.stall_share, s.deadline);
  print_table(runs);
  if (runs.size() == 2) print_ratios(runs.front(), runs.back());
  bool good = true, adds_up = true;
  for (const results& r : runs) {
    const audit a(r);
    if (r.server && !r.server_was_ours())
      fmt::print("The server's figures hold more than this run, and were not compared.\n");
    std::fflush(stdout);
    for (const auto& sentence : a.disturbances())
      common::print_error("rpc_client: {}.\n", sentence);
    for (const auto& sentence : a.errors())
      common::print_error("rpc_client: the figures do not add up: {}.\n", sentence);
    adds_up = adds_up && a.adds_up();
    good = good && a.adds_up() && a.disturbances().empty();
  }
  if (adds_up) fmt::print("The figures add up.\n");
  return good;
}

template <class Timers>
results run(const settings& s, bool& interrupted)
{
  asio::io_context context(1);
  load<Timers> rpc_load(context, s);

  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code ec, int) {
    if (ec) return;
    interrupted = true;
    signals.clear();  // a second Ctrl-C ends the program at once
    rpc_load.stop();
  });
  asio::co_spawn(context, rpc_load.run(), [&](std::exception_ptr thrown) {
    rethrow(thrown);
    signals.cancel();
  });
  context.run();
  return rpc_load.take_results();
}

/// False if the figures do not add up, or a run was disturbed.
bool run(settings s)
{
  common::need_open_files(s.connections);
  bool interrupted = false;
  const int count = s.compare_with != 0 ? 2 : 1;
  int number = 0;
  const auto one_run = [&]<class Timers>() {
    if (count > 1)
      common::print_error("run {} of {}: all timeouts on {}\n", ++number, count,
                          Timers::name == wheel_timers::name ? "the wheel" : "steady_timer");
    return run<Timers>(s, interrupted);
  };
  std::vector<results> runs{with_timers(s.timer, one_run)};
  if (count > 1 && !interrupted) {
    s.port = s.compare_with;
    s.timer = s.timer == wheel_timers::name ? steady_timers::name : wheel_timers::name;
    runs.push_back(with_timers(s.timer, one_run));
  }
  return report(s, runs);
}

}  // namespace
}  // namespace rpc

int main(int argc, char** argv)
{
  return common::run_program("rpc_client", [&] {
    rpc::settings s;
    if (!rpc::read_settings(argc, argv, s)) return EXIT_SUCCESS;
    return rpc::run(s) ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
