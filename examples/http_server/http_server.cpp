// An HTTP server that survives its clients: every phase of every connection has a deadline on one
// timing wheel. /stats.html shows the wheel at work, server.hpp how it is done.
#include "../common/command_line.hpp"
#include "../common/listening.hpp"
#include "../common/process.hpp"
#include "server.hpp"
#include "settings.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace web {
namespace {

using common::ranged;
namespace po = common::po;

constexpr std::string_view intro =
  R"(Usage: http_server [option...]

Serves the files of a directory, /echo, which sends back the body of a POST, and
the server's own figures: /stats, /stats.json, /stats.html, and /metrics for
Prometheus. A client that is too slow is dropped.
Once it listens it prints a line that ends with ADDRESS:PORT. Ctrl-C closes
every connection and ends the program.
)";

/// False if the program was only asked for help.
bool read_settings(int argc, char** argv, settings& s)
{
  po::options_description options("Options");
  auto add = options.add_options();
  std::string root = s.root.string(), timer = "wheel";
  add("root", po::value(&root)->default_value(root)->value_name("dir"), "directory to serve");
  common::add_listen_options(options, s.address, s.port);
  const auto timeout = [&](phase p, const char* what) {
    const std::string name = fmt::format("{}-timeout", phase_names[static_cast<std::size_t>(p)]);
    add(name.c_str(), ranged(s.timeouts[p], name, 10, 3'600'000, "ms"), what);
  };
  timeout(phase::header, "time for a request's header, from the connection or its first byte");
  timeout(phase::body, "time for a request's body");
  timeout(phase::write, "time for the client to take the answer");
  timeout(phase::idle, "time between two requests of a connection when all places are free");
  add("full-idle-timeout", ranged(s.full_idle_timeout, "full-idle-timeout", 10, 3'600'000, "ms"),
      "the same when all are taken, and in between in proportion; without effect if it is not "
      "shorter than --idle-timeout");
  add("max-connections", ranged(s.max_connections, "max-connections", 1, 1'000'000, "n"),
      "with more than these, the one that has made no progress for longest gives way");
  add("max-header", ranged(s.max_header, "max-header", 128, 1 << 20, "bytes"),
      "longest header of a request");
  add("max-body", ranged(s.max_body, "max-body", 0, 1 << 30, "bytes"), "longest body of a request");
  add(
    "timer", po::value(&timer)->default_value(timer)->value_name("wheel|steady"),
    "what the deadlines of header, body and answer are on: the wheel, or beast::tcp_stream and its "
    "steady_timers");
  if (!common::parse_command_line(argc, argv, intro, options)) return false;

  if (timer != "wheel" && timer != "steady")
    throw po::error(fmt::format("--timer must be wheel or steady, not '{}'", timer));
  s.steady = timer == "steady";
  s.root = root;
  return true;
}

/// Each connection may have a file open.
void check_open_files(const settings& s)
{
  const auto files = 2 * static_cast<std::uint64_t>(s.max_connections) + 32;
  if (const auto limit = common::raise_open_file_limit(files); limit < files)
    throw std::runtime_error(
      fmt::format("{} connections need {} open files, but the limit is {} (ulimit -Hn)",
                  s.max_connections, files, limit));
}

/// Serves until SIGINT or SIGTERM.
template <class Stream>
void serve(const settings& s)
{
  asio::io_context context(1);
  asio_wheel::make_wheel(context);
  server<Stream> http_server(context, s);
  http_server.start();

  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code, int) {
    signals.clear();  // a second Ctrl-C ends the program at once
    http_server.stop();
  });

  common::announce("http_server", http_server.endpoint());
  context.run();

  const counters& c = http_server.counted();
  fmt::print(
    "http_server: stopped after {} connections and {} requests; timed out: {} header, {} body, "
    "{} write, {} idle; {} evicted\n",
    c.accepted, c.requests, c.timed_out[phase::header], c.timed_out[phase::body],
    c.timed_out[phase::write], c.timed_out[phase::idle], c.evicted);
}

}  // namespace
}  // namespace web

int main(int argc, char** argv)
{
  return common::run_program("http_server", [&] {
    web::settings s;
    if (!web::read_settings(argc, argv, s)) return EXIT_SUCCESS;
    web::check_open_files(s);
    s.steady ? web::serve<web::beast::tcp_stream>(s) : web::serve<asio_wheel::tcp_stream>(s);
    return EXIT_SUCCESS;
  });
}
