// Every operation of the library, on a wheel and an executor that the test case chooses, also where
// its handlers run in a thread of their own.
#pragma once

#include <array>
#include <asio_wheel.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>

#include "support/account.hpp"
#include "support/socket_pair.hpp"

namespace faults {

namespace asio = boost::asio;
using support::account;
using support::accounted;

/// Where the operations of a case are.
struct surroundings {
  asio_wheel::wheel_place<> place;  ///< of the object
  asio::any_io_executor handlers;   ///< an executor that runs functions where the handlers run
  asio::io_context& sockets;
};

inline constexpr std::chrono::milliseconds a_moment{1};

/// Base of those that any thread may start and cancel.
template <class Object>
struct waits_of {
  static constexpr bool is_wait = true;     ///< its cancels are counted
  static constexpr bool calls_each = true;  ///< unless an executor drops it

  template <class... Args>
  explicit waits_of(account& a, Args&&... args) : books(a),
                                                  object(std::forward<Args>(args)...)
  {}

  template <class Start>
  void attempt(Start start)
  {
    try {
      start();
    } catch (const std::exception&) {
      ++books.told;
    }
  }
  void cancel() { books.cancelled += object.cancel(); }
  void end_one() { cancel(); }
  void end_rest() {}

  account& books;
  Object object;
};

struct expiry_of_a_timer : waits_of<asio_wheel::wheel_timer> {
  expiry_of_a_timer(account& a, const surroundings& s) : waits_of(a, s.place, a_moment) {}

  template <class Handler>
  void start(Handler&& h)
  {
    attempt([&] { object.async_wait(std::forward<Handler>(h)); });
  }
  void end_one() { books.cancelled += object.cancel_one(); }
};

struct tick_elsewhere : waits_of<asio_wheel::wheel_interval> {
  tick_elsewhere(account& a, const surroundings& s)
    : waits_of(a, s.place, a_moment, asio_wheel::missed_tick::skip)
  {}

  static constexpr bool is_wait = false;  // its cancel() does not count

  void cancel() { object.cancel(); }
  void end_one() { cancel(); }

  template <class Handler>
  void start(Handler&& h)
  {
    attempt([&] { object.async_tick(std::forward<Handler>(h)); });
  }
};

struct watch_elsewhere : waits_of<asio_wheel::wheel_watchdog> {
  watch_elsewhere(account& a, const surroundings& s) : waits_of(a, s.place, a_moment) {}

  template <class Handler>
  void start(Handler&& h)
  {
    attempt([&] { object.async_expired(std::forward<Handler>(h)); });
    object.touch();
  }
};

struct beat_elsewhere : waits_of<asio_wheel::heartbeat> {
  beat_elsewhere(account& a, const surroundings& s)
    : waits_of(a, s.place, asio_wheel::heartbeat_options{.interval = a_moment, .max_missed = 3})
  {}

  template <class Handler>
  void start(Handler&& h)
  {
    attempt([&] { object.async_next(std::forward<Handler>(h)); });
  }
};

/// The scheduler calls its function and ignores the function's associations. It destroys the
/// function of a task that is cancelled.
struct task_elsewhere {
  static constexpr bool is_wait = false;
  static constexpr bool calls_each = false;

  task_elsewhere(account& a, const surroundings& s) : books(a), scheduler(s.place) {}

  template <class Function>
  void start(Function&& f)
  {
    try {
      scheduler.run_after(++key, a_moment, std::forward<Function>(f));
    } catch (const std::exception&) {
      ++books.told;
    }
  }
  void cancel() { end_one(); }
  void end_one() { scheduler.cancel(key); }
  void end_rest() {}

  account& books;
  asio_wheel::keyed_scheduler<int> scheduler;
  int key = 0;
};

struct wait_of_the_service {
  static constexpr bool is_wait = true;
  static constexpr bool calls_each = true;

  wait_of_the_service(account& a, const surroundings& s) : books(a), wheel(s.place.wheel) {}

  template <class Handler>
  void start(Handler&& h)
  {
    try {
      wheel.async_wait(a_moment, std::forward<Handler>(h));
    } catch (const std::exception&) {
      ++books.told;
    }
  }
  void cancel() { books.cancelled += wheel.cancel_all(); }
  void end_one() {}
  void end_rest() {}

  account& books;
  asio_wheel::wheel_timer_service& wheel;
};

/// An operation that completes where it is told to, by calling its handler there.
class inline_operation {
public:
  inline_operation(account& a, asio::any_io_executor ex, bool obeys, bool ends_at_once)
    : books_(a),
      executor_(std::move(ex)),
      obeys_(obeys),
      ends_at_once_(ends_at_once)
  {}
  inline_operation(const inline_operation&) = delete;
  inline_operation& operator=(const inline_operation&) = delete;

  template <class Token>
  void async_run(Token&& token)
  {
    asio::async_initiate<Token, void(asio_wheel::error_code)>(initiation{this}, token);
  }

  void complete(asio_wheel::error_code ec)
  {
    if (const auto h = std::move(handler_)) h->call(ec);
  }

  /// Asio does not let a cancellation throw.
  void complete_or_tell(asio_wheel::error_code ec)
  {
    try {
      complete(ec);
    } catch (const std::exception&) {
      ++books_.told;
    }
  }

  asio::cancellation_signal signal;  ///< a cancellation from outside

private:
  struct any_handler {
    virtual ~any_handler() = default;
    virtual void call(asio_wheel::error_code ec) = 0;
  };

  template <class Handler>
  struct typed_handler final : any_handler {
    explicit typed_handler(Handler h) : handler(std::move(h)) {}
    void call(asio_wheel::error_code ec) override { std::move(handler)(ec); }
    Handler handler;
  };

  struct initiation {
    using executor_type = asio::any_io_executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return self->executor_; }

    template <class Handler>
    void operator()(Handler&& handler) const
    {
      auto slot = asio::get_associated_cancellation_slot(handler);
      slot.assign([op = self](asio::cancellation_type_t) {
        if (op->obeys_) op->complete_or_tell(asio::error::operation_aborted);
      });
      self->handler_ =
        std::make_unique<typed_handler<std::decay_t<Handler>>>(std::forward<Handler>(handler));
      if (self->ends_at_once_) self->complete_or_tell({});
    }

    inline_operation* self;
  };

  account& books_;
  asio::any_io_executor executor_;
  bool obeys_;         ///< ends when it is cancelled
  bool ends_at_once_;  ///< while it is initiated
  std::unique_ptr<any_handler> handler_;
};

/// Base of operations, all of which start and end where the handlers run.
struct operations_there {
  static constexpr bool is_wait = false;
  static constexpr bool calls_each = true;

  operations_there(account& a, const surroundings& s) : books(a), around(s) {}

  void cancel()
  {
    asio::post(around.handlers, [this] {
      for (auto& op : operations) op.signal.emit(asio::cancellation_type::terminal);
    });
  }
  /// While the deadlines of the operations come, and wait for room to be sent.
  void end_one()
  {
    asio::post(around.handlers, [this] {
      std::this_thread::sleep_for(a_moment * 2);
      complete_all();
    });
  }
  void end_rest()
  {
    asio::post(around.handlers, [this] { complete_all(); });
  }
  void complete_all()
  {
    for (auto& op : operations) op.complete_or_tell({});
  }

  /// Calls `run(operation, handler)` there.
  template <class Handler, class Run>
  void start_there(Handler&& h, Run run)
  {
    post_start([this, run, h = std::forward<Handler>(h)]() mutable {
      const std::size_t n = operations.size();
      auto& op = operations.emplace_back(books, around.place.executor, n % 3 != 0, n % 5 == 4);
      run(op, asio::bind_cancellation_slot(op.signal.slot(), std::move(h)));
    });
  }

  template <class Start>
  void post_start(Start start)
  {
    try {
      asio::post(around.handlers, [this, start = std::move(start)]() mutable {
        try {
          start();
        } catch (const std::exception&) {
          ++books.told;
        }
      });
    } catch (const std::exception&) {
      ++books.told;
    }
  }

  account& books;
  surroundings around;
  std::deque<inline_operation> operations;
};

struct cancel_elsewhere : operations_there {
  using operations_there::operations_there;

  template <class Handler>
  void start(Handler&& h)
  {
    start_there(std::forward<Handler>(h), [this](auto& op, auto handler) {
      op.async_run(asio_wheel::cancel_after(around.place.wheel, a_moment, std::move(handler)));
    });
  }
};

struct timeout_elsewhere : operations_there {
  using operations_there::operations_there;

  template <class Handler>
  void start(Handler&& h)
  {
    start_there(std::forward<Handler>(h), [this](auto& op, auto handler) {
      op.async_run(asio_wheel::timeout_after(around.place.wheel, a_moment, std::move(handler)));
    });
  }
};

struct guarded_elsewhere : operations_there {
  guarded_elsewhere(account& a, const surroundings& s)
    : operations_there(a, s),
      watchdog(s.place, a_moment)
  {}

  template <class Handler>
  void start(Handler&& h)
  {
    start_there(std::forward<Handler>(h), [this](auto& op, auto handler) {
      watchdog.touch();
      op.async_run(watchdog.guard(std::move(handler)));
    });
  }

  asio_wheel::wheel_watchdog watchdog;
};

/// Reads and writes of streams, and connections to a port. Asio destroys the handlers that their
/// executor refuses.
struct stream_elsewhere {
  static constexpr bool is_wait = false;
  static constexpr bool calls_each = false;
  using stream = asio_wheel::timed_stream<support::pair_socket>;

  stream_elsewhere(account& a, const surroundings& s)
    : books(a),
      around(s),
      acceptor(s.sockets, {asio::ip::address_v4::loopback(), 0})
  {}

  template <class Handler>
  void start(Handler&& h)
  {
    asio::post(around.handlers, [this, h = std::forward<Handler>(h)]() mutable {
      try {
        start_here(std::move(h));
      } catch (const std::exception&) {
        ++books.told;
      }
    });
  }

  template <class Handler>
  void start_here(Handler h)
  {
    if (++started % 4 == 0) {
      auto& s = connecting.emplace_back(around.sockets);
      s.expires_after(a_moment);
      return s.async_connect(acceptor.local_endpoint(), std::move(h));
    }
    auto& p = pairs.emplace_back(around.sockets);
    p.one.expires_after(a_moment);
    if (started % 4 == 1)
      p.one.async_write_some(asio::buffer(p.bytes), std::move(h));
    else
      p.one.async_read_some(asio::buffer(p.bytes), std::move(h));
  }

  void cancel() { end_one(); }
  void end_one()
  {
    asio::post(around.handlers, [this] {
      if (!pairs.empty()) pairs.back().one.cancel();
    });
  }
  void end_rest()
  {
    asio::post(around.handlers, [this] {
      for (auto& p : pairs) p.one.cancel();
      for (auto& s : connecting) s.cancel();
    });
  }

  struct pair {
    explicit pair(asio::io_context& context) : one(context), other(context)
    {
      support::connect_pair(one.socket(), other);
    }
    stream one;
    support::pair_socket other;
    std::array<char, 8> bytes{};
  };

  account& books;
  surroundings around;
  asio::ip::tcp::acceptor acceptor;
  std::deque<pair> pairs;
  std::deque<asio_wheel::tcp_stream> connecting;
  int started = 0;
};

using every_operation_elsewhere =
  std::tuple<wait_of_the_service, expiry_of_a_timer, tick_elsewhere, watch_elsewhere,
             beat_elsewhere, task_elsewhere, cancel_elsewhere, timeout_elsewhere, guarded_elsewhere,
             stream_elsewhere>;

}  // namespace faults
