// Three things that Asio's documentation does with a timer, for any type of timer. Each counts its
// results, and how late the timer was.
#pragma once

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace swap_timers {

namespace asio = boost::asio;
using boost::system::error_code;
using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct observations {
  std::map<std::string, std::uint64_t> counts;  // must not depend on the type of timer
  std::vector<clock::duration> lateness;        // of each timer that expired
};

/// The coroutines of an idiom. The last one to end stops listening to signals, so that run()
/// returns.
class crew {
public:
  crew(asio::io_context& context, asio::signal_set& signals) : context_(context), signals_(signals)
  {}

  void start(asio::awaitable<void> coroutine)
  {
    ++running_;
    asio::co_spawn(context_, std::move(coroutine), [this](std::exception_ptr thrown) {
      if (thrown) std::rethrow_exception(thrown);
      if (--running_ == 0) signals_.cancel();
    });
  }
  asio::io_context& context() { return context_; }

private:
  asio::io_context& context_;
  asio::signal_set& signals_;
  int running_ = 0;
};

/// Idiom 1: `||` gives an operation a deadline.
template <class Timer>
class deadlines {
public:
  static constexpr auto name = "connections with a deadline for every read";
  static constexpr auto deadline = 500ms;
  static constexpr int silent_every = 100;  // requests that get no answer

  deadlines(crew& c, int connections, double seconds, observations& seen)
    : requests_(static_cast<int>(200 * seconds)),
      seen_(seen)
  {
    for (int i = 0; i < connections; ++i) {
      const auto ends = std::make_shared<pair>(pair{socket(c.context()), socket(c.context())});
      asio::local::connect_pair(ends->first, ends->second);
      c.start(ask(ends, i));
      c.start(answer(ends));
    }
  }

private:
  using socket = asio::local::stream_protocol::socket;
  using pair = std::pair<socket, socket>;

  asio::awaitable<void> ask(std::shared_ptr<pair> ends, int seed)
  {
    using namespace asio::experimental::awaitable_operators;
    std::array<char, 1> byte{};
    Timer timer(ends->first.get_executor());
    for (int i = 0; i < requests_; ++i) {
      byte[0] = (seed + i) % silent_every == 0 ? 's' : 'a';
      co_await asio::async_write(ends->first, asio::buffer(byte), asio::use_awaitable);
      timer.expires_after(deadline);
      const auto result =
        co_await (ends->first.async_read_some(asio::buffer(byte), asio::use_awaitable) ||
                  timer.async_wait(asio::use_awaitable));
      ++seen_.counts[result.index() == 0 ? "answered" : "timed out"];
      if (result.index() == 1) seen_.lateness.push_back(clock::now() - timer.expiry());
    }
    ends->first.close();
  }

  asio::awaitable<void> answer(std::shared_ptr<pair> ends)
  {
    std::array<char, 1> byte{};
    error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    while (!ec) {
      co_await ends->second.async_read_some(asio::buffer(byte), token);
      if (!ec && byte[0] == 'a')
        co_await asio::async_write(ends->second, asio::buffer(byte), token);
    }
  }

  int requests_;
  observations& seen_;
};

/// Idiom 2: a timer that never expires is a condition variable. A cancel notifies it.
template <class Timer>
class conditions {
public:
  static constexpr auto name =
    "producers of a queue, which has a condition variable for its consumers";
  static constexpr int consumers = 8;

  conditions(crew& c, int producers, double seconds, observations& seen)
    : not_empty_(c.context(), Timer::time_point::max()),
      producers_(producers),
      seen_(seen)
  {
    for (int i = 0; i < consumers; ++i) c.start(consume());
    for (int i = 0; i < producers; ++i) c.start(produce(static_cast<int>(1000 * seconds)));
  }

private:
  asio::awaitable<void> produce(int items)
  {
    const auto executor = co_await asio::this_coro::executor;
    for (int i = 0; i < items; ++i) {
      queue_.push_back(++produced_);
      not_empty_.cancel_one();
      co_await asio::post(executor, asio::use_awaitable);
    }
    if (--producers_ == 0) not_empty_.cancel();
  }

  asio::awaitable<void> consume()
  {
    while (true) {
      while (queue_.empty()) {
        if (producers_ == 0) co_return;
        error_code cancelled;
        co_await not_empty_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
      }
      ++seen_.counts["items"];
      if (queue_.front() != ++consumed_) ++seen_.counts["out of order"];
      queue_.pop_front();
    }
  }

  Timer not_empty_;
  int producers_;
  std::deque<std::uint64_t> queue_;
  std::uint64_t produced_ = 0, consumed_ = 0;
  observations& seen_;
};

/// Idiom 3: a timer that counts from its own last expiry ticks without drift.
template <class Timer>
class periods {
public:
  static constexpr auto name = "timers that tick every 10 ms, each at its own time";
  static constexpr clock::duration period = 10ms;

  periods(crew& c, int timers, double seconds, observations& seen) : seen_(seen)
  {
    const auto start = clock::now();
    for (int i = 0; i < timers; ++i)
      c.start(tick(start + period * i / timers, static_cast<int>(seconds * 100)));
  }

private:
  asio::awaitable<void> tick(clock::time_point start, int times)
  {
    Timer timer(co_await asio::this_coro::executor, start);
    for (int i = 0; i < times; ++i) {
      timer.expires_at(timer.expiry() + period);
      co_await timer.async_wait(asio::use_awaitable);
      ++seen_.counts["ticks"];
      seen_.lateness.push_back(clock::now() - timer.expiry());
    }
    if (timer.expiry() != start + period * times) ++seen_.counts["drifted"];
  }

  observations& seen_;
};

}  // namespace swap_timers
