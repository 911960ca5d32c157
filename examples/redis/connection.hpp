// A socket on which commands leave one after the other, and replies come back in the same order.
#pragma once

#include "protocol.hpp"

#include <boost/asio.hpp>
#include <boost/asio/any_completion_handler.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace redis {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using clock = std::chrono::steady_clock;

/// Not thread-safe: all of it runs on the socket's executor.
class connection : public std::enable_shared_from_this<connection> {
public:
  connection(tcp::socket socket, const address& server);

  /// Takes in replies, until the connection is closed by whichever side.
  void start();

  [[nodiscard]] const address& server() const { return *server_; }

  [[nodiscard]] bool is_open() const { return socket_.is_open(); }

  /// Why it is not open.
  [[nodiscard]] const std::string& why_closed() const { return why_closed_; }

  /// When the server said something for the last time.
  [[nodiscard]] clock::time_point last_heard() const { return last_heard_; }

  /// Fails the commands that are under way.
  void close(std::string why);

  /// Sends a command, as format_command makes it, behind those that are under way.
  ///
  /// Completion signature `void(error_code, reply)`. The reply to a command that is cancelled, in
  /// whichever way, is thrown away when it comes.
  /// Errors: operation_aborted if cancelled; not_connected if the connection is or gets closed.
  /// Executor: the handler's associated executor, or the socket's.
  template <class Token>
  auto async_send(std::string command, Token&& token)
  {
    return asio::async_initiate<Token, void(error_code, reply)>(initiate_send{this}, token,
                                                                std::move(command));
  }

private:
  using handler_type = asio::any_completion_handler<void(error_code, reply)>;

  struct initiate_send {
    using executor_type = asio::any_io_executor;

    connection* self;

    const executor_type& get_executor() const { return self->executor_; }

    template <class Handler>
    void operator()(Handler&& handler, std::string command) const
    {
      auto slot = asio::get_associated_cancellation_slot(handler);
      if (slot.is_connected())
        slot.assign(forget{self->weak_from_this(), self->first_ + self->unanswered_.size()});
      // The slot is taken: an any_completion_handler would put something of its own there.
      self->send(std::move(command), asio::bind_cancellation_slot(asio::cancellation_slot(),
                                                                  std::forward<Handler>(handler)));
    }
  };

  struct forget {
    std::weak_ptr<connection> owner;  // the slot may outlive the command
    std::uint64_t number;

    void operator()(asio::cancellation_type) const
    {
      if (const auto self = owner.lock()) self->finish(number, asio::error::operation_aborted, {});
    }
  };

  void send(std::string command, handler_type handler);
  void write();
  asio::awaitable<void> listen();
  void finish(std::uint64_t number, error_code ec, reply r);

  tcp::socket socket_;
  asio::any_io_executor executor_;
  const std::shared_ptr<const address> server_;  // replies know it, too
  reader reader_;
  std::deque<handler_type> unanswered_;  // an empty one: cancelled
  std::uint64_t first_ = 0;              // the number of the first of them
  std::string sending_;                  // empty: no write is under way
  std::string queued_;
  std::string why_closed_ = "not connected";
  clock::time_point last_heard_{};
};

}  // namespace redis
