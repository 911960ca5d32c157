// Runs a context to its end. Fails the case instead of hanging.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace support {

/// Much more than any case needs, even on a loaded machine under a sanitizer.
inline constexpr std::chrono::seconds patience{20};

/// Runs until the context is out of work.
inline void run_to_end(boost::asio::io_context& context)
{
  context.restart();
  context.run_for(patience);
  BOOST_REQUIRE_MESSAGE(context.stopped(), "the context still has work after 20 seconds");
}

/// Runs one handler after the other until `done()`.
template <class Condition>
void run_until(boost::asio::io_context& context, Condition done)
{
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (context.stopped()) context.restart();
    BOOST_REQUIRE_MESSAGE(context.run_one_until(limit) == 1, "the event did not come");
  }
}

/// Runs a coroutine and everything it starts to the end, and rethrows its exception.
template <class Coroutine>
void run_coroutine(boost::asio::io_context& context, Coroutine&& coroutine)
{
  bool ended = false;
  std::exception_ptr thrown;
  boost::asio::co_spawn(context, std::forward<Coroutine>(coroutine), [&](std::exception_ptr e) {
    ended = true;
    thrown = e;
  });
  run_to_end(context);
  BOOST_REQUIRE(ended);
  if (thrown) std::rethrow_exception(thrown);
}

/// Calls `attempt(ahead)`, which prepares something and returns whether it was ready after `ahead`.
/// If the machine was too busy for that, the next attempt has twice the time.
template <class Attempt>
void with_time_enough(std::chrono::milliseconds ahead, Attempt attempt)
{
  for (; !attempt(ahead); ahead *= 2)
    BOOST_REQUIRE_MESSAGE(ahead < patience, "never ready in time");
}

/// Waits for something that another thread does.
template <class Condition>
bool eventually(Condition done)
{
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace support
