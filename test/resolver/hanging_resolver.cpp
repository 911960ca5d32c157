// A resolver that hangs: the only name server is a UDP socket on loopback that answers when the
// case says so. This program has a getaddrinfo of its own, which Asio's resolver calls, as it would
// call the C library's, which waits for such a server for seconds.
#include <dlfcn.h>
#include <netdb.h>
#include <asio_wheel.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using asio::ip::tcp;
using asio::ip::udp;

namespace {

/// Hears queries, and answers one at a time. Makes itself the server of getaddrinfo.
class name_server {
public:
  name_server() { port = socket_.local_endpoint().port(); }
  ~name_server() { port = 0; }

  /// Answers the next query, which may have come already.
  void answer()
  {
    char name[64];
    udp::endpoint client;
    socket_.receive_from(asio::buffer(name), client);
    socket_.send_to(asio::buffer("127.0.0.1", 10), client);
  }

  /// Lets an answer() end to which no query has come.
  void ask_itself()
  {
    udp::socket client(context_, udp::endpoint(asio::ip::address_v4::loopback(), 0));
    client.send_to(asio::buffer("itself", 6), socket_.local_endpoint());
  }

  static inline std::uint16_t port = 0;

private:
  asio::io_context context_;
  udp::socket socket_{context_, udp::endpoint(asio::ip::address_v4::loopback(), 0)};
};

/// Asks the name server, and waits for its answer without a limit.
std::string ask_for(const char* name)
{
  asio::io_context context;
  udp::socket socket(context, udp::endpoint(asio::ip::address_v4::loopback(), 0));
  socket.connect(udp::endpoint(asio::ip::address_v4::loopback(), name_server::port));
  socket.send(asio::buffer(name, std::char_traits<char>::length(name)));
  char address[64] = {};
  socket.receive(asio::buffer(address));
  return address;
}

using resolved = tcp::resolver::results_type;

}  // namespace

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** results)
{
  using function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto of_system = reinterpret_cast<function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool is_asked = name && name_server::port != 0;
  return of_system(is_asked ? ask_for(name).c_str() : name, service, hints, results);
}

BOOST_AUTO_TEST_SUITE(hanging_resolver)

BOOST_AUTO_TEST_CASE(is_given_up_at_the_deadline_and_its_late_answer_is_dropped)
{
  name_server server;
  support::context_with_wheel c;
  tcp::resolver resolver(c.context);
  std::optional<error_code> error;
  const auto start = c.wheel.now();
  resolver.async_resolve("example.test", "80", abandon_after(50ms, [&](error_code ec, resolved r) {
                           error = ec;
                           BOOST_TEST(r.empty());
                         }));
  support::run_until(c.context, [&] { return error.has_value(); });
  BOOST_TEST((*error == asio::error::timed_out));
  BOOST_TEST((c.wheel.now() - start >= 50ms));
  BOOST_TEST(c.wheel.stats().abandoned == 1U);
  server.answer();
  support::run_to_end(c.context);
  BOOST_TEST(c.wheel.stats().abandoned == 0U);
}

BOOST_AUTO_TEST_CASE(holds_up_timeout_after_until_it_answers)
{
  name_server server;
  support::context_with_wheel c;
  tcp::resolver resolver(c.context);
  std::optional<error_code> error;
  resolver.async_resolve("example.test", "80",
                         timeout_after(1ms, [&](error_code ec, resolved) { error = ec; }));
  c.context.run_for(50ms);
  BOOST_TEST(!error.has_value());
  server.answer();
  support::run_to_end(c.context);
  BOOST_TEST(error.has_value());
}

BOOST_AUTO_TEST_CASE(may_be_destroyed_and_so_may_the_context_while_it_hangs)
{
  name_server server;
  std::thread answering;
  {
    support::context_with_wheel c;
    std::optional<tcp::resolver> resolver(std::in_place, c.context);
    bool called = false;
    resolver->async_resolve("example.test", "80", abandon_after(1ms, [&](error_code, resolved) {
                              called = true;
                              resolver.reset();
                            }));
    support::run_until(c.context, [&] { return called; });
    // Asio's resolver joins its thread when the context goes, so somebody has to answer.
    answering = std::thread([&] { server.answer(); });
  }
  server.ask_itself();  // the resolver may have gone before its thread asked
  answering.join();
}

BOOST_AUTO_TEST_CASE(that_answers_in_time_is_as_any_other)
{
  name_server server;
  support::context_with_wheel c;
  std::thread answering([&] { server.answer(); });
  support::run_coroutine(c.context, [&]() -> asio::awaitable<void> {
    tcp::resolver resolver(co_await asio::this_coro::executor);
    const auto results = co_await resolver.async_resolve("example.test", "80",
                                                         abandon_after(20s, asio::use_awaitable));
    BOOST_TEST(results.begin()->endpoint().address().to_string() == "127.0.0.1");
  });
  answering.join();
}

BOOST_AUTO_TEST_SUITE_END()
