// The surroundings of the documentation's snippets: the names that they use, and a server's
// objects.
#pragma once

#include <asio_wheel.hpp>
#include <asio_wheel/fmt.hpp>
#include <asio_wheel/timed_stream.hpp>

#include <fmt/core.h>
#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/parallel_group.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#undef NDEBUG  // snippets assert in every build
#include <cassert>

namespace snippets {

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::system_error;

class snippet {
public:
  virtual ~snippet() = default;
  virtual void play() = 0;
};

/// A snippet, and the page and line where it is.
struct listed {
  std::string_view where;
  std::function<std::unique_ptr<snippet>()> make;
};
[[nodiscard]] std::vector<listed>& all_snippets();

template <class Snippet>
struct listed_snippet {
  explicit listed_snippet(std::string_view where)
  {
    all_snippets().push_back({where, [] { return std::make_unique<Snippet>(); }});
  }
};

/// A coroutine that is not Asio's, and accepts any awaiter.
struct task {
  struct promise_type {
    task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

/// A snippet that runs by itself, in real time.
class function_snippet : public snippet {
public:
  void play() override { run(); }

protected:
  virtual void run() = 0;
};

/// A snippet that runs on a context with a wheel in virtual time, and a connection to a peer. The
/// peer says hello and then sends back what it gets.
class coroutine_snippet : public snippet {
public:
  coroutine_snippet();
  void play() override;

protected:
  virtual asio::awaitable<void> run() = 0;

  asio::io_context context;
  wheel_timer_service& wheel = make_wheel(context);
  tcp::socket socket{context};
  std::string request = "request";
  std::array<char, 64> storage{};
  asio::mutable_buffer buffer{storage.data(), storage.size()};
  int connections = 0;
  int calls = 0;

  void handle_request() { ++calls; }
  void close_connection() { socket.close(); }

private:
  asio::awaitable<void> echo();

  tcp::socket peer_{context};
};

/// 200 requests a second for tokens of 100, each with a deadline of 100 ms, for 10 s. Returns how
/// many got one in the last second.
template <class Bucket>
asio::awaitable<int> served_in_overload(Bucket& bucket, wheel_timer_service& wheel)
{
  const auto served = std::make_shared<int>(0);
  for (int i = 0; i != 2000; ++i) {
    if (i == 1800) *served = 0;
    asio::co_spawn(wheel.get_executor(), bucket.take(),
                   timeout_after(100ms, [served](const std::exception_ptr& error) {
                     if (!error) ++*served;
                   }));
    co_await wheel.async_wait(5ms);
  }
  co_return *served;
}

/// Empties the bucket, lets two wait for it, and ends them by cancel_all().
template <class Bucket>
asio::awaitable<void> end_all(Bucket& bucket, wheel_timer_service& wheel)
{
  while (bucket.try_take()) continue;
  int ended = 0;
  for (int i = 0; i != 2; ++i)
    asio::co_spawn(wheel.get_executor(), bucket.take(),
                   [&](const std::exception_ptr& error) { ended += error ? 1 : 0; });
  co_await wheel.async_wait(1ms);
  wheel.cancel_all();
  co_await bucket.take();
  assert(ended == 2);
}

}  // namespace snippets
