// How late deadlines on strands are beside messages: each of some strands has one operation after
// the other under a deadline that always comes, while pairs of sockets on strands of their own
// exchange messages as fast as they can, each read and write with a deadline that never comes. See
// LOG.md, "Deadlines on strands".
#include "../examples/common/command_line.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using socket_type = asio::local::stream_protocol::socket;
using strand_type = asio::strand<asio::io_context::executor_type>;

struct settings {
  std::size_t strands = 100, pairs = 20, threads = 2;
  std::uint64_t delay_ms = 40;
  double seconds = 2.5;
};

/// How late each deadline was, in milliseconds. Thread-safe.
class lateness {
public:
  void add(steady_clock::duration d)
  {
    const std::scoped_lock lock(mutex_);
    all_.push_back(duration<double, std::milli>(d).count());
  }

  void print()
  {
    std::sort(all_.begin(), all_.end());
    const auto at = [this](double share) {
      return all_[static_cast<std::size_t>(share * static_cast<double>(all_.size() - 1))];
    };
    fmt::print("{} deadlines were late by {:.1f} ms in the median, {:.1f} at p99, {:.1f} at most\n",
               all_.size(), at(0.5), at(0.99), at(1));
  }

private:
  std::mutex mutex_;
  std::vector<double> all_;
};

/// Waits for what never comes, under a deadline.
class waiter {
public:
  waiter(asio::io_context& context, milliseconds delay, lateness& late)
    : never_(asio::make_strand(context), steady_clock::time_point::max()),
      delay_(delay),
      late_(late)
  {}

  void start(steady_clock::time_point end)
  {
    const auto deadline = steady_clock::now() + delay_;
    never_.async_wait(asio_wheel::timeout_at(
      deadline, asio::bind_executor(never_.get_executor(), [=, this](boost::system::error_code) {
        const auto now = steady_clock::now();
        late_.add(now - deadline);
        if (now < end) start(end);
      })));
  }

private:
  asio::basic_waitable_timer<steady_clock, asio::wait_traits<steady_clock>, strand_type> never_;
  milliseconds delay_;
  lateness& late_;
};

/// One end of a pair, which sends back what it gets.
class talker {
public:
  explicit talker(asio::io_context& context) : socket(asio::make_strand(context)) {}

  void send()
  {
    asio::async_write(
      socket, asio::buffer(bytes_),
      asio_wheel::timeout_after(1h, [this](boost::system::error_code ec, std::size_t) {
        if (!ec) receive();
      }));
  }
  void receive()
  {
    socket.async_read_some(
      asio::buffer(bytes_),
      asio_wheel::timeout_after(1h, [this](boost::system::error_code ec, std::size_t) {
        if (!ec) send();
      }));
  }

  asio::basic_stream_socket<asio::local::stream_protocol, strand_type> socket;

private:
  std::array<char, 64> bytes_{};
};

void run(const settings& s)
{
  asio::io_context context;
  asio_wheel::use_wheel(context);
  lateness late;
  std::deque<waiter> waiters;
  std::deque<talker> talkers;
  for (std::size_t i = 0; i < s.pairs; ++i) {
    talker& one = talkers.emplace_back(context);
    talker& other = talkers.emplace_back(context);
    asio::local::connect_pair(one.socket, other.socket);
    asio::post(one.socket.get_executor(), [&one] { one.send(); });
    asio::post(other.socket.get_executor(), [&other] { other.receive(); });
  }
  const auto end = steady_clock::now() +
                   std::chrono::duration_cast<steady_clock::duration>(duration<double>(s.seconds));
  // Spread evenly over a delay.
  std::deque<asio_wheel::wheel_timer> starts;
  for (std::size_t i = 0; i < s.strands; ++i) {
    waiter& w = waiters.emplace_back(context, milliseconds(s.delay_ms), late);
    starts.emplace_back(context, milliseconds(s.delay_ms) * i / s.strands);
    starts.back().async_wait([&w, end](boost::system::error_code) { w.start(end); });
  }
  asio_wheel::wheel_timer last(context, end + 3 * milliseconds(s.delay_ms) + 1s);
  last.async_wait([&](boost::system::error_code) { context.stop(); });

  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < s.threads; ++i) threads.emplace_back([&] { context.run(); });
  context.run();
  for (auto& t : threads) t.join();
  late.print();
}

}  // namespace

int main(int argc, char** argv)
{
  return common::run_program("strands", [&] {
    settings s;
    common::po::options_description options("Options");
    options.add_options()  //
      ("strands", common::ranged(s.strands, "strands", std::size_t{1}, std::size_t{100'000}, "N"),
       "with a deadline at a time on each")  //
      ("pairs", common::ranged(s.pairs, "pairs", std::size_t{0}, std::size_t{10'000}, "N"),
       "of sockets that exchange messages")  //
      ("threads", common::ranged(s.threads, "threads", std::size_t{1}, std::size_t{64}, "N"),
       "that run the context")  //
      ("delay", common::ranged(s.delay_ms, "delay", std::uint64_t{1}, std::uint64_t{10'000}, "MS"),
       "of the deadlines")  //
      ("seconds", common::ranged(s.seconds, "seconds", 0.1, 3600.0, "S"), "how long");
    if (!common::parse_command_line(argc, argv, "How late deadlines on strands are.\n", options))
      return EXIT_SUCCESS;
    run(s);
    return EXIT_SUCCESS;
  });
}
