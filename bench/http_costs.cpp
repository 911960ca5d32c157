// What deadlines cost an HTTP request of a connection that is kept alive. The server is this
// process, the client a real one: wrk, which asks for the same short page again and again, on --n
// connections. Contenders are the servers' streams:
//   raw       asio::ip::tcp::socket: no deadlines
//   beast     boost::beast::tcp_stream, without an expiry
//   beast_30  the same with expires_after(30s) before each read of a request and each write of an
//             answer
//   wheel     asio_wheel::tcp_stream, without an expiry
//   wheel_30  the same with expires_after(30s) before each of them
//   lazy_30   a socket, by an expert's hand: each of them stores its deadline, and a steady_timer
//             of the connection, set again when it fires, looks at it
//   slot_30   the floor: by hand, where each operation can be cancelled by itself, by a signal that
//             nobody emits
// No deadline ever comes. What a stream exceeds `raw` by is the cost of its deadlines.
//
// cpu_ns is the server's own CPU time, user_ns and system_ns are its parts, wall_ns the time, per
// request; the first 20 requests of each connection are not counted. callgrind counts instructions
// in user mode, strace -c system calls: the difference of two runs, divided by the requests between
// them.
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null
//     http_costs --workload keep_alive --contender raw --n 1 --steps 2000
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <asio_wheel.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "command_line.hpp"
#include "measure.hpp"

namespace {

using namespace bench;
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

/// wrk, on `connections` to `port` of this machine, until this object or the process goes.
class load {
public:
  load(std::size_t connections, unsigned port) : process_(::fork())
  {
    if (process_ < 0) throw std::runtime_error("cannot start a process");
    if (process_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto many = fmt::format("-c{}", connections);
    const auto url = fmt::format("http://127.0.0.1:{}/", port);
    ::close(STDOUT_FILENO);
    ::execlp("wrk", "wrk", "-t1", many.c_str(), "-d1h", "--timeout", "20s", url.c_str(), nullptr);
    ::_exit(127);
  }
  ~load()
  {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  load(const load&) = delete;
  load& operator=(const load&) = delete;

private:
  const pid_t process_;
};

/// Lets the stream as it is.
struct no_expiry {
  template <class Stream>
  void operator()(Stream&) const
  {}
};

struct expiry_30s {
  template <class Stream>
  void operator()(Stream& stream) const
  {
    stream.expires_after(std::chrono::seconds{30});
  }
};

/// By an expert's hand.
template <bool HasSlots>
class lazy_stream {
public:
  using executor_type = tcp::socket::executor_type;

  explicit lazy_stream(tcp::socket socket)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor())
  {
    look();
  }
  executor_type get_executor() { return socket_.get_executor(); }
  void expires_after(duration delay) { deadline_ = steady_clock::now() + delay; }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token)
  {
    return socket_.async_read_some(buffers, with_slot(reads_, std::forward<Token>(token)));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token)
  {
    return socket_.async_write_some(buffers, with_slot(writes_, std::forward<Token>(token)));
  }

private:
  template <class Token>
  static auto with_slot(asio::cancellation_signal& s, Token&& token)
  {
    if constexpr (HasSlots)
      return asio::bind_cancellation_slot(s.slot(), std::forward<Token>(token));
    else
      return std::decay_t<Token>(std::forward<Token>(token));
  }

  void look()
  {
    timer_.expires_at(std::min(deadline_, steady_clock::now() + seconds{30}));
    timer_.async_wait([this](error_code ec) {
      if (ec) return;  // the connection has gone
      if (steady_clock::now() >= deadline_)
        socket_.close(ec);
      else
        look();
    });
  }

  tcp::socket socket_;
  asio::steady_timer timer_;
  time_point deadline_ = time_point::max();
  asio::cancellation_signal reads_, writes_;
};

/// Counts requests, and reads the clocks at the first and at the last that are measured.
class requests {
public:
  requests(asio::io_context& context, const options& o)
    : context_(context),
      first_(20 * o.n),
      last_(first_ + o.steps)
  {}

  void count()
  {
    ++done_;
    if (done_ == first_) {
      cpu_ = thread_cpu();
      spent_ = spent::so_far();
      begin_ = steady_clock::now();
    } else if (done_ == last_) {
      cpu_ = thread_cpu() - cpu_;
      spent_ = spent::so_far() - spent_;
      took_ = steady_clock::now() - begin_;
      context_.stop();
    }
  }

  metrics result() const
  {
    const auto n = last_ - first_;
    return {{"cpu_ns", ns_per(cpu_, n)},
            {"user_ns", ns_per(spent_.user, n)},
            {"system_ns", ns_per(spent_.system, n)},
            {"wall_ns", ns_per(took_, n)}};
  }

private:
  asio::io_context& context_;
  const std::uint64_t first_, last_;
  std::uint64_t done_ = 0;
  nanoseconds cpu_{};
  spent spent_;
  time_point begin_{};
  duration took_{};
};

/// One connection. Deletes itself when the client goes.
template <class Stream, class Expiry>
class connection {
public:
  connection(tcp::socket socket, requests& counted) : stream_(std::move(socket)), counted_(counted)
  {}

  void read()
  {
    request_ = {};
    Expiry()(stream_);
    http::async_read(stream_, buffer_, request_,
                     [this](error_code ec, std::size_t) { ec ? delete this : write(); });
  }

private:
  void write()
  {
    answer_ = {http::status::ok, request_.version()};
    answer_.set(http::field::content_type, "text/plain");
    answer_.body() = "A page of some sixty characters, as short as a health check's.\n";
    answer_.keep_alive(request_.keep_alive());
    answer_.prepare_payload();
    Expiry()(stream_);
    http::async_write(stream_, answer_, [this](error_code ec, std::size_t) {
      if (ec) {
        delete this;
        return;
      }
      counted_.count();
      read();
    });
  }

  Stream stream_;
  requests& counted_;
  beast::flat_buffer buffer_;
  http::request<http::empty_body> request_;
  http::response<http::string_body> answer_;
};

template <class Stream, class Expiry>
class server {
public:
  explicit server(const options& o)
    : connections_(o.n),
      acceptor_(context_, {asio::ip::address_v4::loopback(), 0}),
      requests_(context_, o)
  {
    if constexpr (std::is_same_v<Stream, asio_wheel::tcp_stream>) install_wheel(context_, o);
  }

  metrics run()
  {
    accept();
    asio::signal_set signals(context_, SIGCHLD);
    signals.async_wait([](error_code, int) {
      throw std::runtime_error("wrk ended too early: is it installed (Debian: wrk)?");
    });
    const load wrk(connections_, acceptor_.local_endpoint().port());
    context_.run();
    return requests_.result();
  }

private:
  void accept()
  {
    acceptor_.async_accept([this](error_code ec, tcp::socket socket) {
      if (ec) throw boost::system::system_error(ec);
      socket.set_option(tcp::no_delay(true));
      (new connection<Stream, Expiry>(std::move(socket), requests_))->read();
      accept();
    });
  }

  const std::size_t connections_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  requests requests_;
};

template <class Stream, class Expiry>
entry contender(std::string name)
{
  return {std::move(name), {{"keep_alive", run_work<server<Stream, Expiry>>}}};
}

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(
    argc, argv,
    {contender<tcp::socket, no_expiry>("raw"), contender<beast::tcp_stream, no_expiry>("beast"),
     contender<beast::tcp_stream, expiry_30s>("beast_30"),
     contender<lazy_stream<false>, expiry_30s>("lazy_30"),
     contender<lazy_stream<true>, expiry_30s>("slot_30"),
     contender<asio_wheel::tcp_stream, no_expiry>("wheel"),
     contender<asio_wheel::tcp_stream, expiry_30s>("wheel_30")});
}
