// A TCP proxy that gives up on an upstream that does not answer, and on connections that nobody
// uses. --timer chooses the kind of timers, to show what they cost.
#include "../common/command_line.hpp"
#include "../common/listening.hpp"
#include "../common/print_error.hpp"
#include "../common/process.hpp"
#include "../common/resolve.hpp"
#include "session.hpp"
#include "timers.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace proxy {
namespace {

using namespace std::chrono_literals;
namespace po = boost::program_options;
using common::ranged;

struct settings {
  std::string address = "127.0.0.1";
  int port = 7500;
  std::string upstream_host = "127.0.0.1";
  int upstream_port = 6379;
  int connect_timeout = 2000;  // ms
  int idle_timeout = 60'000;   // ms
  std::string timer = "wheel";
  bool rearm = false;
};

tcp::acceptor listen(asio::io_context& context, const settings& s)
{
  const tcp::endpoint endpoint(asio::ip::make_address(s.address),
                               static_cast<std::uint16_t>(s.port));
  try {
    return tcp::acceptor(context, endpoint);
  } catch (const boost::system::system_error& e) {
    throw std::runtime_error(
      fmt::format("cannot listen on {}:{}: {}", s.address, s.port, e.code().message()));
  }
}

template <class Timers>
asio::awaitable<void> accept(tcp::acceptor& acceptor, surroundings<Timers>& shared)
{
  while (true) {
    auto [ec, client] = co_await acceptor.async_accept(no_throw);
    if (!acceptor.is_open()) co_return;
    if (!ec) {
      std::make_shared<session<Timers>>(std::move(client), shared)->start();
    } else if (ec != asio::error::connection_aborted) {
      // Mostly there are too many open files. New clients stay in the backlog meanwhile.
      common::print_error("tcp_proxy: cannot accept: {}; trying again\n", ec.message());
      typename Timers::timer pause(acceptor.get_executor(), 200ms);
      co_await pause.async_wait(no_throw);
    }
  }
}

void report(const figures& f)
{
  fmt::print(
    "tcp_proxy: stopped after {} connections: {} bytes up, {} down; {} not connected, {} not in "
    "time; {} idle, {} stuck; {:.2f} s of CPU\n",
    f.connections, f.up, f.down, f.refused, f.timed_out, f.idle, f.stuck,
    static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
}

/// Serves until SIGINT or SIGTERM.
template <class Timers>
void run(const settings& s)
{
  common::raise_open_file_limit(1 << 20);
  asio::io_context context(1);
  surroundings<Timers> shared{common::resolve(context, s.upstream_host, s.upstream_port),
                              std::chrono::milliseconds(s.connect_timeout),
                              std::chrono::milliseconds(s.idle_timeout),
                              {},
                              {}};
  tcp::acceptor acceptor = listen(context, s);
  asio::co_spawn(context, accept(acceptor, shared), rethrow);

  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code, int) {
    signals.clear();  // a second Ctrl-C ends the program at once
    acceptor.close();
    for (auto* each : shared.sessions) each->close();
  });

  common::announce("tcp_proxy", acceptor.local_endpoint());
  context.run();
  report(shared.counted);
}

constexpr std::string_view intro =
  R"(Usage: tcp_proxy [option...]

Carries each connection to the upstream, and closes it when the upstream does
not accept it in time, when both sides are silent for the idle timeout, or when
one side takes nothing for that long.
Once it listens it prints a line that ends with ADDRESS:PORT. Ctrl-C closes
every connection, ends the program and prints figures.
)";

/// Reads the options. False if --help was asked for.
bool read_settings(int argc, char** argv, settings& s)
{
  po::options_description options("Options");
  auto add = options.add_options();
  common::add_listen_options(options, s.address, s.port);
  add("upstream-host",
      po::value(&s.upstream_host)->default_value(s.upstream_host)->value_name("name"),
      "where connections are carried to");
  add("upstream-port", ranged(s.upstream_port, "upstream-port", 1, 65'535, "n"), "its port");
  add("connect-timeout", ranged(s.connect_timeout, "connect-timeout", 1, 3'600'000, "ms"),
      "how long the upstream may take to accept a connection");
  add("idle-timeout", ranged(s.idle_timeout, "idle-timeout", 1, 86'400'000, "ms"),
      "how long a connection may be silent, or a side take none of its waiting bytes");
  add("timer", po::value(&s.timer)->default_value(s.timer)->value_name("name"),
      "what keeps the time: wheel, steady (asio::steady_timer), or none: no timeouts");
  add("rearm", po::bool_switch(&s.rearm),
      "set a timer anew whenever bytes move, instead of touching a watchdog");
  if (!common::parse_command_line(argc, argv, intro, options)) return false;
  if (s.timer != "wheel" && s.timer != "steady" && s.timer != "none")
    throw po::error(fmt::format("--timer must be wheel, steady or none, not '{}'", s.timer));
  if (s.rearm && s.timer == "none") throw po::error("--rearm needs a timer, but --timer is none");
  return true;
}

/// Runs the proxy on the chosen timers.
void run_as_set(const settings& s)
{
  if (s.timer == "none") return run<no_timers>(s);
  if (s.timer == "steady") return s.rearm ? run<rearmed<steady_timers>>(s) : run<steady_timers>(s);
  return s.rearm ? run<rearmed<wheel_timers>>(s) : run<wheel_timers>(s);
}

}  // namespace
}  // namespace proxy

int main(int argc, char** argv)
{
  return common::run_program("tcp_proxy", [&] {
    proxy::settings s;
    if (!proxy::read_settings(argc, argv, s)) return EXIT_SUCCESS;
    proxy::run_as_set(s);
    return EXIT_SUCCESS;
  });
}
