#include "client.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <string_view>
#include <utility>

namespace redis {

using asio_wheel::timeout_at;
using boost::system::system_error;

namespace {

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

std::string timed_out()
{
  return error_code(asio::error::timed_out).message();
}

}  // namespace

client::client(const asio::any_io_executor& ex, const options& o)
  : options_(o),
    executor_(ex),
    wheel_(asio_wheel::use_wheel(ex)),
    server_(o.server),
    changed_(ex, clock::time_point::max()),
    delay_(o.base, o.longest)
{}

void client::close()
{
  if (connection_) connection_->close("closed by ourselves");
}

asio::awaitable<reply> client::send(clock::time_point deadline, words w)
{
  const std::string bytes = format_command(w);
  for (int moves = 0;; ++moves) {
    try {
      co_return co_await send_once(deadline, bytes);
    } catch (const failure& e) {
      if (!e.is("MOVED") || moves == 5) throw;
      move_to(e);
    }
  }
}

asio::awaitable<reply> client::call(clock::time_point deadline, script& s, words keys,
                                    words arguments)
{
  if (s.hash_.empty()) s.hash_ = (co_await command(deadline, "SCRIPT", "LOAD", s.text_)).text();
  words w{"EVALSHA", s.hash_, fmt::to_string(keys.size())};
  w.insert(w.end(), keys.begin(), keys.end());
  w.insert(w.end(), arguments.begin(), arguments.end());
  try {
    co_return co_await send(deadline, w);
  } catch (const failure& e) {
    if (!e.is("NOSCRIPT")) throw;
  }
  // The server was restarted, or is another one.
  w[0] = "EVAL";
  w[1] = s.text_;
  co_return co_await send(deadline, std::move(w));
}

asio::awaitable<reply> client::send_once(clock::time_point deadline, std::string bytes)
{
  const auto c = co_await connected(deadline);
  const auto sent_at = clock::now();
  ++sent_;
  auto [ec, answer] = co_await c->async_send(std::move(bytes), timeout_at(deadline, no_throw));
  if (ec == asio::error::timed_out) {
    if (c->last_heard() < sent_at) c->close("the server is silent");
    throw failure(c->server(), failure::kind::no_reply, timed_out());
  }
  if (ec == asio::error::operation_aborted) throw system_error(ec);
  if (ec) throw failure(c->server(), failure::kind::no_reply, c->why_closed());
  if (answer.is_error())
    throw failure(c->server(), failure::kind::refused, std::string(answer.text()));
  co_return answer;
}

asio::awaitable<std::shared_ptr<connection>> client::connected(clock::time_point deadline)
{
  while (!connection_ || !connection_->is_open()) {
    if (is_connecting_) {
      const auto [ec] = co_await changed_.async_wait(timeout_at(deadline, no_throw));
      if (ec == asio::error::timed_out)
        throw failure(server_, failure::kind::not_sent, timed_out());
    } else if (clock::now() < next_attempt_) {
      throw failure(*last_failure_);
    } else {
      co_await connect(deadline);
    }
  }
  co_return connection_;
}

asio::awaitable<void> client::connect(clock::time_point deadline)
{
  is_connecting_ = true;
  std::exception_ptr thrown;
  try {
    connection_ =
      co_await new_connection(std::min(deadline, clock::now() + options_.connect_timeout));
    failures_ = 0;
  } catch (...) {
    thrown = std::current_exception();
  }
  is_connecting_ = false;
  changed_.cancel();
  if (!thrown) co_return;
  try {
    std::rethrow_exception(thrown);
  } catch (const system_error& e) {
    if (e.code() == asio::error::operation_aborted) throw;
    last_failure_.emplace(server_, failure::kind::not_sent, e.code().message());
  } catch (const failure& e) {
    last_failure_ = e;
  }
  next_attempt_ = clock::now() + delay_(++failures_);
  server_ = options_.server;
  throw failure(*last_failure_);
}

asio::awaitable<std::shared_ptr<connection>> client::new_connection(clock::time_point deadline)
{
  const auto by_then = timeout_at(deadline, asio::use_awaitable);
  tcp::resolver resolver(executor_);
  const auto found =
    co_await resolver.async_resolve(server_.host, fmt::to_string(server_.port), by_then);
  tcp::socket socket(executor_);
  co_await asio::async_connect(socket, found, by_then);
  const auto c = std::make_shared<connection>(std::move(socket), server_);
  c->start();
  co_await greet(*c, deadline);
  co_return c;
}

/// A server that accepts connections is not yet one that answers.
asio::awaitable<void> client::greet(connection& c, clock::time_point deadline)
{
  words greeting{"PING"};
  if (!options_.password.empty()) greeting = words{"AUTH", options_.password};
  auto [ec, answer] =
    co_await c.async_send(format_command(greeting), timeout_at(deadline, no_throw));
  std::string problem;
  if (ec == asio::error::timed_out) {
    problem = timed_out();
  } else if (ec == asio::error::not_connected) {
    problem = c.why_closed();
  } else if (answer.is_error()) {
    problem = answer.text();
  }
  if (!ec && problem.empty()) co_return;
  c.close("not greeted");
  if (ec == asio::error::operation_aborted) throw system_error(ec);
  throw failure(c.server(), answer.is_error() ? failure::kind::refused : failure::kind::not_sent,
                problem);
}

/// Goes where a node of a cluster sends us: "MOVED <slot> <host>:<port>".
void client::move_to(const failure& e)
{
  const std::string& text = e.reason();
  const auto space = text.rfind(' '), colon = text.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon < space ||
      std::from_chars(text.data() + colon + 1, text.data() + text.size(), port).ec != std::errc())
    throw e;
  const auto host = text.substr(space + 1, colon - space - 1);
  close();
  if (!host.empty()) server_.host = host;
  server_.port = port;
}

}  // namespace redis
