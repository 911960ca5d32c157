// A whole server on two threads: a strand, a stream with limits, an idle watchdog, a heartbeat and
// a queue of writes for each session, a deadline for each request, and an end within its grace.
#include "../common/command_line.hpp"
#include "../common/listening.hpp"
#include "../common/process.hpp"
#include "server.hpp"
#include "settings.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <asio_wheel/fmt.hpp>
#include <boost/asio.hpp>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

namespace lines {
namespace {

constexpr const char* intro =
  "Answers each line with the same line; 'sleep <ms>' with a delay. Says 'ping' to a client that "
  "is\n"
  "quiet, which is to answer 'pong'. Ctrl-C ends it when the sessions have ended, within the "
  "grace.\n";

bool read_settings(int argc, char** argv, settings& s)
{
  using common::ranged;
  constexpr int hour = 3'600'000;
  boost::program_options::options_description options("Options");
  auto add = options.add_options();
  common::add_listen_options(options, s.address, s.port);
  add("threads", ranged(s.threads, "threads", 1, 256, "n"), "threads that run the sessions");
  add("idle-timeout", ranged(s.idle_ms, "idle-timeout", 10, hour, "ms"),
      "end a session whose client wants nothing for that long");
  add("heartbeat", ranged(s.heartbeat_ms, "heartbeat", 10, hour, "ms"),
      "ping when the connection was quiet for that long; the fourth time in a row, give up");
  add("write-stall", ranged(s.stall_ms, "write-stall", 10, hour, "ms"),
      "end a session whose client takes no answers for that long");
  add("request-timeout", ranged(s.request_ms, "request-timeout", 1, hour, "ms"),
      "how long a request may take");
  add("grace", ranged(s.grace_ms, "grace", 0, hour, "ms"),
      "how long sessions may go on at the end");
  return common::parse_command_line(argc, argv, intro, options);
}

int serve(const settings& s)
{
  common::raise_open_file_limit(1 << 20);
  asio::io_context context(s.threads);
  auto& wheel = asio_wheel::make_wheel(context);
  server all(context, s);
  all.start();

  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code error, int) {
    if (error) return;
    signals.clear();  // a second Ctrl-C ends the program at once
    all.drain();
  });
  common::announce("line_server", all.endpoint());

  // run() returns by itself when the sessions have ended: nobody calls stop().
  std::atomic<bool> failed = false;
  const auto work = [&] {
    try {
      context.run();
    } catch (const std::exception& e) {
      common::print_error("line_server: {}\n", e.what());
      failed = true;
      context.stop();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < s.threads; ++i) threads.emplace_back(work);
    work();
  }
  const counters& c = all.counted();
  fmt::print(
    "line_server: {} sessions, {} requests answered, {} too slow; {} idle, {} lost, "
    "{} stalled, {} cut\n{}\n",
    c.sessions.load(), c.answered.load(), all.request().stats().expired, c.idle.load(),
    c.lost.load(), c.stalled.load(), c.cut.load(), wheel.stats());
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace
}  // namespace lines

int main(int argc, char** argv)
{
  return common::run_program("line_server", [&] {
    lines::settings s;
    return lines::read_settings(argc, argv, s) ? lines::serve(s) : EXIT_SUCCESS;
  });
}
