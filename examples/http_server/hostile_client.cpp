// Attacks an HTTP server with many connections at once, each of which wastes the server's time in
// one of the known ways. Counts the connections that the server does not drop.
#include "../common/command_line.hpp"
#include "../common/process.hpp"
#include "../common/resolve.hpp"

#include <fmt/format.h>
#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hostile {
namespace {

namespace asio = boost::asio;
namespace po = common::po;
using asio::ip::tcp;
using boost::system::error_code;
using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// What to do with the server's answer.
enum class answers { read, sip, ignore };

/// A way to waste a server's time. The path replaces %%.
struct method {
  std::string_view name;
  std::string_view opening;  // said at once
  std::string_view drip;     // said again and again
  answers to_answers;
  const char* what;
};

constexpr std::array methods{
  method{"silent", "", "", answers::read, "says nothing"},
  method{"header", "GET %% HTTP/1.1\r\nHost: h\r\nSlow: ", "z", answers::read,
         "sends a byte of a header now and then"},
  method{"body", "POST %% HTTP/1.1\r\nHost: h\r\nContent-Length: 9999\r\n\r\n", "z", answers::read,
         "sends a byte of a body now and then"},
  method{"idle", "GET %% HTTP/1.1\r\nHost: h\r\n\r\n", "", answers::read, "asks once, and stays"},
  method{"unread", "GET %% HTTP/1.1\r\nHost: h\r\n\r\n", "", answers::ignore,
         "does not read the answer"},
  method{"sip", "GET %% HTTP/1.1\r\nHost: h\r\n\r\n", "", answers::sip,
         "reads a byte of the answer now and then"}};

struct settings {
  std::string host = "127.0.0.1", path = "/";
  int port = 8080;
  const method* how = nullptr;
  int connections = 1000;
  int per_second = 0;
  int interval = 200;   // ms
  int within = 10'000;  // ms
  double again = 0;     // s
};

class attack {
public:
  attack(asio::io_context& context, const settings& s)
    : context_(context),
      settings_(s),
      left_(s.connections),
      server_(common::resolve(context, s.host, s.port).front()),
      signals_(context, SIGINT, SIGTERM)
  {
    opening_ = s.how->opening;
    if (const auto at = opening_.find("%%"); at != std::string::npos)
      opening_.replace(at, 2, s.path);
  }

  asio::awaitable<void> run()
  {
    signals_.async_wait([this](error_code ec, int) {
      if (ec) return;
      is_interrupted_ = true;
      context_.stop();
    });
    end_ = clock::now() + std::chrono::duration_cast<clock::duration>(
                            std::chrono::duration<double>(settings_.again));
    std::optional<asio_wheel::wheel_interval> pace;
    if (settings_.per_second != 0)
      pace.emplace(context_,
                   std::chrono::nanoseconds(std::chrono::seconds(1)) / settings_.per_second);
    // One after the other, because the server's backlog is limited.
    for (int i = 0; i != settings_.connections; ++i) {
      if (pace) co_await pace->async_tick(asio::use_awaitable);
      error_code ec;
      tcp::socket socket = co_await connect(ec);
      if (ec == asio::error::connection_reset) {
        // A full server may drop a connection before this side knows that it is open.
        ++refused_;
        socket.close(ec);
      } else if (ec) {
        throw std::runtime_error(
          fmt::format("cannot connect to {}:{}: {}", settings_.host, settings_.port, ec.message()));
      }
      asio::co_spawn(context_, keep_on(std::move(socket)), [this](std::exception_ptr thrown) {
        if (thrown) std::rethrow_exception(thrown);
        if (--left_ == 0) signals_.cancel();
      });
    }
  }

  /// False if the server kept a connection for too long, or none was made, or it is not known yet.
  bool report()
  {
    std::sort(lives_.begin(), lives_.end());
    const auto seconds = [&](double part) {
      if (lives_.empty()) return 0.0;
      const auto i = static_cast<std::size_t>(part * static_cast<double>(lives_.size() - 1));
      return std::chrono::duration<double>(lives_[i]).count();
    };
    fmt::print(
      "hostile_client: {}: {} connections {}, {} dropped by the server, {} of them by a reset, "
      "after {:.3f} s at least, {:.3f} s in the median, {:.3f} s at most; "
      "{} kept for longer than {:.3f} s; {} not let in{}\n",
      settings_.how->name, settings_.connections,
      settings_.per_second ? fmt::format("({} a second)", settings_.per_second) : "at once",
      lives_.size(), resets_, seconds(0), seconds(0.5), seconds(1), survivors_,
      settings_.within / 1000.0, refused_,
      is_interrupted_ ? fmt::format("; interrupted with {} open", held_) : "");
    return survivors_ == 0 && !lives_.empty() && !is_interrupted_;
  }

private:
  asio::awaitable<tcp::socket> connect(error_code& ec)
  {
    tcp::socket socket(context_, server_.protocol());
    // A small buffer here, so that the server has to keep the answer that nobody reads.
    if (settings_.how->to_answers != answers::read)
      socket.set_option(tcp::socket::receive_buffer_size(4096));
    co_await socket.async_connect(server_, asio::redirect_error(asio::use_awaitable, ec));
    co_return socket;
  }

  asio::awaitable<void> keep_on(tcp::socket socket)
  {
    while (true) {
      if (socket.is_open()) {
        ++held_;
        co_await hold(socket);
        --held_;
      }
      if (clock::now() >= end_) co_return;
      error_code ec;
      socket = co_await connect(ec);
      if (!ec) continue;
      ++refused_;
      socket.close(ec);
      co_await asio_wheel::use_wheel(context_).async_wait(milliseconds(20));
    }
  }

  /// Keeps the server busy with a connection until it drops that.
  asio::awaitable<void> hold(tcp::socket& socket)
  {
    const auto begin = clock::now();
    socket.non_blocking(true);  // for sips
    error_code ec;
    co_await asio::async_write(socket, asio::buffer(opening_),
                               asio::redirect_error(asio::use_awaitable, ec));
    while (!ec) {
      if (clock::now() - begin > milliseconds(settings_.within)) {
        ++survivors_;
        co_return;
      }
      ec = co_await wait(socket);
      if (!ec && !settings_.how->drip.empty())
        co_await asio::async_write(socket, asio::buffer(settings_.how->drip),
                                   asio::redirect_error(asio::use_awaitable, ec));
      if (!ec && settings_.how->to_answers == answers::sip)
        socket.read_some(asio::buffer(answer_, 1), ec);
      if (ec == asio::error::would_block) ec = {};
    }
    lives_.push_back(clock::now() - begin);
    if (ec == asio::error::connection_reset) ++resets_;
  }

  /// Waits until the next drip. Returns an error if the connection has ended.
  asio::awaitable<error_code> wait(tcp::socket& socket)
  {
    error_code ec;
    auto until_then = asio_wheel::cancel_at(clock::now() + milliseconds(settings_.interval),
                                            asio::redirect_error(asio::use_awaitable, ec));
    if (settings_.how->to_answers == answers::read) {
      while (!ec) co_await socket.async_read_some(asio::buffer(answer_), until_then);
    } else {
      co_await socket.async_wait(tcp::socket::wait_error, until_then);
      if (!ec) ec = asio::error::connection_reset;
    }
    co_return ec == asio::error::operation_aborted ? error_code() : ec;
  }

  asio::io_context& context_;
  const settings settings_;
  int left_;  // connections yet to end
  const tcp::endpoint server_;
  asio::signal_set signals_;  // not while the name is resolved, which blocks
  std::string opening_;
  clock::time_point end_;
  std::array<char, 16 * 1024> answer_;  // is read, and thrown away
  std::vector<clock::duration> lives_;
  std::uint64_t held_ = 0, survivors_ = 0, refused_ = 0, resets_ = 0;
  bool is_interrupted_ = false;
};

constexpr std::string_view intro =
  R"(Usage: hostile_client [option...]

Opens connections to an HTTP server, and abuses every one of them until the
server drops it. Ctrl-C ends it and prints the results until then.
Exit status: 0 if the server dropped them all in time, 1 if not, and 2 if an
option is wrong.
)";

/// Reads the options. False if --help was asked for.
bool read_settings(int argc, char** argv, settings& s)
{
  using common::ranged;
  po::options_description options("Options");
  auto add = options.add_options();
  std::string how = "silent", help = "what each connection does:\n";
  for (const method& m : methods) help += fmt::format("{}: {}\n", m.name, m.what);
  add("method", po::value(&how)->default_value(how)->value_name("name"), help.c_str());
  add("host", po::value(&s.host)->default_value(s.host)->value_name("name"), "where the server is");
  add("port", ranged(s.port, "port", 1, 65'535, "n"), "its port");
  add("path", po::value(&s.path)->default_value(s.path)->value_name("path"), "what to ask for");
  add("connections", ranged(s.connections, "connections", 1, 100'000, "n"), "how many");
  add("per-second", ranged(s.per_second, "per-second", 0, 100'000, "n"),
      "how many to open each second; 0: all at once");
  add("interval", ranged(s.interval, "interval", 1, 60'000, "ms"), "between two bytes");
  add("within", ranged(s.within, "within", 1, 3'600'000, "ms"),
      "how soon the server has to drop a connection");
  add("again", ranged(s.again, "again", 0.0, 86'400.0, "s"),
      "for that long, replace each connection that is dropped");
  if (!common::parse_command_line(argc, argv, intro, options)) return false;
  for (const method& m : methods)
    if (m.name == how) s.how = &m;
  if (!s.how)
    throw po::error(fmt::format("--method must be one of those that --help lists, not '{}'", how));
  return true;
}

bool run(const settings& s)
{
  common::need_open_files(s.connections);
  asio::io_context context(1);
  attack a(context, s);
  asio::co_spawn(context, a.run(), [&](std::exception_ptr thrown) {
    if (thrown) std::rethrow_exception(thrown);
  });
  context.run();
  return a.report();
}

}  // namespace
}  // namespace hostile

int main(int argc, char** argv)
{
  return common::run_program("hostile_client", [&] {
    hostile::settings s;
    if (!hostile::read_settings(argc, argv, s)) return EXIT_SUCCESS;
    return hostile::run(s) ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
