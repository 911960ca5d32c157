// A chat server, and the clients that load it. Two threads run one io_context; each connection has
// a strand. A client logs in with the first line that it sends. From then on each of its lines is a
// request, which the server stores, and then sends to everyone in the client's room.
// `Limits` keeps the deadlines of one connection (chat.cpp).
#pragma once

#include <boost/asio.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace chat {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::error_code;
using strand = asio::strand<asio::io_context::executor_type>;
using socket = asio::basic_stream_socket<tcp, strand>;
using text = std::shared_ptr<const std::string>;

inline constexpr std::size_t room_size = 10, line_size = 64;
inline constexpr auto idle_limit = 60s, stall_limit = 30s, login_limit = 10s, request_limit = 5s,
                      ping_interval = 20s;

template <class Session>
class room {
public:
  void join(const std::shared_ptr<Session>& s)
  {
    const std::lock_guard hold(mutex_);
    members_.push_back(s);
  }

  void say(const text& line)
  {
    const std::lock_guard hold(mutex_);
    for (const auto& weak : members_)
      if (const auto s = weak.lock()) s->send(line);
  }

private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Session>> members_;
};

/// One connection. All but send() runs on its strand.
template <class Limits>
class session : public std::enable_shared_from_this<session<Limits>> {
public:
  session(socket s, room<session>& where, std::atomic<std::uint64_t>& sent)
    : socket_(std::move(s)),
      room_(where),
      sent_(sent),
      limits_(*this)
  {}

  void start()
  {
    limits_.start();
    const auto self = this->shared_from_this();
    limits_.login([&](auto token) { read_line(std::move(token)); },
                  [self](error_code ec, std::size_t n) {
                    if (ec) return self->close();
                    self->buffer_.erase(0, n);
                    self->room_.join(self);
                    self->limits_.logged_in();
                    self->read();
                  });
  }

  void send(text line)
  {
    asio::post(socket_.get_executor(),
               [self = this->shared_from_this(), line = std::move(line)]() mutable {
                 self->waiting_.push_back(std::move(line));
                 if (self->waiting_.size() == 1) self->write();
               });
  }

  void close()
  {
    error_code ignored;
    socket_.close(ignored);
    limits_.stop();
  }

  strand executor() { return socket_.get_executor(); }

private:
  void read()
  {
    limits_.read([&](auto token) { read_line(std::move(token)); },
                 [self = this->shared_from_this()](error_code ec, std::size_t n) {
                   if (ec) return self->close();
                   self->limits_.received();
                   self->request_ = std::make_shared<const std::string>(self->buffer_, 0, n);
                   self->buffer_.erase(0, n);
                   self->store();
                 });
  }

  /// Stands for a call of a database.
  void store()
  {
    limits_.request([&](auto token) { asio::post(socket_.get_executor(), std::move(token)); },
                    [self = this->shared_from_this()](error_code ec) {
                      if (ec) return self->close();
                      self->room_.say(self->request_);
                      self->read();
                    });
  }

  void write()
  {
    limits_.write(
      [&](auto token) {
        asio::async_write(socket_, asio::buffer(*waiting_.front()), std::move(token));
      },
      [self = this->shared_from_this()](error_code ec, std::size_t) {
        if (ec) return self->close();
        self->limits_.sent();
        self->sent_.fetch_add(1, std::memory_order_relaxed);
        self->waiting_.pop_front();
        if (!self->waiting_.empty()) self->write();
      });
  }

  template <class Token>
  void read_line(Token token)
  {
    asio::async_read_until(socket_, asio::dynamic_buffer(buffer_, 4096), '\n', std::move(token));
  }

  socket socket_;
  room<session>& room_;
  std::atomic<std::uint64_t>& sent_;
  std::string buffer_;
  text request_;
  std::deque<text> waiting_;
  Limits limits_;
};

template <class Limits>
class server {
public:
  explicit server(asio::io_context& context, std::size_t clients)
    : context_(context),
      acceptor_(context, {asio::ip::address_v4::loopback(), 0}),
      rooms_((clients + room_size - 1) / room_size)
  {
    accept();
  }

  unsigned short port() const { return acceptor_.local_endpoint().port(); }
  /// How many messages have been sent to clients.
  std::uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }

private:
  void accept()
  {
    acceptor_.async_accept(asio::make_strand(context_), [this](error_code ec, socket s) {
      if (ec) return;
      s.set_option(tcp::no_delay(true));
      auto& where = rooms_[accepted_++ % rooms_.size()];
      const auto made = std::make_shared<session<Limits>>(std::move(s), where, sent_);
      asio::dispatch(made->executor(), [made] { made->start(); });
      accept();
    });
  }

  asio::io_context& context_;
  tcp::acceptor acceptor_;
  std::deque<room<session<Limits>>> rooms_;
  std::size_t accepted_ = 0;
  std::atomic<std::uint64_t> sent_{0};
};

/// Clients that log in, read whatever comes, and speak in turns, `rate` lines a second together.
class load {
public:
  load(unsigned short port, std::size_t clients, std::size_t rate) : rate_(rate)
  {
    for (std::size_t i = 0; i < clients; ++i) {
      client& c = clients_.emplace_back(context_);
      c.socket.connect({asio::ip::address_v4::loopback(), port});
      c.socket.set_option(tcp::no_delay(true));
      say(c);  // logs in
      read(c);
    }
    speak();
  }

  void run() { context_.run(); }

private:
  struct client {
    explicit client(asio::io_context& context) : socket(context) {}

    tcp::socket socket;
    std::array<char, 16384> bytes;
  };

  void read(client& c)
  {
    c.socket.async_read_some(asio::buffer(c.bytes), [this, &c](error_code ec, std::size_t) {
      if (ec) throw boost::system::system_error(ec, "chat: the server closed a connection");
      read(c);
    });
  }

  void say(client& c) { asio::write(c.socket, asio::buffer(line_)); }

  void speak()
  {
    timer_.expires_after(5ms);
    timer_.async_wait([this](error_code) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
      for (const auto due = passed.count() * static_cast<double>(rate_); said_ < due; ++said_)
        say(clients_[static_cast<std::size_t>(said_) % clients_.size()]);
      speak();
    });
  }

  const std::size_t rate_;
  const std::string line_ = std::string(line_size - 1, 'x') + '\n';
  asio::io_context context_{1};
  asio::steady_timer timer_{context_};
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double said_ = 0;
  std::deque<client> clients_;
};

}  // namespace chat
