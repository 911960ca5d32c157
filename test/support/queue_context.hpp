// An execution context of a user's own, which Asio knows nothing of.
#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace support {

/// A queue of functions. Asio has to run its timers in a thread of its own. It can be told to have
/// no memory for every other function. It may have room for a few only: then whoever brings another
/// waits, except the thread that runs it.
class queue_context : public boost::asio::execution_context {
public:
  explicit queue_context(std::size_t room = std::numeric_limits<std::size_t>::max()) noexcept
    : room_(room)
  {}

  class executor_type {
  public:
    executor_type(queue_context& c, bool tracked) noexcept : context_(&c), tracked_(tracked)
    {
      if (tracked_) context_->count(1);
    }
    executor_type(const executor_type& other) noexcept
      : executor_type(*other.context_, other.tracked_)
    {}
    executor_type& operator=(const executor_type&) = delete;
    ~executor_type()
    {
      if (tracked_) context_->count(-1);
    }

    [[nodiscard]] queue_context& query(boost::asio::execution::context_t) const noexcept
    {
      return *context_;
    }
    [[nodiscard]] static constexpr boost::asio::execution::blocking_t query(
      boost::asio::execution::blocking_t) noexcept
    {
      return boost::asio::execution::blocking.never;
    }
    [[nodiscard]] executor_type require(boost::asio::execution::blocking_t::never_t) const noexcept
    {
      return *this;
    }
    [[nodiscard]] executor_type require(
      boost::asio::execution::outstanding_work_t::tracked_t) const noexcept
    {
      return {*context_, true};
    }
    [[nodiscard]] executor_type require(
      boost::asio::execution::outstanding_work_t::untracked_t) const noexcept
    {
      return {*context_, false};
    }

    template <class Function>
    void execute(Function f) const
    {
      context_->push([kept = std::make_shared<Function>(std::move(f))] { (*kept)(); });
    }

    friend bool operator==(const executor_type& a, const executor_type& b) noexcept
    {
      return a.context_ == b.context_;
    }
    friend bool operator!=(const executor_type& a, const executor_type& b) noexcept
    {
      return !(a == b);
    }

  private:
    queue_context* context_;
    bool tracked_;
  };

  ~queue_context()
  {
    shutdown();
    functions_.clear();  // they may have something of the services
    destroy();
  }

  [[nodiscard]] executor_type get_executor() noexcept { return {*this, false}; }

  void refuse_every_other() noexcept
  {
    const std::lock_guard lock(mutex_);
    refuses_ = refuses_next_ = true;
  }

  /// How many functions it had no memory for.
  [[nodiscard]] int refused() noexcept
  {
    const std::lock_guard lock(mutex_);
    return refused_;
  }

  /// Has run() return, now and from now on, and nobody wait for room.
  void stop() noexcept
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    change_.notify_all();
  }

  /// Runs functions until there is neither one nor work.
  void run()
  {
    std::unique_lock lock(mutex_);
    runner_ = std::this_thread::get_id();
    for (;;) {
      change_.wait(lock, [this] { return stopped_ || !functions_.empty() || work_ == 0; });
      if (stopped_ || functions_.empty()) return;
      auto f = std::move(functions_.front());
      functions_.pop_front();
      change_.notify_all();
      lock.unlock();
      f();
      f = nullptr;
      lock.lock();
    }
  }

private:
  void count(int n) noexcept
  {
    const std::lock_guard lock(mutex_);
    work_ += n;
    change_.notify_all();
  }

  void push(std::function<void()> f)
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(refuses_next_, refuses_ && !refuses_next_)) {
      ++refused_;
      throw std::bad_alloc();
    }
    if (std::this_thread::get_id() != runner_)
      change_.wait(lock, [this] { return stopped_ || functions_.size() < room_; });
    functions_.push_back(std::move(f));
    change_.notify_all();
  }

  const std::size_t room_;
  std::mutex mutex_;
  std::condition_variable change_;
  std::deque<std::function<void()>> functions_;
  std::thread::id runner_;
  bool stopped_ = false;
  int work_ = 0;
  bool refuses_ = false, refuses_next_ = false;
  int refused_ = 0;
};

}  // namespace support
