// Jobs that are done later, by any number of workers on any number of machines, and that outlive
// them all: they are in a Redis server.
#include "../common/command_line.hpp"
#include "../redis/client.hpp"
#include "log.hpp"
#include "queue.hpp"
#include "times.hpp"
#include "worker.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace po = boost::program_options;
using boost::system::error_code;
using common::ranged;
using durable_jobs::clock;
using durable_jobs::duration_option;
using durable_jobs::job;
using durable_jobs::log;
using durable_jobs::new_job;
using durable_jobs::relative;
using durable_jobs::worker_options;
using std::chrono::milliseconds;

constexpr std::string_view intro =
  R"(Usage: durable_jobs add [--in 30s | --at TIME] [--every 5m] [--key K]
                        [--unique] PAYLOAD
       durable_jobs add --lines  "<delay> <key> <payload>" on each line of the
                                 input
       durable_jobs work [--concurrency N] [option...]
       durable_jobs list | dead
       durable_jobs cancel K
       durable_jobs retry K | --all

Jobs in a Redis server that are due at a time. Start workers on as many machines
as you like; stop or kill them as you like. A job runs at least once, and its
result counts once. `durable_jobs work` does nothing but wait; put what your
jobs are into do_job() in durable_jobs.cpp.
The exit status is 1 if there is no such job, or one that is to be unique exists
already, or the server cannot be used; and 2 if an option is wrong. The password
is taken from REDISCLI_AUTH.

durable_jobs COMMAND --help lists the options of a command.
)";

/// Which queue of which server is meant, and how long to wait for it.
struct target_options {
  redis::options redis;
  std::string queue = "default";
  std::string timeout = "5s";

  void add_to(po::options_description& d)
  {
    if (const char* const password = std::getenv("REDISCLI_AUTH")) redis.password = password;
    auto add = d.add_options();
    add("host", po::value(&redis.server.host)->default_value(redis.server.host)->value_name("name"),
        "where Redis is");
    add("port", ranged(redis.server.port, "port", 1, 65'535, "n"), "its port");
    const auto check_queue = [](const std::string& name) {
      if (name.empty() || name.find_first_of("{}") != std::string::npos)
        throw po::error(fmt::format("--queue must be a name without braces, not '{}'", name));
    };
    add("queue", po::value(&queue)->default_value(queue)->value_name("name")->notifier(check_queue),
        "of the jobs");
    add("timeout", po::value(&timeout)->default_value(timeout)->value_name("time"), "of a command");
  }
};

bool parse(int argc, char** argv, std::string_view usage, target_options& target,
           po::options_description& options, const char* unnamed = nullptr)
{
  target.add_to(options);
  po::positional_options_description positions;
  if (unnamed) positions.add(unnamed, 1);
  return common::parse_command_line(argc, argv, usage, options, positions);
}

/// Runs what has to be done with a queue, again if the server cannot do it yet, until the time is
/// over. For what may be done twice.
class session {
public:
  explicit session(const target_options& target)
    : timeout_(duration_option("timeout", target.timeout)),
      client_(context_.get_executor(), target.redis),
      queue_(client_, target.queue)
  {}

  template <class F>
  asio::awaitable<void> insist(F f)
  {
    const auto deadline = clock::now() + timeout_;
    asio_wheel::wheel_timer pause(context_);
    std::optional<redis::failure> reason;
    while (true) {
      try {
        co_await f(queue_, deadline);
        co_return;
      } catch (const redis::failure& e) {
        // That the time is over says less than why it took so long.
        if (!reason || clock::now() < deadline) reason = e;
        if (!e.will_pass() || clock::now() >= deadline) throw redis::failure(*reason);
      }
      pause.expires_after(delay_(3));
      co_await pause.async_wait(asio::use_awaitable);
    }
  }

  /// Runs some of them side by side.
  void run(std::vector<asio::awaitable<void>> all)
  {
    auto left = all.size();
    for (auto& each : all) {
      asio::co_spawn(context_, std::move(each), [&](std::exception_ptr thrown) {
        if (thrown) std::rethrow_exception(thrown);
        if (--left == 0) client_.close();
      });
    }
    context_.run();
  }

  template <class F>
  void run(F f)
  {
    std::vector<asio::awaitable<void>> one;
    one.push_back(insist(std::move(f)));
    run(std::move(one));
  }

private:
  asio::io_context context_{1};
  const milliseconds timeout_;
  redis::client client_;
  durable_jobs::queue queue_;
  redis::backoff delay_{milliseconds(50), milliseconds(500)};
};

/// "<delay> <key> <payload>".
new_job job_in(const std::string& line)
{
  const auto first = line.find(' '), second = line.find(' ', first + 1);
  const auto delay = durable_jobs::parse_duration(line.substr(0, first));
  if (first == std::string::npos || !delay)
    throw std::runtime_error(fmt::format("not '<delay> <key> <payload>': '{}'", line));
  if (!durable_jobs::is_in_range(*delay))
    throw std::runtime_error(fmt::format("the delay is not within 0s and 10000d: '{}'", line));
  new_job j;
  j.delay = *delay;
  j.key = line.substr(first + 1, second - first - 1);
  if (second != std::string::npos) j.payload = line.substr(second + 1);
  return j;
}

int add_lines(session& s, bool is_unique)
{
  std::uint64_t added = 0, known = 0;
  const auto lane = [&]() -> asio::awaitable<void> {
    std::string line;
    while (std::getline(std::cin, line)) {
      new_job j = job_in(line);
      j.is_unique = is_unique;
      co_await s.insist([&](auto& queue, auto deadline) -> asio::awaitable<void> {
        ++(co_await queue.add(deadline, j) ? added : known);
      });
    }
  };
  std::vector<asio::awaitable<void>> lanes;
  for (int i = 0; i < 200; ++i) lanes.push_back(lane());
  s.run(std::move(lanes));
  fmt::print("{} jobs added, {} were there\n", added, known);
  return EXIT_SUCCESS;
}

int add(int argc, char** argv)
{
  target_options target;
  new_job j;
  std::string delay = "0s", at, every = "0s";
  po::options_description options("Options");
  auto more = options.add_options();
  more("in", po::value(&delay)->default_value(delay)->value_name("time"), "when it is due");
  more("at", po::value(&at)->value_name("date"), "or when, as 2030-01-31T23:59:00Z");
  more("every", po::value(&every)->default_value(every)->value_name("time"),
       "repeats it so often; 0s: never");
  more("key", po::value(&j.key)->value_name("K"), "of the job; a new one if left out");
  more("unique", po::bool_switch(&j.is_unique),
       "leaves alone what has the same key, else it is replaced");
  bool lines = false;
  more("lines", po::bool_switch(&lines), "adds what is on the standard input");
  bool has_payload = false;
  more("payload",
       po::value(&j.payload)->value_name("text")->notifier([&](auto&) { has_payload = true; }),
       "or the first argument");
  if (!parse(argc, argv, intro, target, options, "payload")) return EXIT_SUCCESS;
  j.delay = duration_option("in", delay);
  j.period = duration_option("every", every);
  if (!at.empty() && delay != "0s") throw po::error("either --in or --at");
  if (lines && (delay != "0s" || !at.empty() || every != "0s" || !j.key.empty() || has_payload))
    throw po::error("--lines takes delay, key and payload from the input, and repeats nothing");
  if (!lines && !has_payload) throw po::error("PAYLOAD is missing, what the job is to do");
  if (!at.empty()) j.at = durable_jobs::date_option("at", at);
  session s(target);
  if (lines) return add_lines(s, j.is_unique);
  if (j.key.empty()) {
    std::random_device random;
    j.key = fmt::format("{:08x}{:08x}", random(), random());
  }
  bool is_added = false;
  s.run([&](auto& queue, auto deadline) -> asio::awaitable<void> {
    is_added = co_await queue.add(deadline, j);
  });
  fmt::print("{}{}\n", j.key, is_added ? "" : " exists already");
  return is_added ? EXIT_SUCCESS : EXIT_FAILURE;
}

/// Shows the jobs in these states.
int show(int argc, char** argv, bool dead_only)
{
  target_options target;
  int most = 20;
  po::options_description options("Options");
  options.add_options()("most", ranged(most, "most", 0, 10'000, "n"), "how many of each state");
  if (!parse(argc, argv, intro, target, options)) return EXIT_SUCCESS;
  durable_jobs::listing l;
  session(target).run([&](auto& queue, auto deadline) -> asio::awaitable<void> {
    l = co_await queue.list(deadline, most);
  });
  fmt::print("{} due, {} with a worker, {} dead\n", l.due, l.leased, l.dead);
  for (const auto& j : l.jobs) {
    if (dead_only && j.state != "dead") continue;
    const auto when = relative(j.at - l.now);
    if (j.state == "due")
      fmt::print("{}: due {}: {}\n", j.key, when, j.payload);
    else if (j.state == "leased")
      fmt::print("{}: attempt {}, fence {}, lease ends {}: {}\n", j.key, j.attempts, j.fence, when,
                 j.payload);
    else
      fmt::print("{}: given up {} after {} attempts ({}): {}\n", j.key, when, j.attempts, j.error,
                 j.payload);
  }
  return EXIT_SUCCESS;
}

int cancel(int argc, char** argv)
{
  target_options target;
  std::string key;
  po::options_description options("Options");
  options.add_options()("key", po::value(&key)->required()->value_name("K"),
                        "or the first argument");
  if (!parse(argc, argv, intro, target, options, "key")) return EXIT_SUCCESS;
  bool is_cancelled = false;
  // A second try might not find what the first has cancelled.
  session(target).run([&](auto& queue, auto deadline) -> asio::awaitable<void> {
    is_cancelled = co_await queue.cancel(deadline, key);
  });
  fmt::print("{} {}\n", key, is_cancelled ? "is cancelled" : "is no job");
  return is_cancelled ? EXIT_SUCCESS : EXIT_FAILURE;
}

int retry(int argc, char** argv)
{
  target_options target;
  std::string key;
  bool all = false;
  po::options_description options("Options");
  auto more = options.add_options();
  more("key", po::value(&key)->value_name("K"), "or the first argument");
  more("all", po::bool_switch(&all), "of the dead jobs, up to 1000");
  if (!parse(argc, argv, intro, target, options, "key")) return EXIT_SUCCESS;
  if (key.empty() != all) throw po::error("either a key or --all");
  std::int64_t count = 0;
  session(target).run([&](auto& queue, auto deadline) -> asio::awaitable<void> {
    count = co_await queue.retry(deadline, key);
  });
  fmt::print("{} dead jobs get another try\n", count);
  return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/// What a job is: here one that takes some time, or fails if its payload says so. A result of yours
/// that goes elsewhere than into this Redis should carry the fence, and whoever takes it refuse a
/// lower one than it has seen.
asio::awaitable<std::string> do_job(const job& j, milliseconds takes)
{
  if (j.payload.starts_with("fail")) throw std::runtime_error("it was told to fail");
  if (takes.count() > 0) {
    asio_wheel::wheel_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(takes);
    co_await timer.async_wait(asio::use_awaitable);
  }
  co_return j.payload;
}

/// False if the program was only asked for help.
bool read_options(int argc, char** argv, worker_options& o, milliseconds& takes)
{
  target_options target;
  std::string lease = "10s", base = "1s", longest = "10m", grace = "5s", poll = "0s", job = "0s";
  target.timeout = "2s";
  po::options_description options("Options");
  auto more = options.add_options();
  const auto time = [](std::string& s) {
    return po::value(&s)->default_value(s)->value_name("time");
  };
  more("concurrency", ranged<std::size_t>(o.concurrency, "concurrency", 1, 1000, "n"),
       "how many jobs at a time");
  more("lease", time(lease), "how long a job outlives its worker; renewed every third of it");
  more("attempts", ranged(o.attempts, "attempts", 1, 1000, "n"), "before a job is given up");
  more("base", time(base), "longest delay before the second attempt; doubles each time");
  more("longest", time(longest), "longest delay of all");
  more("grace", time(grace), "for the jobs that run when the worker is stopped");
  more("results", po::bool_switch(&o.keep_results), "keeps results, in a list in Redis");
  more("takes", time(job), "how long a job takes, as long as it is no real one");
  more("poll", time(poll), "looks so often instead of waiting, to compare; 0s: waits");
  more("quiet", po::bool_switch(&o.is_quiet), "tells only of jobs that fail or are lost");
  if (!parse(argc, argv, intro, target, options)) return false;
  o.redis = target.redis;
  o.redis.longest = milliseconds(250);  // jobs wait
  o.queue = target.queue;
  o.timeout = duration_option("timeout", target.timeout);
  o.lease = duration_option("lease", lease);
  if (o.lease < milliseconds(100)) throw po::error("--lease must be at least 100ms, not " + lease);
  o.grace = duration_option("grace", grace);
  o.poll = duration_option("poll", poll);
  o.retry = redis::backoff(duration_option("base", base), duration_option("longest", longest));
  takes = duration_option("takes", job);
  return true;
}

int work(int argc, char** argv)
{
  worker_options o;
  milliseconds takes{0};
  if (!read_options(argc, argv, o, takes)) return EXIT_SUCCESS;
  asio::io_context context(1);
  durable_jobs::worker w(context.get_executor(), o,
                         [takes](const job& j) { return do_job(j, takes); });
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code ec, int) {
    if (ec) return;
    signals.clear();  // a second Ctrl-C ends the program at once
    log("stops");
    w.stop();
  });
  log("works on the queue {} of the Redis server at {}, up to {} jobs at a time", o.queue,
      to_string(o.redis.server), o.concurrency);
  asio::co_spawn(context, w.run(), [&](std::exception_ptr thrown) {
    if (thrown) std::rethrow_exception(thrown);
    signals.cancel();
  });
  context.run();
  const auto s = w.stats();
  log(
    "{} jobs begun: {} done, {} failed, {} lost, {} given back; {} commands; lateness "
    "p50 <= {:.1f} ms, p99 <= {:.1f} ms",
    s.begun, s.done, s.failed, s.lost, s.given_back, s.commands,
    static_cast<double>(s.lateness.percentile(50).count()) / 1e6,
    static_cast<double>(s.lateness.percentile(99).count()) / 1e6);
  return EXIT_SUCCESS;
}

int run(int argc, char** argv)
{
  const std::string_view command = argc > 1 ? argv[1] : "--help";
  // Its options are those behind it.
  --argc;
  ++argv;
  if (command == "add") return add(argc, argv);
  if (command == "work") return work(argc, argv);
  if (command == "list") return show(argc, argv, false);
  if (command == "dead") return show(argc, argv, true);
  if (command == "cancel") return cancel(argc, argv);
  if (command == "retry") return retry(argc, argv);
  if (command != "--help" && command != "-h")
    throw po::error(fmt::format("there is no command '{}'", command));
  fmt::print("{}", intro);
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv)
{
  return common::run_program("durable_jobs", [&] {
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // to be watched, through a pipe as well
    return run(argc, argv);
  });
}
