// The server: accepts sessions until it is drained. What belongs to it is on a strand of its own.
#pragma once

#include "../common/listen.hpp"
#include "../common/print_error.hpp"
#include "session.hpp"
#include "settings.hpp"

#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <exception>
#include <memory>
#include <set>
#include <utility>

namespace lines {

class server {
public:
  server(asio::io_context& context, const settings& s)
    : settings_(s),
      strand_(asio::make_strand(context)),
      acceptor_(common::listen(strand_, s.address, s.port)),
      grace_(strand_),
      request_("request", milliseconds(s.request_ms))
  {}

  [[nodiscard]] tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }
  [[nodiscard]] const counters& counted() const { return counters_; }
  [[nodiscard]] const asio_wheel::timeout_policy& request() const { return request_; }

  void start() { asio::co_spawn(strand_, accept(), rethrow); }

  /// Accepts no more, gives the sessions some time to end, and cuts those that are left. The
  /// context has nothing to do then. From any thread.
  void drain() { asio::co_spawn(strand_, drain_sessions(), rethrow); }

private:
  using strand_type = asio::strand<asio::io_context::executor_type>;

  static void rethrow(const std::exception_ptr& error)
  {
    if (error) std::rethrow_exception(error);
  }

  asio::awaitable<void> accept()
  {
    for (;;) {
      // The socket is on a new strand, and so is all that takes its executor.
      auto [error, socket] =
        co_await acceptor_.async_accept(asio::make_strand(strand_.get_inner_executor()), no_throw);
      if (!acceptor_.is_open()) co_return;
      if (!error) {
        try {
          take_in(std::move(socket));
        } catch (const std::exception& e) {
          report(e);
        }
      } else if (error != asio::error::connection_aborted) {
        // Mostly there are too many open files. New clients stay in the backlog meanwhile.
        asio_wheel::wheel_timer pause(strand_, milliseconds(200));
        co_await pause.async_wait(no_throw);
      }
    }
  }

  void take_in(tcp::socket socket)
  {
    const auto each = std::make_shared<session>(std::move(socket), settings_, counters_, request_);
    sessions_.insert(each);
    ++counters_.sessions;
    auto ended = [this, each](const std::exception_ptr& error) {
      sessions_.erase(each);
      if (sessions_.empty()) grace_.cancel();
      // Whatever goes wrong, most likely for want of memory, ends this session and no other.
      try {
        rethrow(error);
      } catch (const std::exception& e) {
        report(e);
      }
    };
    asio::co_spawn(each->strand(), each->run(),
                   asio::bind_cancellation_slot(each->when_cut(),
                                                asio::bind_executor(strand_, std::move(ended))));
  }

  static void report(const std::exception& e)
  {
    common::print_error("line_server: a session was lost: {}\n", e.what());
  }

  /// It counts sessions. wheel.pending() would count their heartbeats and watchdogs, too.
  asio::awaitable<void> drain_sessions()
  {
    acceptor_.close();
    for (const auto& each : sessions_) asio::post(each->strand(), [each] { each->drain(); });
    grace_.expires_after(milliseconds(settings_.grace_ms));
    if (!sessions_.empty()) co_await grace_.async_wait(no_throw);
    counters_.cut += sessions_.size();
    for (const auto& each : sessions_) asio::post(each->strand(), [each] { each->cut(); });
  }

  const settings settings_;
  strand_type strand_;
  tcp::acceptor acceptor_;
  asio_wheel::wheel_timer grace_;
  asio_wheel::timeout_policy request_;
  counters counters_;
  std::set<std::shared_ptr<session>> sessions_;
};

}  // namespace lines
