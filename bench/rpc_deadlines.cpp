// Deadlines on RPCs: what a deadline adds to a call of examples/rpc/client.hpp, over loopback.
// Client and server share this process and one thread; the server echoes and has no timers.
//   none           the call alone, awaited by a coroutine
//   timeout_after  asio_wheel's, in the call's completion token
//   or             the call || a steady_timer, by Asio's awaitable_operators
//   or_as_tuple    the same with as_tuple, so that the loser throws nothing
//   rearmed        a steady_timer per connection, set anew for each call
// No deadline ever comes. With --connections 1 the wheel is empty between two calls, unlike in a
// server, and the heap of steady_timers holds one.
//
// callgrind counts the instructions in user mode, which do not depend on the load of the machine.
// The difference of two runs, divided by the 10,000 calls between them, is the cost of one call:
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null rpc_deadlines --timer or --calls 2000
//   valgrind --tool=callgrind --callgrind-out-file=/dev/null rpc_deadlines --timer or --calls 12000
#include "../examples/common/command_line.hpp"
#include "../examples/common/process.hpp"
#include "../examples/rpc/client.hpp"
#include "../examples/rpc/timers.hpp"

#include <asio_wheel.hpp>
#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "measure.hpp"

namespace {

namespace asio = boost::asio;
namespace po = common::po;
using asio::use_awaitable;
using boost::system::error_code;

constexpr std::chrono::seconds deadline{5};

using client_on_wheel = rpc::client<rpc::wheel_timers>;

struct settings {
  std::string timer = "none";
  std::uint64_t calls = 100'000;
  int connections = 50;
};

// The client's end of a connection, and the timer that it may have.
struct caller {
  std::shared_ptr<client_on_wheel> client;
  asio::steady_timer timer;
  asio_wheel::wheel_timer_service& wheel;

  template <class Token>
  auto call(Token&& token)
  {
    return client->async_call(rpc::kind::call, "hello", std::forward<Token>(token));
  }
};

asio::awaitable<void> none(caller& c)
{
  co_await c.call(use_awaitable);
}

asio::awaitable<void> timeout_after(caller& c)
{
  co_await c.call(asio_wheel::timeout_after(c.wheel, deadline, use_awaitable));
}

asio::awaitable<void> awaitable_or(caller& c)
{
  using namespace asio::experimental::awaitable_operators;
  c.timer.expires_after(deadline);
  const auto winner = co_await (c.call(use_awaitable) || c.timer.async_wait(use_awaitable));
  if (winner.index() != 0) throw std::runtime_error("timed out");
}

asio::awaitable<void> awaitable_or_as_tuple(caller& c)
{
  using namespace asio::experimental::awaitable_operators;
  constexpr auto token = asio::as_tuple(use_awaitable);
  c.timer.expires_after(deadline);
  const auto winner = co_await (c.call(token) || c.timer.async_wait(token));
  if (winner.index() != 0) throw std::runtime_error("timed out");
}

asio::awaitable<void> rearmed(caller& c)
{
  c.timer.expires_after(deadline);
  c.timer.async_wait([&c](error_code ec) {
    if (!ec) c.client->close();
  });
  co_await c.call(use_awaitable);
}

using timed_call = std::function<asio::awaitable<void>(caller&)>;

const std::map<std::string_view, timed_call> timed_calls{{"none", none},
                                                         {"timeout_after", timeout_after},
                                                         {"or", awaitable_or},
                                                         {"or_as_tuple", awaitable_or_as_tuple},
                                                         {"rearmed", rearmed}};

asio::awaitable<void> echo(rpc::tcp::socket socket)
{
  const auto c = std::make_shared<rpc::connection<asio_wheel::wheel_timer>>(std::move(socket));
  while (co_await c->read_some())
    while (const auto f = c->next_frame()) c->send(rpc::kind::answer, f->id, f->payload);
}

asio::awaitable<void> call(std::shared_ptr<client_on_wheel> client, const timed_call& timed,
                           std::uint64_t times)
{
  const auto executor = co_await asio::this_coro::executor;
  caller c{client, asio::steady_timer(executor), asio_wheel::use_wheel(executor)};
  while (times-- > 0) co_await timed(c);
  c.timer.cancel();
  client->close();
}

void run(const settings& s)
{
  const auto timed = timed_calls.find(s.timer);
  if (timed == timed_calls.end()) throw po::error("--timer " + s.timer + ": there is none such");

  common::need_open_files(2 * s.connections);
  asio::io_context context(1);
  asio_wheel::make_wheel(context);
  rpc::side_notes notes;
  rpc::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  const auto connections = static_cast<std::uint64_t>(s.connections);
  const auto each = std::max<std::uint64_t>(s.calls / connections, 1);
  for (std::uint64_t i = 0; i < connections; ++i) {
    rpc::tcp::socket socket(context);
    socket.connect(acceptor.local_endpoint());
    const auto client = std::make_shared<client_on_wheel>(std::move(socket), notes);
    asio::co_spawn(context, echo(acceptor.accept()), rpc::rethrow);
    asio::co_spawn(
      context, [client] { return client->listen(); }, rpc::rethrow);
    asio::co_spawn(context, call(client, timed->second, each), rpc::rethrow);
  }
  const auto before = bench::thread_cpu();
  context.run();
  const auto calls = each * connections;
  fmt::print("{} calls: {:.0f} ns of CPU each\n", calls,
             bench::ns_per(bench::thread_cpu() - before, calls));
}

constexpr std::string_view intro =
  R"(Usage: rpc_deadlines [option...]

Calls an echo server within the same process again and again, with a deadline on
each call, and prints the CPU time of a call, which is mostly the kernel's. The
head of rpc_deadlines.cpp tells how to count instructions.
)";

}  // namespace

int main(int argc, char** argv)
{
  return common::run_program("rpc_deadlines", [&] {
    settings s;
    po::options_description options("Options");
    auto add = options.add_options();
    add("timer", po::value(&s.timer)->default_value(s.timer)->value_name("kind"),
        "what keeps the deadline: none, timeout_after, or, or_as_tuple, rearmed");
    add("calls", common::ranged<std::uint64_t>(s.calls, "calls", 1, 1'000'000'000, "n"),
        "calls, of all connections together");
    add("connections", common::ranged(s.connections, "connections", 1, 10'000, "n"),
        "connections, each with one call under way");
    if (!common::parse_command_line(argc, argv, intro, options)) return EXIT_SUCCESS;
    const bench::idle_thread second;
    run(s);
    return EXIT_SUCCESS;
  });
}
