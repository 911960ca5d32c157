// The soak's counters: what was started and how it ended, which promises were broken, and the
// memory of handlers.
#pragma once

#include <fmt/core.h>
#include <asio_wheel.hpp>
#include <boost/asio/bind_allocator.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace soak {

namespace asio = boost::asio;
using asio_wheel::error_code;
using time_point = asio_wheel::wheel_timer_service::time_point;
using asio_wheel::wheel_timer_service;

/// The kinds of operations in the report.
enum class kind { wait, timer, deadline, interval, task, watchdog, heartbeat };
inline constexpr std::array kind_names{"wait", "timer",    "deadline", "interval",
                                       "task", "watchdog", "heartbeat"};

/// Operations of one kind. Any thread may write.
struct alignas(64) account {
  std::atomic<std::uint64_t> started{0};
  std::atomic<std::uint64_t> completed{0};  ///< the handler was called
  std::atomic<std::uint64_t> destroyed{0};  ///< the handler was destroyed and never called

  // Reads the ends first: operations that start meanwhile only add to the result.
  [[nodiscard]] std::uint64_t open() const
  {
    const std::uint64_t ended = completed + destroyed;
    return started - ended;
  }
};

struct books {
  std::array<account, kind_names.size()> accounts;
  std::atomic<std::int64_t> handler_bytes{0};  ///< held through counting_allocator
  std::atomic<std::uint64_t> thrown{0};        ///< exceptions that handlers threw on purpose
  std::atomic<int> violations{0};

  [[nodiscard]] account& of(kind k) { return accounts[static_cast<std::size_t>(k)]; }

  [[nodiscard]] std::uint64_t total(std::atomic<std::uint64_t> account::*what) const
  {
    std::uint64_t sum = 0;
    for (const account& a : accounts) sum += a.*what;
    return sum;
  }
  [[nodiscard]] std::uint64_t open() const
  {
    std::uint64_t sum = 0;
    for (const account& a : accounts) sum += a.open();
    return sum;
  }

  /// Counts a broken promise, and prints the first few.
  template <class... Args>
  void violated(fmt::format_string<Args...> text, Args&&... args)
  {
    if (++violations <= 20)
      fmt::print(stderr, "violated: {}\n", fmt::format(text, std::forward<Args>(args)...));
  }
};

/// A part of an operation's handler that counts its end: called once, or destroyed.
class ticket {
public:
  /// @param earliest  the operation must not succeed before this.
  ticket(books& b, kind k, wheel_timer_service& wheel, time_point earliest = time_point::min())
    : books_(&b),
      wheel_(&wheel),
      kind_(k),
      earliest_(earliest)
  {
    ++b.of(k).started;
  }
  ticket(ticket&& other) noexcept
    : books_(other.books_),
      wheel_(other.wheel_),
      kind_(other.kind_),
      earliest_(other.earliest_),
      open_(std::exchange(other.open_, false))
  {}
  ticket& operator=(ticket&&) = delete;
  ~ticket()
  {
    if (open_) ++books_->of(kind_).destroyed;
  }

  void end(error_code ec)
  {
    const char* const name = kind_names[static_cast<std::size_t>(kind_)];
    if (!std::exchange(open_, false)) return books_->violated("a {} completed twice", name);
    ++books_->of(kind_).completed;
    const bool limited = wheel_->options().max_pending != 0;
    if (!ec) {
      const time_point now = wheel_->now();
      if (now < earliest_)
        books_->violated("a {} was early by {} ns", name, (earliest_ - now).count());
    } else if (ec != asio::error::operation_aborted &&
               !(limited && ec == asio_wheel::wheel_errc::too_many_pending)) {
      books_->violated("a {} ended with {}", name, ec.message());
    }
  }

private:
  books* books_;
  wheel_timer_service* wheel_;
  kind kind_;
  time_point earliest_;
  bool open_ = true;
};

/// Counts the bytes that are allocated.
template <class T>
struct counting_allocator {
  using value_type = T;

  explicit counting_allocator(books& b) noexcept : owner(&b) {}
  template <class U>
  counting_allocator(const counting_allocator<U>& other) noexcept : owner(other.owner)
  {}

  T* allocate(std::size_t n)
  {
    T* const p = std::allocator<T>{}.allocate(n);
    owner->handler_bytes += static_cast<std::int64_t>(n * sizeof(T));
    return p;
  }
  void deallocate(T* p, std::size_t n) noexcept
  {
    owner->handler_bytes -= static_cast<std::int64_t>(n * sizeof(T));
    std::allocator<T>{}.deallocate(p, n);
  }
  template <class U>
  bool operator==(const counting_allocator<U>& other) const noexcept
  {
    return owner == other.owner;
  }

  books* owner;
};

/// A handler whose operation takes its memory from a counting_allocator.
template <class Handler>
auto counted(books& b, Handler handler)
{
  return asio::bind_allocator(counting_allocator<std::byte>(b), std::move(handler));
}

}  // namespace soak
