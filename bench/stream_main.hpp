// What deadlines cost a connection: a message goes to and fro over loopback, between two ends in
// one thread of this process. With `--end stream` one end is
//   stream_beast   boost::beast::tcp_stream, without an expiry
//   stream_wheel   asio_wheel::tcp_stream, without an expiry
//   stream_guard   a socket, its operations under the guard() of a wheel_watchdog
// with `--end expiry` the same with expires_after(30s), or touch(), before each read and each
// write, and with `--end bare` an asio::ip::tcp::socket without deadlines. The other end is always
// such a socket. No deadline ever comes. Each stream is compiled by itself, as in a server that has
// chosen one: together they would leave less of what a compiler inlines to each.
//
// callgrind counts the instructions in user mode, which do not depend on the load of the machine.
// The difference of two runs, divided by the 10,000 messages between them, is the cost of one
// message. What it exceeds that of the same program's bare socket by is the cost of the deadlines
// of one read and one write.
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null stream_wheel --end bare --n 2000
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null stream_wheel --end bare --n 12000
// strace -c counts system calls in the same way.
#pragma once

#include "../examples/common/command_line.hpp"

#include <fmt/core.h>
#include <boost/asio.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace bench {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

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

/// The main function of a program: `Stream` is the one end, `plain` starts its operations, or, with
/// a deadline anew, `with_expiry`.
template <class Stream, class Plain, class WithExpiry>
int stream_main(int argc, char** argv, std::string_view name, Plain plain, WithExpiry with_expiry)
{
  return common::run_program(name, [&] {
    namespace po = common::po;
    std::string end = "stream";
    std::uint64_t n = 100'000;
    po::options_description options("Options");
    options.add_options()  //
      ("end", po::value(&end)->value_name("NAME")->default_value(end),
       "bare: a socket without deadlines; stream: the stream; expiry: the stream, and the deadline "
       "is set anew before each operation")  //
      ("n", common::ranged<std::uint64_t>(n, "n", 1, 1'000'000'000'000, "N"),
       "messages there and back");
    const auto intro = fmt::format(
      "Usage: {} [option...]\nWhat deadlines cost a connection: one line of JSON.\n", name);
    if (!common::parse_command_line(argc, argv, intro, options)) return EXIT_SUCCESS;
    const auto took = [&] {
      if (end == "bare") return run<tcp::socket>(n, as_it_is);
      if (end == "stream") return run<Stream>(n, plain);
      if (end == "expiry") return run<Stream>(n, with_expiry);
      throw po::error(fmt::format("--end {}: neither bare nor stream nor expiry", end));
    }();
    fmt::print(
      "{{\"program\": \"{}\", \"end\": \"{}\", \"messages\": {}, \"ns_per_message\": {:.0f}}}\n",
      name, end, n, static_cast<double>(took.count()) / static_cast<double>(n));
    return EXIT_SUCCESS;
  });
}

}  // namespace bench
