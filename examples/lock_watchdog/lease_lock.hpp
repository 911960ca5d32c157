// A lock in a Redis server, held on a lease that a watchdog renews: who dies loses it by itself.
#pragma once

#include "../common/print_error.hpp"
#include "../redis/client.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace redis {

/// Not thread-safe.
///
/// The lock is a key that holds the token of its owner, and that the server removes when the lease
/// has run out. Each owner gets a fence as well, a number higher than all before: whatever the lock
/// protects can tell by it a late write of an owner that lost the lock without noticing, as it can
/// happen to one that was suspended.
class lease_lock {
public:
  /// The client has to live longer.
  lease_lock(const asio::any_io_executor& ex, client& c, std::string name,
             std::chrono::milliseconds lease)
    : wheel_(asio_wheel::use_wheel(ex)),
      client_(c),
      name_(std::move(name)),
      lease_(lease)
  {}

  [[nodiscard]] const std::string& token() const { return token_; }

  /// Whether the lock is certain to be ours. The server counts the lease from when it is told, so
  /// that this ends a little earlier than there.
  [[nodiscard]] bool is_held() const { return wheel_.now() < held_until_; }

  /// Takes the lock if nobody has it. Returns the fence, or 0. Throws failure.
  asio::awaitable<std::int64_t> try_acquire()
  {
    const auto sent = wheel_.now();
    const auto answer = co_await client_.command(sent + lease_, "EVAL", acquire_script, 2, name_,
                                                 name_ + ":fence", token_, lease_.count());
    const auto fence = answer.integer();
    if (fence != 0) held_until_ = sent + lease_;
    co_return fence;
  }

  /// The watchdog: renews the lease every third of it, and returns when the lock is lost.
  asio::awaitable<void> keep()
  {
    const auto ex = co_await asio::this_coro::executor;
    const auto period = lease_ / 3;
    asio_wheel::wheel_interval turns(ex, wheel_.now() + period, period,
                                     asio_wheel::missed_tick::skip);
    const auto no_throw = asio::as_tuple(asio::use_awaitable);
    while (true) {
      const auto [ec, due] =
        co_await turns.async_tick(asio_wheel::timeout_at(held_until_, no_throw));
      if (ec || !is_held()) co_return;
      const auto sent = wheel_.now();
      try {
        const auto answer = co_await client_.command(held_until_, "EVAL", renew_script, 1, name_,
                                                     token_, lease_.count());
        if (answer.integer() == 0) break;
        held_until_ = sent + lease_;
      } catch (const failure& e) {
        // There is a turn or two left to try again, or the lease has run out.
        if (is_held()) common::print_error("cannot renew the lease: {}\n", e.what());
      }
    }
    held_until_ = {};
  }

  /// Returns whether the lock was ours up to now. Throws failure.
  asio::awaitable<bool> release()
  {
    held_until_ = {};
    const auto answer =
      co_await client_.command(wheel_.now() + lease_, "EVAL", release_script, 1, name_, token_);
    co_return answer.integer() != 0;
  }

private:
  // One script each: nothing of somebody else's can come between its commands.
  static constexpr std::string_view acquire_script =
    "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then "
    "return redis.call('INCR', KEYS[2]) end return 0";
  static constexpr std::string_view renew_script =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
    "return redis.call('PEXPIRE', KEYS[1], ARGV[2])";
  static constexpr std::string_view release_script =
    "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end "
    "return redis.call('DEL', KEYS[1])";

  static std::string random_token()
  {
    std::random_device random;
    return fmt::format("{:08x}{:08x}", random(), random());
  }

  asio_wheel::wheel_timer_service& wheel_;
  client& client_;
  const std::string name_;
  const std::chrono::milliseconds lease_;
  const std::string token_ = random_token();
  clock::time_point held_until_{};
};

}  // namespace redis
