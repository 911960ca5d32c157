// Delivers messages to a server that may fail and recover: what could not be delivered is tried
// again, later and later, and by all senders at different times.
//
// A message that fails becomes a task in a keyed_scheduler, under its number; nobody waits for it,
// so that one that has to wait does not hold up the next. (This is how Dubbo's failback works.)
#include "../common/command_line.hpp"
#include "../redis/backoff.hpp"
#include "../redis/client.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace po = boost::program_options;
using boost::system::error_code;
using common::ranged;
using redis::failure;
using std::chrono::milliseconds;

struct settings {
  redis::options redis;
  std::string key = "asio_wheel:messages";
  int messages = 50;
  int interval = 20;  // ms
  int attempts = 10;
  int base = 50;       // ms
  int longest = 2000;  // ms
  int timeout = 500;   // ms
};

/// What became of the attempts with the same number.
struct tally {
  int begun = 0, delivered = 0;
  milliseconds waited{0}, longest_wait{0};
};

/// Sends messages, each until it is delivered or has failed too often.
class sender {
public:
  /// `on_end` is called once, when no message is left to be sent.
  sender(asio::io_context& context, const settings& s, std::function<void()> on_end)
    : settings_(s),
      context_(context),
      client_(context.get_executor(), s.redis),
      on_end_(std::move(on_end)),
      delay_(milliseconds(s.base), milliseconds(s.longest)),
      new_messages_(context),
      retries_(context),
      tallies_(static_cast<std::size_t>(s.attempts))
  {}

  void start()
  {
    fmt::print("run {}: {} messages to the set {} of the Redis server at {}\n", run_,
               settings_.messages, settings_.key, to_string(client_.server()));
    new_messages_.run_every(
      0, milliseconds(settings_.interval), [this] { attempt(++made_, 1); },
      static_cast<std::size_t>(settings_.messages));
  }

  /// Attempts that are under way are waited for, but there are no further ones.
  void stop()
  {
    is_stopping_ = true;
    new_messages_.cancel(0);
    for (int message = 1; message <= made_; ++message) {
      if (retries_.cancel(message)) ++dropped_;
    }
    end_if_over();
  }

  /// False if not all was delivered.
  bool report() const;

private:
  void attempt(int message, int number)
  {
    ++under_way_;
    asio::co_spawn(context_, deliver(message, number), [this](std::exception_ptr thrown) {
      if (thrown) std::rethrow_exception(thrown);
      --under_way_;
      end_if_over();
    });
  }

  asio::awaitable<void> deliver(int message, int number)
  {
    auto& t = tallies_[static_cast<std::size_t>(number - 1)];
    ++t.begun;
    try {
      // May be sent twice, if only the reply to the first is lost: a set does not mind.
      const auto added =
        co_await client_.command(redis::clock::now() + milliseconds(settings_.timeout), "SADD",
                                 settings_.key, fmt::format("{}:{}", run_, message));
      ++t.delivered;
      if (added.integer() == 0) ++known_already_;
    } catch (const failure& e) {
      failed(message, number, e.reason());
    }
  }

  void failed(int message, int number, std::string_view why)
  {
    fmt::print("message {}: attempt {} failed ({})", message, number, why);
    if (is_stopping_) {
      ++dropped_;
      fmt::print("\n");
    } else if (number == settings_.attempts) {
      ++given_up_;
      fmt::print(", given up\n");
    } else {
      const auto delay = delay_(number);
      fmt::print(", next in {} ms\n", delay.count());
      retries_.run_after(message, delay, [=, this] {
        auto& next = tallies_[static_cast<std::size_t>(number)];
        next.waited += delay;
        next.longest_wait = std::max(next.longest_wait, delay);
        attempt(message, number + 1);
      });
    }
  }

  void end_if_over()
  {
    const bool all_made = is_stopping_ || made_ == settings_.messages;
    if (!all_made || under_way_ != 0 || retries_.size() != 0) return;
    client_.close();
    std::exchange(on_end_, [] {})();
  }

  const settings& settings_;
  asio::io_context& context_;
  redis::client client_;
  std::function<void()> on_end_;
  redis::backoff delay_;
  asio_wheel::keyed_scheduler<int> new_messages_;
  asio_wheel::keyed_scheduler<int> retries_;  // by the number of the message
  std::vector<tally> tallies_;
  // Before the number of each message: those of another run are others.
  const std::string run_ = fmt::format("{:08x}", std::random_device()());
  int made_ = 0, under_way_ = 0;
  int given_up_ = 0, dropped_ = 0, known_already_ = 0;
  bool is_stopping_ = false;
};

bool sender::report() const
{
  fmt::print("\nattempt   begun   delivered   mean delay   longest delay\n");
  int delivered = 0;
  for (std::size_t i = 0; i < tallies_.size() && tallies_[i].begun > 0; ++i) {
    const auto& t = tallies_[i];
    delivered += t.delivered;
    fmt::print("{:7} {:7} {:11} {:9} ms {:12} ms\n", i + 1, t.begun, t.delivered,
               t.waited.count() / t.begun, t.longest_wait.count());
  }
  fmt::print("{} messages: {} delivered ({} of them twice), {} given up, {} dropped, {} lost\n",
             made_, delivered, known_already_, given_up_, dropped_,
             made_ - delivered - given_up_ - dropped_);
  return delivered == settings_.messages;
}

constexpr std::string_view intro =
  R"(Usage: retry_backoff [option...]

Adds numbers to a set in a Redis server. What fails is tried again after a
random delay, which may be twice as long with each attempt. Stop the server and
start it again to see it work.
The exit status is 1 if not all was delivered, and 2 if an option is wrong.
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
  add("key", po::value(&s.key)->default_value(s.key)->value_name("key"), "of the set");
  add("messages", ranged(s.messages, "messages", 1, 1'000'000, "n"), "how many to deliver");
  add("interval", ranged(s.interval, "interval", 1, 60'000, "ms"), "from one message to the next");
  add("attempts", ranged(s.attempts, "attempts", 1, 100, "n"),
      "how often a message is tried before it is given up");
  add("base", ranged(s.base, "base", 1, 60'000, "ms"), "longest delay before the second attempt");
  add("longest", ranged(s.longest, "longest", 1, 3'600'000, "ms"), "longest delay of all");
  add("timeout", ranged(s.timeout, "timeout", 1, 60'000, "ms"), "of an attempt");
  return common::parse_command_line(argc, argv, intro, options);
}

/// False if not all was delivered.
bool run(const settings& s)
{
  asio::io_context context(1);
  asio::signal_set signals(context, SIGINT, SIGTERM);
  sender all(context, s, [&] { signals.cancel(); });
  signals.async_wait([&](error_code ec, int) {
    if (ec) return;
    signals.clear();  // a second Ctrl-C ends the program at once
    all.stop();
  });
  all.start();
  context.run();
  return all.report();
}

}  // namespace

int main(int argc, char** argv)
{
  return common::run_program("retry_backoff", [&] {
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // to be watched, through a pipe as well
    settings s;
    s.redis.longest = milliseconds(100);  // an attempt without a connection is one that failed
    if (!read_settings(argc, argv, s)) return EXIT_SUCCESS;
    return run(s) ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
