// A client of a Redis server: pipelined, with a deadline for every command, connecting again with
// backoff when the server is gone.
#pragma once

#include "backoff.hpp"
#include "connection.hpp"
#include "failure.hpp"
#include "protocol.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redis {

struct options {
  address server;
  std::string password;                             // empty: none
  std::chrono::milliseconds connect_timeout{2000};  // of name, connection and greeting together
  std::chrono::milliseconds base{20};               // longest delay before the second attempt
  std::chrono::milliseconds longest{1000};          // longest delay of all
};

/// A Lua script. The server keeps it after the first call; from then on its hash is sent.
class script {
public:
  explicit script(std::string text) : text_(std::move(text)) {}

private:
  friend class client;

  std::string text_, hash_;
};

/// Commands are sent at once and answered in turn; any number may be under way.
///
/// A command connects if need be. One that finds no server fails; until the next attempt to
/// connect, after a random delay that may double each time, others fail at once with the same
/// reason. A deadline that passes without a sign of life since its command was sent closes the
/// connection, for the other end may have gone without a word.
///
/// Not thread-safe. No command may be under way when it is destroyed.
class client {
public:
  using words = std::vector<std::string>;

  client(const asio::any_io_executor& ex, const options& o);
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  ~client() { close(); }

  /// Sends a command, strings and numbers, and returns the reply.
  ///
  /// Throws failure, also if the reply has not come by the deadline or is an error; and
  /// system_error with operation_aborted if cancelled.
  template <class... Words>
  asio::awaitable<reply> command(clock::time_point deadline, const Words&... all)
  {
    // Built before the first wait: what the words refer to may be gone afterwards.
    words w;
    (w.push_back(fmt::format("{}", all)), ...);
    return send(deadline, std::move(w));
  }

  asio::awaitable<reply> send(clock::time_point deadline, words w);

  /// Calls a script with keys and arguments. Throws as command().
  asio::awaitable<reply> call(clock::time_point deadline, script& s, words keys, words arguments);

  /// Fails the commands that are under way.
  void close();

  [[nodiscard]] const address& server() const { return server_; }

  /// How many commands have been sent.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

private:
  /// Returns a connection that was greeted. Throws failure.
  asio::awaitable<std::shared_ptr<connection>> connected(clock::time_point deadline);
  asio::awaitable<void> connect(clock::time_point deadline);
  asio::awaitable<std::shared_ptr<connection>> new_connection(clock::time_point deadline);
  asio::awaitable<void> greet(connection& c, clock::time_point deadline);
  asio::awaitable<reply> send_once(clock::time_point deadline, std::string bytes);
  void move_to(const failure& e);

  const options options_;
  asio::any_io_executor executor_;
  asio_wheel::wheel_timer_service& wheel_;
  address server_;  // another than in the options if a cluster has sent us there
  std::shared_ptr<connection> connection_;
  asio_wheel::wheel_timer changed_;  // never expires: cancelled when an attempt to connect ends
  backoff delay_;
  bool is_connecting_ = false;
  int failures_ = 0;
  clock::time_point next_attempt_{};
  std::optional<failure> last_failure_;  // to connect
  std::uint64_t sent_ = 0;
};

}  // namespace redis
