// Works in turn with other processes, one at a time: the one that holds a lock in a Redis server.
// The lock is a lease that is renewed for as long as its holder lives.
#include "../common/command_line.hpp"
#include "../redis/client.hpp"
#include "lease_lock.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace {

namespace asio = boost::asio;
namespace po = boost::program_options;
using boost::system::error_code;
using common::ranged;
using redis::failure;
using std::chrono::milliseconds;

struct settings {
  redis::options redis;
  std::string name = "asio_wheel:lock";
  int lease = 3000;  // ms
  int hold = 1000;   // ms
  int pause = 10;    // ms
  int retry = 50;    // ms
  int rounds = 3;
};

/// One that wants the lock, works while it has it, and wants it again.
class contender {
public:
  contender(asio::io_context& context, const settings& s)
    : settings_(s),
      client_(context.get_executor(), s.redis),
      lock_(context.get_executor(), client_, s.name, milliseconds(s.lease)),
      pause_(context)
  {}

  asio::awaitable<void> run()
  {
    co_await take_turns();
    client_.close();
  }

  /// Gives up waiting, or ends the work; a lock that is held is released.
  void stop()
  {
    is_stopping_ = true;
    pause_.cancel();
  }

  /// False if the lock was lost or not released, or a write came too late.
  [[nodiscard]] bool report() const
  {
    say("ends: {} writes; {} refused; lost the lock {} times", writes_, refused_, lost_);
    return refused_ == 0 && lost_ == 0 && unreleased_ == 0;
  }

private:
  asio::awaitable<void> take_turns()
  {
    say("wants the lock {} of the Redis server at {}", settings_.name, to_string(client_.server()));
    for (int round = 0; round < settings_.rounds && !is_stopping_; ++round) {
      const auto fence = co_await acquire();
      if (fence == 0) co_return;
      say("has the lock, fence {}, for {} ms unless it is renewed", fence, settings_.lease);
      co_await work_and_keep(fence);
      co_await release();
      // It is the others' turn.
      co_await sleep(2 * milliseconds(settings_.retry));
    }
  }

  asio::awaitable<void> sleep(milliseconds delay)
  {
    if (is_stopping_) co_return;
    pause_.expires_after(delay);
    co_await pause_.async_wait(asio::as_tuple(asio::use_awaitable));
  }

  /// Returns the fence, or 0 if stopped before.
  asio::awaitable<std::int64_t> acquire()
  {
    while (!is_stopping_) {
      const auto fence = co_await try_acquire();
      if (fence != 0) co_return fence;
      co_await sleep(milliseconds(settings_.retry));
    }
    co_return 0;
  }

  /// Returns the fence, or 0 if somebody else has the lock, or the server does not answer.
  asio::awaitable<std::int64_t> try_acquire()
  {
    try {
      const auto fence = co_await lock_.try_acquire();
      is_unanswered_ = false;
      co_return fence;
    } catch (const failure& e) {
      if (!e.will_pass()) throw;
      if (!std::exchange(is_unanswered_, true)) say("cannot ask for the lock: {}", e.what());
      co_return 0;
    }
  }

  /// Whichever ends first, the work or the lease, ends the other one.
  asio::awaitable<void> work_and_keep(std::int64_t fence)
  {
    using namespace asio::experimental::awaitable_operators;
    co_await (work(fence) || lock_.keep());
  }

  /// What the lock is for: a list in the server that only one at a time may write to.
  asio::awaitable<void> work(std::int64_t fence)
  {
    const auto end = redis::clock::now() + milliseconds(settings_.hold);
    while (lock_.is_held() && !is_stopping_ && redis::clock::now() < end) {
      if (!co_await write(fence)) co_return;
      co_await sleep(milliseconds(settings_.pause));
    }
  }

  asio::awaitable<bool> write(std::int64_t fence)
  {
    // The list looks at the fence itself: a write may be under way when the lock is lost.
    static constexpr std::string_view script =
      "if tonumber(redis.call('LINDEX', KEYS[1], -1) or 0) > tonumber(ARGV[1]) then return 0 end "
      "return redis.call('RPUSH', KEYS[1], ARGV[1])";
    try {
      const auto answer =
        co_await client_.command(redis::clock::now() + milliseconds(settings_.lease), "EVAL",
                                 script, 1, settings_.name + ":work", fence);
      const bool is_written = answer.integer() != 0;
      ++(is_written ? writes_ : refused_);
      co_return is_written;
    } catch (const failure& e) {
      say("cannot write: {}", e.what());
      co_return false;
    }
  }

  asio::awaitable<void> release()
  {
    if (lock_.is_held()) {
      try {
        if (co_await lock_.release()) {
          say("released it");
          co_return;
        }
      } catch (const failure& e) {
        say("cannot release it: {}; the lease will run out", e.what());
        ++unreleased_;
        co_return;
      }
    }
    ++lost_;
    say("lost it");
  }

  /// A line that names the time since the start and the owner.
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) const
  {
    const std::chrono::duration<double> since = redis::clock::now() - started_;
    fmt::print("{:9.3f} s  {} {}\n", since.count(), lock_.token(),
               fmt::format(text, std::forward<Args>(args)...));
  }

  const settings& settings_;
  redis::client client_;
  redis::lease_lock lock_;
  asio_wheel::wheel_timer pause_;
  bool is_stopping_ = false;
  bool is_unanswered_ = false;  // the latest question for the lock
  int writes_ = 0, refused_ = 0, lost_ = 0, unreleased_ = 0;
  const redis::clock::time_point started_ = redis::clock::now();
};

constexpr std::string_view intro =
  R"(Usage: lock_watchdog [option...]

Takes a lock in a Redis server, works for a while, releases it, and so on. Start
several to see them take turns; kill one with -9, and the next has the lock when
the lease has run out.
The exit status is 1 if the lock was lost, and 2 if an option is wrong.
)";

/// False if the program was only asked for help.
bool read_settings(int argc, char** argv, settings& s)
{
  po::options_description options("Options");
  auto add = options.add_options();
  add("host",
      po::value(&s.redis.server.host)->default_value(s.redis.server.host)->value_name("name"),
      "where Redis is");
  add("port", ranged(s.redis.server.port, "port", 1, 65'535, "n"), "its port");
  add("name", po::value(&s.name)->default_value(s.name)->value_name("key"), "of the lock");
  add("lease", ranged(s.lease, "lease", 30, 3'600'000, "ms"),
      "how long the lock outlives its holder; renewed every third of it");
  add("hold", ranged(s.hold, "hold", 0, 86'400'000, "ms"), "how long to work with the lock");
  add("pause", ranged(s.pause, "pause", 1, 60'000, "ms"), "between two writes of that work");
  add("retry", ranged(s.retry, "retry", 1, 60'000, "ms"), "how often to try for the lock");
  add("rounds", ranged(s.rounds, "rounds", 1, 1'000'000, "n"), "how often to work");
  return common::parse_command_line(argc, argv, intro, options);
}

/// False if something was lost.
bool run(const settings& s)
{
  asio::io_context context(1);
  contender c(context, s);
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code ec, int) {
    if (ec) return;
    signals.clear();  // a second Ctrl-C ends the program at once
    c.stop();
  });
  asio::co_spawn(context, c.run(), [&](std::exception_ptr thrown) {
    if (thrown) std::rethrow_exception(thrown);
    signals.cancel();
  });
  context.run();
  return c.report();
}

}  // namespace

int main(int argc, char** argv)
{
  return common::run_program("lock_watchdog", [&] {
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // others wait for what it says
    settings s;
    if (!read_settings(argc, argv, s)) return EXIT_SUCCESS;
    return run(s) ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
