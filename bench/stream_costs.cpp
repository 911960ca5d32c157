// What deadlines cost a connection: a message goes to and fro over loopback, between two ends in
// one thread of this process. One end is
//   raw       asio::ip::tcp::socket: no deadlines
//   beast     boost::beast::tcp_stream, without an expiry
//   beast_30  the same with expires_after(30s) before each read and each write
//   wheel     asio_wheel::tcp_stream, without an expiry
//   wheel_30  the same with expires_after(30s) before each read and each write
//   guard     a raw socket with a wheel_watchdog: touch() before each, and guard()
// The other is always a raw socket. No deadline ever comes.
//
// callgrind counts the instructions in user mode, which do not depend on the load of the machine.
// The difference of two runs, divided by the 10,000 messages between them, is the cost of one
// message. What it exceeds `raw` by is the cost of the deadlines of one read and one write.
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null stream_costs --stream raw --n 2000
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null stream_costs --stream raw --n 12000
// strace -c counts system calls in the same way.
#include <fmt/core.h>
#include <asio_wheel.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view usage =
  R"(What deadlines cost a connection: one line of JSON.
  --stream NAME   raw, beast, beast_30, wheel, wheel_30 or guard   [raw]
  --n N           messages there and back                          [100000]
)";

struct settings {
  std::string stream = "raw";
  std::uint64_t n = 100'000;
  bool help = false;
};

settings parse(int argc, char** argv)
{
  settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--help" || name == "-h") {
      s.help = true;
      continue;
    }
    if (name != "--stream" && name != "--n")
      throw std::invalid_argument(fmt::format("{} is no option", name));
    if (++i == argc) throw std::invalid_argument(fmt::format("{} needs a value", name));
    if (name == "--stream") {
      s.stream = argv[i];
      continue;
    }
    char* end = nullptr;
    s.n = std::strtoull(argv[i], &end, 10);
    if (*end != '\0' || s.n == 0 || s.n > 1'000'000'000'000 || argv[i][0] == '-')
      throw std::invalid_argument(fmt::format("--n {}: not a number in 1..1e12", argv[i]));
  }
  return s;
}

/// The message that goes to and fro.
using message = std::array<char, 64>;

/// One end: reads a message and writes it back.
template <class Stream, class Before>
class end_of_line {
public:
  end_of_line(asio::io_context& context, Stream& stream, Before before, std::uint64_t n)
    : context_(context),
      stream_(stream),
      before_(before),
      left_(n)
  {}

  void read()
  {
    before_(
      stream_,
      [this](auto token) { stream_.async_read_some(asio::buffer(message_), std::move(token)); },
      [this](error_code ec, std::size_t) {
        if (ec || left_-- == 0)
          context_.stop();
        else
          write();
      });
  }

  void write()
  {
    before_(
      stream_,
      [this](auto token) { stream_.async_write_some(asio::buffer(message_), std::move(token)); },
      [this](error_code ec, std::size_t) {
        if (!ec) read();
      });
  }

private:
  asio::io_context& context_;
  Stream& stream_;
  Before before_;
  std::uint64_t left_;
  message message_{};
};

/// No deadline.
constexpr auto as_it_is = [](auto&, auto operation, auto handler) { operation(handler); };

/// An expiry before each operation.
constexpr auto in_30s = [](auto& stream, auto operation, auto handler) {
  stream.expires_after(30s);
  operation(handler);
};

/// Runs one connection to its end. Returns how long it took.
template <class Stream, class Before>
std::chrono::nanoseconds run(std::uint64_t n, Before before)
{
  asio::io_context context(1);
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  tcp::socket here(context);
  here.connect(acceptor.local_endpoint());
  tcp::socket there = acceptor.accept();
  here.set_option(tcp::no_delay(true));
  there.set_option(tcp::no_delay(true));
  Stream stream(std::move(here));

  end_of_line measured(context, stream, before, n);
  end_of_line other(context, there, as_it_is, n + 1);
  measured.write();
  other.read();
  const auto begin = std::chrono::steady_clock::now();
  context.run();
  return std::chrono::steady_clock::now() - begin;
}

std::chrono::nanoseconds run(const settings& s)
{
  if (s.stream == "raw") return run<tcp::socket>(s.n, as_it_is);
  if (s.stream == "beast") return run<boost::beast::tcp_stream>(s.n, as_it_is);
  if (s.stream == "beast_30") return run<boost::beast::tcp_stream>(s.n, in_30s);
  if (s.stream == "wheel") return run<asio_wheel::tcp_stream>(s.n, as_it_is);
  if (s.stream == "wheel_30") return run<asio_wheel::tcp_stream>(s.n, in_30s);
  if (s.stream == "guard") {
    std::optional<asio_wheel::wheel_watchdog> dog;
    return run<tcp::socket>(s.n, [&dog](tcp::socket& socket, auto operation, auto handler) {
      if (!dog) dog.emplace(socket.get_executor(), 30s);
      dog->touch();
      operation(dog->guard(handler));
    });
  }
  throw std::invalid_argument(fmt::format("--stream {}: there is no such stream", s.stream));
}

}  // namespace

int main(int argc, char** argv)
try {
  const settings s = parse(argc, argv);
  if (s.help) {
    fmt::print("{}", usage);
    return 0;
  }
  const auto took = run(s);
  fmt::print("{{\"stream\": \"{}\", \"messages\": {}, \"ns_per_message\": {:.0f}}}\n", s.stream,
             s.n, static_cast<double>(took.count()) / static_cast<double>(s.n));
  return 0;
} catch (const std::exception& e) {
  std::fputs(fmt::format("stream_costs: {}\n", e.what()).c_str(), stderr);
  return 1;
}
