// The server: connections, their phases and deadlines, and what happens when there are too many.
//
// The deadline of a phase, say of reading a header, is the expiry of the connection's stream. It
// bounds each read and write, and so Beast's operations as a whole, however many reads they take.
// Each phase has a timeout_policy, whose figures say how much of its time clients need.
// Between two requests a watchdog takes its place, whose timeout depends on how many places are
// taken.
//
// One thread runs all of it, so that a connection needs no strand.
#pragma once

#include "../common/listen.hpp"
#include "../common/print_error.hpp"
#include "settings.hpp"
#include "site.hpp"

#include <asio_wheel.hpp>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/intrusive/list.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace web {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

/// `Stream` has the deadlines: asio_wheel::tcp_stream, or beast::tcp_stream to compare.
template <class Stream>
class server {
public:
  using socket_type = typename Stream::socket_type;

  server(asio::io_context& context, const settings& s)
    : settings_(s),
      context_(context),
      wheel_(asio_wheel::use_wheel(context)),
      acceptor_(context),
      policies_(s.timeouts),
      site_(
        s, counters_, policies_, [this] { return sessions_.size(); }, wheel_)
  {}
  ~server() { sessions_.clear(); }  // the context may have some left

  tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }
  const counters& counted() const { return counters_; }

  /// Listens, and accepts connections until stop().
  void start()
  {
    acceptor_ = common::listen(context_, settings_.address, settings_.port);
    acceptor_.non_blocking(true);
    asio::co_spawn(context_, accept(), [](std::exception_ptr thrown) {
      if (thrown) std::rethrow_exception(thrown);
    });
  }

  /// Takes in a connection of another origin. When all places are taken, the one gives way that has
  /// been in its phase for longest. Whoever gets on with his requests is never that one, however
  /// many others do nothing.
  void take_in(socket_type socket)
  {
    ++counters_.accepted;
    while (sessions_.size() >= static_cast<std::size_t>(settings_.max_connections)) {
      ++counters_.evicted;
      drop_front();
    }
    std::make_shared<session>(std::move(socket), *this)->start();
  }

  std::size_t connections() const { return sessions_.size(); }

  /// Nothing is left to do for the context then.
  void stop()
  {
    error_code ignored;
    acceptor_.close(ignored);
    while (!sessions_.empty()) drop_front();
  }

private:
  class session;

  asio::awaitable<void> accept()
  {
    while (true) {
      error_code ec;
      co_await acceptor_.async_wait(tcp::acceptor::wait_read,
                                    asio::redirect_error(asio::use_awaitable, ec));
      if (!acceptor_.is_open()) co_return;
      // Of a flood, more than one connection in each round of the loop, or the queue in front of
      // the acceptor would only grow; but not so many that those inside have to give way before
      // they have had a turn.
      for (int left = 1 + settings_.max_connections / 8; left != 0 && !ec; --left) {
        tcp::socket socket(context_);
        acceptor_.accept(socket, ec);
        if (!ec) take_in(std::move(socket));
      }
      if (!ec || ec == asio::error::would_block || ec == asio::error::connection_aborted) continue;
      // Most often there are too many open files. The clients that knock stay in the backlog.
      common::print_error("http_server: cannot accept: {}; trying again\n", ec.message());
      co_await wheel_.async_wait(milliseconds(200));
    }
  }

  void drop_front()
  {
    session& s = sessions_.front();
    leave(s);
    s.reset();
  }

  void enter(session& s)
  {
    sessions_.push_back(s);
    tell_pressure();
  }

  void leave(session& s)
  {
    sessions_.erase(sessions_.iterator_to(s));
    tell_pressure();
  }

  /// The fewer places are left, the less time has a client that asks for nothing.
  void tell_pressure()
  {
    wheel_.set_pressure(static_cast<double>(sessions_.size()) / settings_.max_connections);
  }

  const settings settings_;
  asio::io_context& context_;
  asio_wheel::wheel_timer_service& wheel_;
  tcp::acceptor acceptor_;
  counters counters_;
  policies policies_;
  boost::intrusive::list<session> sessions_;  // the longest in its phase first
  site site_;
};

/// One connection.
template <class Stream>
class server<Stream>::session : public std::enable_shared_from_this<session>,
                                public boost::intrusive::list_base_hook<> {
public:
  session(socket_type socket, server& s)
    : server_(s),
      stream_(std::move(socket)),
      idle_(stream_.get_executor(), s.settings_.idle_window()),
      // The header, and what may have come with it.
      buffer_(static_cast<std::size_t>(s.settings_.max_header) + 1024)
  {
    error_code ignored;
    if constexpr (is_tcp) stream_.socket().set_option(tcp::no_delay(true), ignored);
    s.enter(*this);
  }
  ~session()
  {
    if (this->is_linked()) server_.leave(*this);
  }

  void start()
  {
    asio::co_spawn(stream_.get_executor(), run(),
                   [self = this->shared_from_this()](std::exception_ptr thrown) {
                     // Whatever goes wrong here, most likely for want of memory, ends this
                     // connection and no other.
                     if (thrown) self->report(thrown);
                   });
  }

  /// Whatever the kernel has of the connection goes at once, with what was not sent yet.
  void reset()
  {
    error_code ignored;
    if constexpr (is_tcp)
      stream_.socket().set_option(tcp::socket::linger(true, 0), ignored);
    else
      stream_.socket().reset();
    stream_.socket().close(ignored);
  }

private:
  /// Otherwise it is a simulated stream, in a test.
  static constexpr bool is_tcp = std::is_same_v<socket_type, tcp::socket>;

  using parser = http::request_parser<http::string_body>;

  void enter(phase p)
  {
    if (!this->is_linked()) return;  // told to go
    phase_ = p;
    if (p == phase::idle) {
      stream_.expires_never();
      idle_.touch();
    } else if constexpr (requires { stream_.expires_after(server_.policies_[p]); }) {
      stream_.expires_after(server_.policies_[p]);
    } else {
      stream_.expires_after(server_.policies_[p].limit());  // beast::tcp_stream
    }
    auto& all = server_.sessions_;
    all.splice(all.end(), all, all.iterator_to(*this));
  }

  asio::awaitable<void> run()
  {
    error_code ec;
    enter(phase::header);
    for (bool last = false; !last && !ec;) {
      parser request;
      request.header_limit(static_cast<std::uint32_t>(server_.settings_.max_header));
      request.body_limit(static_cast<std::uint64_t>(server_.settings_.max_body));
      ec = co_await read(request);
      const auto refusal = status_of(ec);
      if (ec && !refusal) break;

      ++(refusal ? server_.counters_.refused : server_.counters_.requests);
      auto answer = refusal ? refuse(*refusal) : server_.site_.answer(request.release());
      last = !answer.keep_alive();
      enter(phase::write);
      co_await beast::async_write(stream_, std::move(answer),
                                  asio::redirect_error(asio::use_awaitable, ec));
      if (refusal && !ec) co_await linger();
      if (!last && !ec) enter(buffer_.size() == 0 ? phase::idle : phase::header);
    }
    if (ec != asio::error::timed_out && ec != beast::error::timeout) co_return;
    ++server_.counters_.timed_out[phase_];
    // An idle client has done nothing wrong, and sees an orderly end.
    if (phase_ != phase::idle) reset();
  }

  asio::awaitable<error_code> read(parser& request)
  {
    error_code ec;
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    if (phase_ == phase::idle) {
      buffer_.commit(co_await stream_.async_read_some(buffer_.prepare(1024), idle_.guard(token)));
      if (ec) co_return ec;
      enter(phase::header);
    }
    co_await http::async_read_header(stream_, buffer_, request, token);
    if (ec || request.is_done()) co_return ec;
    enter(phase::body);
    if (beast::iequals(request.get()[http::field::expect], "100-continue")) {
      http::response<http::empty_body> go_on(http::status::continue_, 11);
      co_await http::async_write(stream_, go_on, token);
      if (ec) co_return ec;
    }
    co_await http::async_read(stream_, buffer_, request, token);
    co_return ec;
  }

  /// After an answer that came before the end of its request: to close now would make the kernel
  /// send a reset, which may overtake the answer.
  asio::awaitable<void> linger()
  {
    error_code ec;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ec);
    stream_.expires_after(std::chrono::seconds(1));
    std::array<char, 4096> rest;
    while (!ec)
      co_await stream_.async_read_some(asio::buffer(rest),
                                       asio::redirect_error(asio::use_awaitable, ec));
  }

  void report(std::exception_ptr thrown)
  {
    reset();
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      common::print_error("http_server: a connection was lost: {}\n", e.what());
    }
  }

  server& server_;
  Stream stream_;
  asio_wheel::wheel_watchdog idle_;
  beast::flat_buffer buffer_;
  phase phase_ = phase::header;
};

}  // namespace web
