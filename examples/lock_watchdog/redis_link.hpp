// A connection to a Redis server that speaks as much of its protocol as these programs need.
//
// A command goes out as an array of strings, "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"; the reply is a
// line: an integer, ":1\r\n", or an error, "-ERR ...\r\n".
#pragma once

#include "../rpc/resolve.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace redis {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::system_error;
using clock = asio_wheel::wheel_timer_service::clock_type;
using rpc::endpoints;

/// A command that failed; whether it took effect is unknown unless the server says so.
struct command_failed : std::runtime_error {
  using runtime_error::runtime_error;
};

/// Not thread-safe, and good for one command at a time.
class link {
public:
  link(const asio::any_io_executor& ex, endpoints server) : server_(std::move(server)), socket_(ex)
  {}

  /// Sends a command, strings and numbers, whose reply is an integer, and returns that. Connects if
  /// need be: at first, and after a command that was not carried through.
  ///
  /// Throws command_failed, also if the reply has not come by the deadline; and system_error with
  /// operation_aborted if cancelled.
  template <class... Words>
  asio::awaitable<std::int64_t> command(clock::time_point deadline, const Words&... words)
  {
    // Built before the first wait: what the words refer to may be gone afterwards.
    std::string request = fmt::format("*{}\r\n", sizeof...(words));
    (append(request, fmt::format("{}", words)), ...);
    return talk(deadline, std::move(request));
  }

private:
  static void append(std::string& request, std::string_view word)
  {
    fmt::format_to(std::back_inserter(request), "${}\r\n{}\r\n", word.size(), word);
  }

  asio::awaitable<std::int64_t> talk(clock::time_point deadline, std::string request)
  {
    const auto by_then = asio_wheel::timeout_at(deadline, asio::use_awaitable);
    try {
      if (!in_step_) {
        in_.clear();
        co_await asio::async_connect(socket_, server_, by_then);
        socket_.set_option(tcp::no_delay(true));
      }
      in_step_ = false;
      co_await asio::async_write(socket_, asio::buffer(request), by_then);
      const std::size_t n =
        co_await asio::async_read_until(socket_, asio::dynamic_buffer(in_), "\r\n", by_then);
      const std::string reply = in_.substr(0, n - 2);
      in_.erase(0, n);
      in_step_ = true;
      co_return integer_in(reply);
    } catch (const system_error& e) {
      if (e.code() == asio::error::operation_aborted) throw;
      throw command_failed(e.code().message());
    }
  }

  static std::int64_t integer_in(std::string_view reply)
  {
    if (reply.starts_with('-')) throw command_failed(std::string(reply.substr(1)));
    std::int64_t value = 0;
    const char* const end = reply.data() + reply.size();
    if (!reply.starts_with(':') ||
        std::from_chars(reply.data() + 1, end, value) != std::from_chars_result{end, std::errc()})
      throw command_failed(fmt::format("'{}' is no integer", reply));
    return value;
  }

  const endpoints server_;
  tcp::socket socket_;
  std::string in_;
  bool in_step_ = false;  // connected, and each command has had its reply
};

}  // namespace redis
