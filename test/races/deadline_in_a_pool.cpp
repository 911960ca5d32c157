// Race: deadlines of socket operations fire in a pool of threads while the sockets complete them:
// with a future, with a handler on a strand that is not the socket's, and with one that has no
// executor of its own (chriskohlhoff/asio#1763). Every operation ends once, and what was sent
// arrives.
#include <array>
#include <atomic>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <future>
#include <thread>

#include "support/balance.hpp"
#include "support/socket_pair.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using boost::system::error_code;
using socket_type = support::pair_socket;

namespace {

struct tally {
  std::size_t sent = 0;
  std::size_t received = 0;
  std::size_t timed_out = 0;
  std::size_t other = 0;

  void count(const error_code& ec, std::size_t n)
  {
    received += n;
    if (ec == asio::error::timed_out)
      ++timed_out;
    else if (ec)
      ++other;
  }
};

/// Starts a read with a deadline, lets `send()` race with it, and waits until the read has ended.
template <class Send>
void read_once(int way, socket_type& socket, asio::thread_pool& pool,
               std::chrono::nanoseconds deadline, Send send, tally& t)
{
  std::array<char, 64> room{};
  if (way == 0) {
    auto read =
      socket.async_read_some(asio::buffer(room), timeout_after(deadline, asio::use_future));
    send();
    try {
      t.count({}, read.get());
    } catch (const boost::system::system_error& e) {
      t.count(e.code(), 0);
    }
    return;
  }
  std::promise<void> ended;
  const auto handler = [&](error_code ec, std::size_t n) {
    t.count(ec, n);
    ended.set_value();
  };
  if (way == 1) {
    socket.async_read_some(
      asio::buffer(room),
      timeout_after(deadline,
                    asio::bind_executor(asio::make_strand(pool.get_executor()), handler)));
  } else {
    socket.async_read_some(asio::buffer(room), timeout_after(deadline, handler));
  }
  send();
  ended.get_future().wait();
}

}  // namespace

int main()
{
  asio::thread_pool pool(3);
  make_wheel(pool, support::with_tick(20us));
  socket_type here(pool);
  socket_type there(pool);
  support::connect_pair(here, there);
  support::delays around(0us, 300us);
  tally t;
  int way = 0;
  for (const support::race_time racing; racing; way = (way + 1) % 3) {
    const auto pause = around.next();
    read_once(
      way, here, pool, around.next(),
      [&] {
        std::this_thread::sleep_for(pause);
        asio::write(there, asio::buffer("x", 1));
        ++t.sent;
      },
      t);
    // A read that timed out has lost nothing.
    while (t.received < t.sent) {
      std::array<char, 64> room{};
      t.received += here.read_some(asio::buffer(room));
    }
  }
  pool.join();
  std::printf("%zu sent, %zu received, %zu timed out, %zu otherwise\n", t.sent, t.received,
              t.timed_out, t.other);
  return t.timed_out > 0 && t.timed_out < t.sent && t.received == t.sent && t.other == 0 ? 0 : 1;
}
