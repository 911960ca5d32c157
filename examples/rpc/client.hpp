// The client's end of a connection: calls that a program can await, and a heartbeat.
#pragma once

#include "../common/print_error.hpp"
#include "connection.hpp"
#include "protocol.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>
#include <boost/asio/any_completion_handler.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace rpc {

/// Counts messages that no caller sees.
struct side_notes {
  std::uint64_t heartbeats = 0;          // pings that were answered
  std::uint64_t late_answers = 0;        // to a call that was cancelled before
  std::uint64_t unexpected_answers = 0;  // to a call never made
  std::uint64_t dropped = 0;             // calls that the server did not serve any more
};

/// Not thread-safe: all of it runs on the connection's executor.
template <class Timers>
class client : public std::enable_shared_from_this<client<Timers>> {
public:
  client(tcp::socket socket, side_notes& notes)
    : connection_(std::make_shared<connection_type>(std::move(socket))),
      notes_(notes)
  {}

  bool is_open() const { return connection_->is_open(); }

  /// Waits until the server has read enough for another call, or the connection is closed.
  asio::awaitable<void> room() { return connection_->room(); }

  /// Reads what the server sends until either side closes the connection.
  asio::awaitable<void> listen()
  {
    try {
      while (co_await connection_->read_some()) {
        if (heartbeat_) heartbeat_->received();
        while (const auto next = connection_->next_frame()) handle(*next);
      }
    } catch (const protocol_error& e) {
      common::print_error("rpc_client: closing the connection to {}: {}\n", connection_->peer(),
                          e.what());
    }
    close();
  }

  /// Sends pings while nothing else is sent. Gives up a server that does not answer them.
  void keep_alive(const asio_wheel::heartbeat_options& options)
  {
    heartbeat_.emplace(connection_->executor(), options);
    asio::co_spawn(
      connection_->executor(), [self = this->shared_from_this()] { return self->beat(); }, rethrow);
  }

  /// Calls the server.
  ///
  /// Completion signature `void(error_code, std::string)`: the answer. Cancelling a call forgets
  /// it, but it was sent nevertheless.
  /// Errors: operation_aborted if cancelled; not_connected if the connection is closed before.
  /// Executor: the handler's associated executor, or the connection's.
  template <class Token>
  auto async_call(kind what, std::string payload, Token&& token)
  {
    return asio::async_initiate<Token, void(error_code, std::string)>(initiate_call{this}, token,
                                                                      what, std::move(payload));
  }

  /// Fails the calls that are under way.
  void close()
  {
    connection_->close();
    if (heartbeat_) heartbeat_->cancel();
    while (!calls_.empty()) finish(calls_.begin()->first, asio::error::not_connected);
  }

private:
  using connection_type = connection<typename Timers::timer>;

  struct initiate_call {
    using executor_type = asio::any_io_executor;

    client* self;

    const executor_type& get_executor() const { return self->connection_->executor(); }

    template <class Handler>
    void operator()(Handler&& handler, kind what, std::string payload) const
    {
      const std::uint64_t id = ++self->last_id_;
      auto slot = asio::get_associated_cancellation_slot(handler);
      if (slot.is_connected()) slot.assign(forget{self->weak_from_this(), id});
      // Hides the slot, in which an any_completion_handler would put a handler of its own.
      self->calls_.try_emplace(id, asio::bind_cancellation_slot(asio::cancellation_slot(),
                                                                std::forward<Handler>(handler)));
      self->send(what, id, payload);
      if (!self->is_open()) self->finish(id, asio::error::not_connected);
    }
  };

  struct forget {
    std::weak_ptr<client> owner;  // the slot may outlive the call
    std::uint64_t id;

    void operator()(asio::cancellation_type) const
    {
      if (const auto self = owner.lock()) self->finish(id, asio::error::operation_aborted);
    }
  };

  void send(kind what, std::uint64_t id, std::string_view payload = {})
  {
    connection_->send(what, id, payload);
    if (heartbeat_) heartbeat_->sent();
  }

  /// False if the call is over already.
  bool finish(std::uint64_t id, error_code ec, std::string answer = {})
  {
    auto call = calls_.extract(id);
    if (!call) return false;
    asio::post(connection_->executor(),
               asio::append(std::move(call.mapped()), ec, std::move(answer)));
    return true;
  }

  void handle(const frame& f)
  {
    switch (f.what) {
      case kind::answer:
        if (finish(f.id, {}, std::string(f.payload))) return;
        ++(f.id == 0 || f.id > last_id_ ? notes_.unexpected_answers : notes_.late_answers);
        return;
      case kind::dropped:
        ++notes_.dropped;  // its deadline ends it here
        return;
      case kind::pong: ++notes_.heartbeats; return;
      default:
        throw protocol_error(
          fmt::format("a server does not send frames of kind {}", static_cast<unsigned>(f.what)));
    }
  }

  asio::awaitable<void> beat()
  {
    while (is_open()) {
      error_code cancelled;
      const auto event =
        co_await heartbeat_->async_next(asio::redirect_error(asio::use_awaitable, cancelled));
      if (cancelled) co_return;
      if (event == asio_wheel::heartbeat_event::peer_lost) co_return close();
      send(kind::ping, 0);
    }
  }

  std::shared_ptr<connection_type> connection_;
  side_notes& notes_;
  std::optional<typename Timers::heartbeat> heartbeat_;
  std::unordered_map<std::uint64_t, asio::any_completion_handler<void(error_code, std::string)>>
    calls_;
  std::uint64_t last_id_ = 0;
};

}  // namespace rpc
