// A load client for rpc_server: many connections, thousands of calls a second, and for every call a
// deadline on the timing wheel. Nearly all of them are cancelled; the figures say what became of
// each.
#include "caller.hpp"
#include "command_line.hpp"
#include "connection.hpp"
#include "protocol.hpp"
#include "report.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rpc {
namespace {

using namespace std::chrono_literals;

struct settings {
  std::string host = "127.0.0.1";
  int port = 7400;
  int connections = 1000;
  int silent = 0;
  double rate = 5000;         // calls per second, of all connections together
  double stall_share = 0.01;  // of the calls
  double duration = 10;       // s
  int deadline = 250;         // ms
};

/// One line that is rewritten on a terminal, and now and then a new one elsewhere.
class progress {
public:
  void show(const tally& t, clock::time_point start)
  {
    const auto now = clock::now();
    if (now < next_) return;
    next_ = now + (terminal_ ? 200ms : 2000ms);
    fmt::print(stderr, "{}{:5.1f} s  {} calls, {} answered, {} timed out, {} in flight{}",
               terminal_ ? "\r" : "", to_ms(now - start) / 1e3, t.calls, t.answered, t.timed_out,
               t.in_flight(), terminal_ ? "\x1b[K" : "\n");
  }
  void clear()
  {
    if (terminal_) fmt::print(stderr, "\r\x1b[K");
  }

private:
  const bool terminal_ = stderr_is_terminal();
  clock::time_point next_{};
};

/// The whole run, from the first connection to the last.
class load {
public:
  load(asio::io_context& context, const settings& s)
    : settings_(s),
      context_(context),
      wheel_(asio_wheel::use_wheel(context))
  {}

  asio::awaitable<void> run()
  {
    co_await resolve();
    control_ = co_await connect(caller::manner::uncounted);
    const auto before = co_await control_->ask_figures(5s);
    if (!before) throw std::runtime_error("this is no rpc_server: it does not tell its figures");

    co_await open_connections(std::chrono::milliseconds(before->idle_timeout_ms));
    co_await make_calls();
    co_await finish_calls();
    results_.listening = clock::now() - connected_;
    for (const auto& c : callers_) c->close();

    if (const auto after = co_await control_->ask_figures(5s))
      results_.server = difference(*before, *after);
    control_->close();
    progress_.clear();
  }

  /// Makes no more calls; run() still waits for those in flight.
  void stop()
  {
    stopping_ = true;
    for (const auto& c : callers_) c->stop_calling();
  }

  /// After run().
  results take_results()
  {
    results_.client = std::move(tally_);
    results_.wheel = wheel_.stats();
    results_.cpu_us =
      static_cast<std::uint64_t>(static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC);
    return std::move(results_);
  }

private:
  /// What a stalled call has to wait for: well past its deadline.
  std::chrono::milliseconds stall() const
  {
    return std::chrono::milliseconds(settings_.deadline + settings_.deadline / 2 + 20);
  }

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

  /// The server has no reason to close it before `idle_timeout`.
  asio::awaitable<std::shared_ptr<caller>> connect(caller::manner m,
                                                   clock::duration idle_timeout = {})
  {
    const auto earliest_drop = clock::now() + idle_timeout;
    const auto socket = std::make_shared<tcp::socket>(context_);
    timer deadline(context_);
    deadline.expires_after(5s);
    deadline.async_wait([socket](error_code ec) {
      if (!ec) socket->close();
    });
    error_code ec;
    const tcp::endpoint peer = co_await asio::async_connect(
      *socket, endpoints_, asio::redirect_error(asio::use_awaitable, ec));
    // A wait that cannot be cancelled has expired.
    if (deadline.cancel() == 0) ec = asio::error::timed_out;
    if (ec)
      throw std::runtime_error(fmt::format("cannot connect to {}:{}: {} (connection {})",
                                           settings_.host, settings_.port, ec.message(),
                                           callers_.size() + 1));
    endpoints_.assign(1, peer);
    auto c = std::make_shared<caller>(std::move(*socket), tally_, m, earliest_drop);
    c->start();
    co_return c;
  }

  /// One after the other: a thousand at once would overflow the server's backlog.
  asio::awaitable<void> open_connections(clock::duration idle_timeout)
  {
    for (int i = 0; i < settings_.connections && !stopping_; ++i) {
      const bool silent = i < settings_.silent;
      const auto manner = silent ? caller::manner::silent : caller::manner::talkative;
      callers_.push_back(co_await connect(manner, idle_timeout));
      ++tally_.connections;
      if (silent) ++tally_.silent;
    }
    connected_ = clock::now();
  }

  asio::awaitable<void> make_calls()
  {
    const int callers = settings_.connections - settings_.silent;
    const auto start = clock::now();
    const auto end = start + std::chrono::duration_cast<clock::duration>(
                               std::chrono::duration<double>(settings_.duration));
    if (callers > 0 && settings_.rate > 0) {
      plan_.emplace(settings_.rate / callers, settings_.stall_share,
                    std::chrono::milliseconds(settings_.deadline), stall());
      for (std::size_t i = tally_.silent; i < callers_.size(); ++i)
        asio::co_spawn(
          context_, [c = callers_[i], this, end] { return c->make_calls(*plan_, end); }, rethrow);
    }
    co_await wait(
      end, [this] { return stopping_ || tally_.idle_drops + tally_.lost == tally_.connections; });
    results_.calling = clock::now() - start;
  }

  /// Every call ends by its deadline; a late answer takes a little longer.
  asio::awaitable<void> finish_calls()
  {
    stop();
    co_await wait(clock::now() + stall() + 2s, [this] {
      return tally_.in_flight() == 0 && (tally_.every_answer_is_in() || tally_.failed > 0);
    });
  }

  /// Until `end`, or until `over()` is true.
  template <class Predicate>
  asio::awaitable<void> wait(clock::time_point end, Predicate over)
  {
    while (!over() && clock::now() < end) {
      progress_.show(tally_, connected_);
      co_await wheel_.async_wait(std::min(end, clock::now() + 20ms));
    }
  }

  static server_figures difference(const server_figures& before, server_figures after)
  {
    for (const auto member : server_figures::all) after.*member -= before.*member;
    after.idle_timeout_ms = before.idle_timeout_ms;
    return after;
  }

  const settings& settings_;
  asio::io_context& context_;
  asio_wheel::wheel_timer_service& wheel_;
  std::vector<tcp::endpoint> endpoints_;          // after the first connection, the one that worked
  std::shared_ptr<caller> control_;               // makes no calls and is not counted
  std::vector<std::shared_ptr<caller>> callers_;  // the silent ones first
  std::optional<call_plan> plan_;
  clock::time_point connected_{};
  bool stopping_ = false;
  tally tally_;
  progress progress_;
  results results_;
};

constexpr std::string_view intro =
  R"(Usage: rpc_client [option...]

Puts load on a running rpc_server, and prints what became of every call and every connection.
Ctrl-C ends the load early; a second one ends the program at once.
The exit status is 1 if the figures do not add up or the server misbehaved, and 2 if an option is
wrong.
)";

/// False if the program was only asked for help.
bool read_settings(int argc, char** argv, settings& s)
{
  po::options_description options("Options", 100);
  auto add = options.add_options();
  add("host", po::value(&s.host)->default_value(s.host)->value_name("name"), "where the server is");
  add("port", ranged(s.port, "port", 1, 65'535, "n"), "its port");
  add("connections", ranged(s.connections, "connections", 1, 100'000, "n"), "connections to open");
  std::optional<int> silent;
  add("silent", po::value<int>()->value_name("n")->notifier([&](int n) { silent = n; }),
      "how many of them never say a word, so that the server drops them as idle; 2 % if not set");
  add("rate", ranged(s.rate, "rate", 0.0, 1e6, "n"),
      "calls per second, of all connections together");
  add("stall-share", ranged(s.stall_share, "stall-share", 0.0, 1.0, "0..1"),
      "share of the calls that the server is asked to stall past their deadline");
  add("duration", ranged(s.duration, "duration", 0.1, 86'400.0, "s"), "how long to make calls");
  add("deadline", ranged(s.deadline, "deadline", 1, 30'000, "ms"), "of every call");
  if (!parse_command_line(argc, argv, intro, options)) return false;
  s.silent = silent.value_or(s.connections / 50);
  if (s.silent < 0 || s.silent > s.connections)
    throw po::error(fmt::format("--silent must be within 0 and the {} connections, not {}",
                                s.connections, s.silent));
  return true;
}

/// False if something was wrong, which is then said.
bool report(const settings& s, results r)
{
  const audit a(r);
  const bool shared = r.server && !r.server_was_ours();
  fmt::print(
    "{} connections, {} of them silent; {} calls per second for {} s, {:g} % stalled past "
    "their deadline of {} ms\n\n",
    s.connections, s.silent, s.rate, s.duration, 100 * s.stall_share, s.deadline);
  print_table(std::move(r));
  if (shared) fmt::print("The server's figures hold more than this run, and were not compared.\n");
  if (a.adds_up()) fmt::print("The figures add up.\n");
  std::fflush(stdout);
  for (const auto& sentence : a.disturbances()) fmt::print(stderr, "rpc_client: {}.\n", sentence);
  for (const auto& sentence : a.errors())
    fmt::print(stderr, "rpc_client: the figures do not add up: {}.\n", sentence);
  return a.adds_up() && a.disturbances().empty();
}

/// False if the figures do not add up, or the run was disturbed.
bool run(const settings& s)
{
  const auto files = static_cast<std::uint64_t>(s.connections) + 16;
  if (const auto limit = raise_open_file_limit(files); limit < files)
    throw std::runtime_error(
      fmt::format("{} connections need {} open files, but the limit is {} (ulimit -Hn)",
                  s.connections, files, limit));
  asio::io_context context(1);
  asio_wheel::make_wheel(context);
  load rpc_load(context, s);

  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code ec, int) {
    if (ec) return;
    signals.clear();  // a second Ctrl-C ends the program at once
    rpc_load.stop();
  });
  asio::co_spawn(context, rpc_load.run(), [&](std::exception_ptr thrown) {
    rethrow(thrown);
    signals.cancel();
  });
  context.run();
  return report(s, rpc_load.take_results());
}

}  // namespace
}  // namespace rpc

int main(int argc, char** argv)
{
  try {
    rpc::settings s;
    if (!rpc::read_settings(argc, argv, s)) return EXIT_SUCCESS;
    return rpc::run(s) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const rpc::po::error& e) {
    fmt::print(stderr, "rpc_client: {}\nrpc_client --help lists the options.\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    fmt::print(stderr, "rpc_client: {}\n", e.what());
    return EXIT_FAILURE;
  }
}
