// Runs the snippets of the documentation, one after the other.
#include "snippet.hpp"

#include <cstdio>
#include <exception>

namespace snippets {

std::vector<listed>& all_snippets()
{
  static std::vector<listed> all;
  return all;
}

coroutine_snippet::coroutine_snippet()
{
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  socket.connect(acceptor.local_endpoint());
  acceptor.accept(peer_);
}

asio::awaitable<void> coroutine_snippet::echo()
{
  co_await asio::async_write(peer_, asio::buffer("hello\n", 6), asio::use_awaitable);
  for (std::array<char, 64> bytes{};;) {
    const std::size_t n = co_await peer_.async_read_some(asio::buffer(bytes), asio::use_awaitable);
    co_await asio::async_write(peer_, asio::buffer(bytes, n), asio::use_awaitable);
  }
}

void coroutine_snippet::play()
{
  virtual_time time(wheel);
  asio::co_spawn(context, echo(), asio::detached);
  bool done = false;
  asio::co_spawn(context, run(), [&](const std::exception_ptr& error) {
    if (error) std::rethrow_exception(error);
    done = true;
  });
  while (!done) {
    // Socket events come first, in real time.
    context.restart();
    if (context.run_one_for(5ms) == 0) time.advance_to_next();
  }
}

}  // namespace snippets

int main()
{
  int failures = 0;
  for (const auto& each : snippets::all_snippets()) {
    try {
      each.make()->play();
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", each.where.data(), error.what());
      ++failures;
    }
  }
  std::printf("%zu snippets, %d failed\n", snippets::all_snippets().size(), failures);
  return failures == 0 ? 0 : 1;
}
