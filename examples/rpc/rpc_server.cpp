// An RPC server that echoes. All of its timeouts are on one timing wheel, or, for comparison, on
// steady_timers.
//
// A connection has a watchdog, which every frame touches: a clock read and a store. A call that
// asks to be stalled is a task in the connection's scheduler. A call brings along what is left of
// its caller's deadline: it is worked on for no longer, and dropped unserved when that has run out.
#include "../common/command_line.hpp"
#include "../common/listening.hpp"
#include "../common/print_error.hpp"
#include "../common/process.hpp"
#include "connection.hpp"
#include "protocol.hpp"
#include "timers.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace rpc {
namespace {

using namespace std::chrono_literals;
namespace po = common::po;
using common::ranged;

struct settings {
  std::string address = "127.0.0.1";
  int port = 7400;
  int idle_timeout = 3000;  // ms
  int heartbeat = 1000;     // ms
  int threads = 1;
  std::string timer = "wheel";
};

template <class Timers>
class session;

/// What the sessions share.
template <class Timers>
class server {
public:
  using session_type = session<Timers>;

  server(asio::io_context& context, const settings& s);

  /// Accepts connections until stop(), which any thread may call. run() returns when the last
  /// session is closed, because then no wait is left on the wheel.
  void start();
  void stop();

  tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }
  server_figures figures() const;
  /// From any thread.
  void count(std::uint64_t server_figures::*what) { ++std::atomic_ref(counted_.*what); }
  void leave(const std::shared_ptr<session_type>& s);

  const std::chrono::milliseconds idle_timeout;

private:
  asio::awaitable<void> accept();

  const std::chrono::milliseconds heartbeat_;
  asio::io_context& context_;
  tcp::acceptor acceptor_;
  std::unordered_set<std::shared_ptr<session_type>> sessions_;  // on the acceptor's strand
  mutable server_figures counted_;                              // what count() counts
};

/// One client: a coroutine that reads, one that watches for silence, and the stalled calls.
template <class Timers>
class session : public std::enable_shared_from_this<session<Timers>> {
public:
  session(tcp::socket socket, server<Timers>& s)
    : server_(s),
      connection_(std::make_shared<connection_type>(std::move(socket))),
      idle_(connection_->executor(), s.idle_timeout),
      stalled_calls_(connection_->executor())
  {}

  void start()
  {
    const auto executor = connection_->executor();
    asio::co_spawn(
      executor, [self = this->shared_from_this()] { return self->serve(); }, rethrow);
    asio::co_spawn(
      executor, [self = this->shared_from_this()] { return self->watch(); }, rethrow);
  }

  /// From any thread.
  void stop()
  {
    asio::post(connection_->executor(), [self = this->shared_from_this()] { self->close(); });
  }

private:
  using connection_type = connection<typename Timers::timer>;

  /// While more calls than this are in work, the client's next call stays in the socket.
  static constexpr std::size_t most_calls = 1024;

  asio::awaitable<void> serve()
  {
    try {
      while (co_await connection_->read_some()) {
        idle_.touch();
        const auto arrived = clock::now();
        while (const auto next = connection_->next_frame()) {
          handle(*next, arrived);
          co_await connection_->room();
          // Each answer to one of them makes room.
          while (stalled_calls_.size() >= most_calls && connection_->is_open())
            co_await connection_->sent_some();
          if (!connection_->is_open()) break;
        }
      }
    } catch (const protocol_error& e) {
      common::print_error("rpc_server: closing {}: {}\n", connection_->peer(), e.what());
    }
    close();
  }

  void handle(const frame& f, clock::time_point arrived)
  {
    switch (f.what) {
      case kind::call: return handle_call(f.id, parse_call(f.payload), arrived);
      case kind::ping:
        server_.count(&server_figures::heartbeats);
        return connection_->send(kind::pong, f.id);
      case kind::stats_query:
        return connection_->send(kind::answer, f.id, to_payload(server_.figures()));
      default:
        throw protocol_error(
          fmt::format("a client does not send frames of kind {}", static_cast<unsigned>(f.what)));
    }
  }

  void handle_call(std::uint64_t id, const call_request& call, clock::time_point arrived)
  {
    server_.count(&server_figures::calls);
    // Calls that arrived together may have waited here for others to be served.
    const auto left = arrived + call.budget - clock::now();
    if (call.stall == 0ms) return left > 0ms ? answer(id, call.text) : drop(id);

    // Its end is the scheduler's, too: no call outlives the session.
    const bool in_time = call.stall < left;
    auto end = [weak = this->weak_from_this(), id, in_time, text = std::string(call.text)] {
      const auto self = weak.lock();
      if (!self) return;
      self->idle_.touch();
      in_time ? self->answer(id, text) : self->drop(id);
    };
    const clock::duration bounded = std::min<clock::duration>(call.stall, left);
    if (!stalled_calls_.run_after(id, bounded, std::move(end)))
      throw protocol_error(fmt::format("call {} is under way already", id));
    server_.count(&server_figures::stalled);
  }

  void answer(std::uint64_t id, std::string_view text)
  {
    server_.count(&server_figures::answers);
    connection_->send(kind::answer, id, text);
  }

  /// Nobody waits for the answer any more.
  void drop(std::uint64_t id)
  {
    server_.count(&server_figures::dropped);
    connection_->send(kind::dropped, id);
  }

  /// Closes the connection when nothing came for the idle timeout.
  asio::awaitable<void> watch()
  {
    error_code cancelled;
    while (true) {
      co_await idle_.async_expired(asio::redirect_error(asio::use_awaitable, cancelled));
      if (cancelled) co_return;
      if (stalled_calls_.size() == 0) break;
      idle_.touch();  // a client that waits for an answer is not idle
    }
    server_.count(&server_figures::idle_drops);
    close();
  }

  /// Ends everything that waits for this session. The last of these destroys the session.
  void close()
  {
    connection_->close();
    idle_.cancel();
    server_.leave(this->shared_from_this());
  }

  server<Timers>& server_;
  std::shared_ptr<connection_type> connection_;
  typename Timers::watchdog idle_;
  typename Timers::template scheduler<std::uint64_t> stalled_calls_;  // their answers, by id
};

template <class Timers>
server<Timers>::server(asio::io_context& context, const settings& s)
  : idle_timeout(s.idle_timeout),
    heartbeat_(s.heartbeat),
    context_(context),
    acceptor_(asio::make_strand(context))
{
  const tcp::endpoint endpoint(asio::ip::make_address(s.address),
                               static_cast<std::uint16_t>(s.port));
  try {
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen();
  } catch (const boost::system::system_error& e) {
    throw std::runtime_error(
      fmt::format("cannot listen on {}: {}", to_string(endpoint), e.code().message()));
  }
}

template <class Timers>
void server<Timers>::start()
{
  asio::co_spawn(acceptor_.get_executor(), accept(), rethrow);
}

template <class Timers>
asio::awaitable<void> server<Timers>::accept()
{
  typename Timers::timer pause(acceptor_.get_executor());
  while (true) {
    // A session's strand keeps its coroutines from running at the same time.
    tcp::socket socket(asio::make_strand(context_));
    error_code ec;
    co_await acceptor_.async_accept(socket, asio::redirect_error(asio::use_awaitable, ec));
    if (!acceptor_.is_open()) co_return;
    if (!ec) {
      count(&server_figures::connections);
      (*sessions_.insert(std::make_shared<session_type>(std::move(socket), *this)).first)->start();
    } else if (ec != asio::error::connection_aborted) {
      // Mostly there are too many open files. New clients stay in the backlog meanwhile.
      common::print_error("rpc_server: cannot accept: {}; trying again\n", ec.message());
      pause.expires_after(200ms);
      co_await pause.async_wait(asio::use_awaitable);
    }
  }
}

template <class Timers>
void server<Timers>::leave(const std::shared_ptr<session_type>& s)
{
  asio::post(acceptor_.get_executor(), [this, s] { sessions_.erase(s); });
}

template <class Timers>
void server<Timers>::stop()
{
  asio::post(acceptor_.get_executor(), [this] {
    error_code ignored;
    acceptor_.close(ignored);
    for (const auto& s : sessions_) s->stop();
  });
}

template <class Timers>
server_figures server<Timers>::figures() const
{
  server_figures f;
  for (const auto member : server_figures::all) f.*member = std::atomic_ref(counted_.*member);
  const common::usage used = common::usage_so_far();
  f.wakeups = used.wakeups;
  f.cpu_us = used.cpu_us;
  f.idle_timeout_ms = static_cast<std::uint64_t>(idle_timeout.count());
  f.heartbeat_ms = static_cast<std::uint64_t>(heartbeat_.count());
  return f;
}

constexpr std::string_view intro =
  R"(Usage: rpc_server [option...]

Answers the calls of rpc_client, and drops the connections that neither call nor
ping. Once it listens it prints a line that ends with ADDRESS:PORT. Ctrl-C
closes every connection and ends the program.
)";

/// Reads the options. False if --help was asked for.
bool read_settings(int argc, char** argv, settings& s)
{
  po::options_description options("Options");
  auto add = options.add_options();
  common::add_listen_options(options, s.address, s.port);
  add("idle-timeout", ranged(s.idle_timeout, "idle-timeout", 10, 3'600'000, "ms"),
      "close a connection from which nothing came for that long");
  add("heartbeat", ranged(s.heartbeat, "heartbeat", 1, 3'600'000, "ms"),
      "tell clients to ping when the connection was idle for that long");
  add("threads", ranged(s.threads, "threads", 1, 256, "n"), "threads that run the sessions");
  add("timer", po::value(&s.timer)->default_value(s.timer)->value_name("wheel|steady"),
      "what all timeouts are on: the timing wheel, or Asio's steady_timer");
  if (!common::parse_command_line(argc, argv, intro, options)) return false;
  if (s.heartbeat >= s.idle_timeout)
    throw po::error("--heartbeat must be shorter than --idle-timeout, or no quiet client survives");
  return true;
}

/// Serves until SIGINT or SIGTERM.
template <class Timers>
bool serve(const settings& s)
{
  common::raise_open_file_limit(1 << 20);
  asio::io_context context(s.threads);
  [[maybe_unused]] const Timers timers(context);
  server<Timers> rpc_server(context, s);
  rpc_server.start();

  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](error_code, int) {
    signals.clear();  // a second Ctrl-C ends the program at once
    rpc_server.stop();
  });

  common::announce("rpc_server", rpc_server.endpoint());

  std::atomic<bool> failed{false};
  const auto work = [&] {
    try {
      context.run();
    } catch (const std::exception& e) {
      common::print_error("rpc_server: {}\n", e.what());
      failed = true;
      context.stop();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < s.threads; ++i) threads.emplace_back(work);
    work();
  }
  const server_figures f = rpc_server.figures();
  fmt::print(
    "rpc_server: stopped after {} connections, {} calls ({} stalled, {} dropped), {} heartbeats, "
    "{} idle drops, {} wake-ups\n",
    f.connections, f.calls, f.stalled, f.dropped, f.heartbeats, f.idle_drops, f.wakeups);
  return !failed;
}

}  // namespace
}  // namespace rpc

int main(int argc, char** argv)
{
  return common::run_program("rpc_server", [&] {
    rpc::settings s;
    if (!rpc::read_settings(argc, argv, s)) return EXIT_SUCCESS;
    const auto serve = [&]<class Timers>() { return rpc::serve<Timers>(s); };
    return rpc::with_timers(s.timer, serve) ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
