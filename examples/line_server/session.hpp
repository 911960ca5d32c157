// A session: lines that a client sends, and their answers. Everything of it is on one strand.
//
//   reader     reads a line and answers it, but not while many answers are queued; ends with the
//              watchdog, with the client, or by drain()
//   writer     sends what is queued; ends when a write stalls, or the session is over
//   heartbeat  pings a client that is quiet, and notices one that is gone
//
// Whichever ends first ends the others: the session is over, the writer still sends what is queued,
// and closes the stream.
#pragma once

#include "settings.hpp"

#include <asio_wheel.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <charconv>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace lines {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;

inline constexpr auto no_throw = asio::as_tuple(asio::deferred);

class session {
public:
  /// @param socket  whose executor is a strand: that of the session.
  session(tcp::socket socket, const settings& s, counters& c, asio_wheel::timeout_policy& request)
    : stream_(std::move(socket)),
      idle_(strand(), milliseconds(s.idle_ms)),
      beat_(strand(), {.interval = milliseconds(s.heartbeat_ms), .max_missed = 3}),
      wake_reader_(strand(), asio_wheel::wheel_timer::time_point::max()),
      wake_writer_(strand(), asio_wheel::wheel_timer::time_point::max()),
      request_(request),
      counters_(c)
  {
    stream_.set_limits({.write_stall = milliseconds(s.stall_ms)});
  }

  [[nodiscard]] asio::any_io_executor strand() { return stream_.get_executor(); }

  /// Returns when the session is over and has closed its stream. To be spawned on the strand.
  asio::awaitable<void> run()
  {
    using namespace asio::experimental::awaitable_operators;
    try {
      co_await (noted(read()) && noted(write()) && noted(keep_alive()));
    } catch (const asio::multiple_exceptions&) {
      std::rethrow_exception(failure_);
    }
  }

  /// Reads nothing that has not come yet: the session ends when it has answered the rest. On the
  /// strand.
  void drain()
  {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_receive, ignored);
  }

  /// Ends the session at once, whatever run() waits for. On the strand.
  void cut()
  {
    queue_.clear();
    finish();
    stream_.close();
    cut_.emit(asio::cancellation_type::terminal);
  }

  /// For the spawned run() to listen to.
  [[nodiscard]] asio::cancellation_slot when_cut() { return cut_.slot(); }

private:
  /// Notes the exception that ends the others. `&&` throws that of the first part by position,
  /// which may only have been cancelled.
  asio::awaitable<void> noted(asio::awaitable<void> part)
  {
    try {
      co_await std::move(part);
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
      throw;
    }
  }

  asio::awaitable<void> read()
  {
    std::string bytes;
    bool is_too_long = false;  // the line that is being read: the rest of it is dropped
    for (;;) {
      while (queue_.size() > longest_queue && !is_over_) {
        is_busy_ = true;
        const auto [error] = co_await wake_reader_.async_wait(no_throw);
        // If it was refused, a further wait would be, too, without end.
        if (error == asio_wheel::wheel_errc::too_many_pending) co_return finish();
      }
      if (is_over_) break;
      if (std::exchange(is_busy_, false)) {
        // Nobody has listened meanwhile: the client's silence and its idle time begin here.
        beat_.received();
        idle_.touch();
      }
      const auto [error, n] = co_await asio::async_read_until(
        stream_, asio::dynamic_buffer(bytes, longest_line), '\n', idle_.guard(no_throw));
      if (error == asio::error::timed_out) ++counters_.idle;
      if (error == asio::error::not_found && !is_over_) {
        if (!std::exchange(is_too_long, true)) send("error: a line has at most 1000 bytes\n");
        bytes.clear();
        continue;
      }
      if (error || is_over_) break;
      std::string line = bytes.substr(0, n - 1);
      bytes.erase(0, n);
      beat_.received();
      if (std::exchange(is_too_long, false)) continue;
      if (line.ends_with('\r')) line.pop_back();  // telnet's
      if (line == "pong") continue;               // it is alive, but that is not busy
      is_busy_ = true;
      send(co_await answer_in_time(line));
    }
    finish();
  }

  asio::awaitable<void> write()
  {
    while (!is_over_ || !queue_.empty()) {
      if (queue_.empty()) {
        const auto [error] = co_await wake_writer_.async_wait(no_throw);
        if (error == asio_wheel::wheel_errc::too_many_pending) break;
        continue;
      }
      const std::string batch = std::exchange(queue_, {});
      wake_reader_.cancel();
      const auto [error, n] = co_await asio::async_write(stream_, asio::buffer(batch), no_throw);
      if (error == asio::error::timed_out) ++counters_.stalled;
      if (error) break;
      beat_.sent();
    }
    finish();
    stream_.close();  // ends the reader, too
  }

  asio::awaitable<void> keep_alive()
  {
    while (!is_over_) {
      const auto [error, event] = co_await beat_.async_next(no_throw);
      if (error) co_return;
      if (event == asio_wheel::heartbeat_event::peer_lost && !is_busy_) {
        ++counters_.lost;
        cut();
      } else {
        send("ping\n");
      }
    }
  }

  /// The deadline is on the whole of the work. It ends the request, and not the session.
  ///
  /// Not inlined, or Clang 16 would keep the address of a thread's memory, from which Asio takes
  /// this coroutine's frame, while read() waits and goes on in another thread (doc/faq.md).
  [[gnu::noinline]] asio::awaitable<std::string> answer_in_time(const std::string& line)
  {
    try {
      std::string text =
        co_await asio::co_spawn(strand(), answer(line), asio_wheel::timeout_after(request_));
      ++counters_.answered;
      co_return text;
    } catch (const system_error& e) {
      if (e.code() != asio::error::timed_out && !is_over_) throw;
    }
    co_return "too slow\n";
  }

  /// `sleep <ms>` stands for work that takes its time. What is no number, or too large, is refused.
  static asio::awaitable<std::string> answer(std::string line)
  {
    constexpr std::string_view sleep = "sleep ";
    if (line.starts_with(sleep)) {
      const char* const end = line.data() + line.size();
      unsigned ms = 0;
      const auto [stop, error] = std::from_chars(line.data() + sleep.size(), end, ms);
      if (error != std::errc() || stop != end) co_return "error: sleep takes a number of ms\n";
      asio_wheel::wheel_timer work(co_await asio::this_coro::executor, milliseconds(ms));
      co_await work.async_wait(asio::use_awaitable);
    }
    co_return line + '\n';
  }

  void send(std::string_view text)
  {
    if (is_over_) return;
    queue_ += text;
    wake_writer_.cancel();
  }

  void finish()
  {
    is_over_ = true;
    beat_.cancel();
    wake_reader_.cancel();
    wake_writer_.cancel();
  }

  static constexpr std::size_t longest_line = 1000;
  static constexpr std::size_t longest_queue = 64 * 1024;  // no more requests are read then

  asio_wheel::tcp_stream stream_;
  asio_wheel::wheel_watchdog idle_;
  asio_wheel::heartbeat beat_;
  asio_wheel::wheel_timer wake_reader_;
  asio_wheel::wheel_timer wake_writer_;
  asio_wheel::timeout_policy& request_;
  counters& counters_;
  std::string queue_;
  std::exception_ptr failure_;
  asio::cancellation_signal cut_;
  bool is_busy_ = false;  // with a request or its answer: pongs stay in the socket
  bool is_over_ = false;
};

}  // namespace lines
