// The parts of asio_wheel that these programs use, written with steady_timer instead.
//
// Nothing here is thread-safe, and a waiting handler must own the object on which it waits.
#pragma once

#include "connection.hpp"

#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <utility>

namespace rpc {

/// A timer whose deadline may move during a wait. Setting it anew would cost a cancelled wait for
/// every frame. Instead it checks the deadline again when it expires.
class lazy_timer {
public:
  void cancel()
  {
    // The timer alone does not cancel a wait that has expired and whose handler was not called yet.
    cancelled_ = true;
    timer_.cancel();
  }

protected:
  explicit lazy_timer(const asio::any_io_executor& ex) : timer_(ex) {}
  ~lazy_timer() = default;

  virtual clock::time_point deadline() const = 0;

  /// Waits for the deadline, then calls `complete(self, error_code)`.
  template <class Signature, class Complete, class Token>
  auto async_wait(Complete complete, Token&& token)
  {
    return asio::async_compose<Token, Signature>(
      [this, complete, waited = false](auto& self, error_code ec = {}) mutable {
        if (cancelled_) ec = asio::error::operation_aborted;
        if (std::exchange(waited, true) && (ec || deadline() <= clock::now()))
          return complete(self, ec);
        timer_.expires_at(cancelled_ ? clock::time_point::min() : deadline());
        timer_.async_wait(std::move(self));
      },
      token, timer_);
  }

private:
  asio::steady_timer timer_;
  bool cancelled_ = false;
};

/// asio_wheel::wheel_watchdog.
class steady_watchdog final : public lazy_timer {
public:
  steady_watchdog(const asio::any_io_executor& ex, clock::duration timeout)
    : lazy_timer(ex),
      timeout_(timeout)
  {}

  void touch() { touched_ = clock::now(); }

  template <class Token>
  auto async_expired(Token&& token)
  {
    return async_wait<void(error_code)>([](auto& self, error_code ec) { self.complete(ec); },
                                        std::forward<Token>(token));
  }

private:
  clock::time_point deadline() const override { return touched_ + timeout_; }

  clock::duration timeout_;
  clock::time_point touched_ = clock::now();
};

/// asio_wheel::heartbeat, with the same rules.
class steady_heartbeat final : public lazy_timer {
public:
  steady_heartbeat(const asio::any_io_executor& ex, const asio_wheel::heartbeat_options& options)
    : lazy_timer(ex),
      options_(options)
  {}

  void sent() { sent_ = clock::now(); }
  void received() { received_ = clock::now(); }

  template <class Token>
  auto async_next(Token&& token)
  {
    using asio_wheel::heartbeat_event;
    return async_wait<void(error_code, heartbeat_event)>(
      [this](auto& self, error_code ec) {
        const auto now = clock::now();
        if (received_ >= reported_) pings_ = 0;
        const auto left = static_cast<clock::rep>(options_.max_missed - pings_ + 1);
        const bool lost = std::max(received_, reported_) + left * options_.interval <= now;
        pings_ = lost ? options_.max_missed : pings_ + 1;
        reported_ = now;
        self.complete(ec, lost ? heartbeat_event::peer_lost : heartbeat_event::send_ping);
      },
      std::forward<Token>(token));
  }

private:
  clock::time_point deadline() const override
  {
    return std::max(std::min(sent_, received_), reported_) + options_.interval;
  }

  asio_wheel::heartbeat_options options_;
  clock::time_point sent_ = clock::now(), received_ = sent_, reported_{};
  std::size_t pings_ = 0;  // unanswered
};

/// The used part of asio_wheel::keyed_scheduler.
template <class Key>
class steady_scheduler {
public:
  explicit steady_scheduler(const asio::any_io_executor& ex) : executor_(ex) {}

  template <class F>
  bool run_after(Key key, clock::duration delay, F f)
  {
    const auto [task, added] = tasks_->try_emplace(key, executor_, delay);
    if (!added) return false;
    task->second.async_wait(
      [key, f = std::move(f), weak = std::weak_ptr(tasks_)](error_code ec) mutable {
        const auto tasks = weak.lock();
        if (ec || !tasks) return;
        tasks->erase(key);
        f();
      });
    return true;
  }

  std::size_t size() const { return tasks_->size(); }

private:
  using task_map = std::unordered_map<Key, asio::steady_timer>;

  asio::any_io_executor executor_;
  std::shared_ptr<task_map> tasks_ = std::make_shared<task_map>();
};

}  // namespace rpc
