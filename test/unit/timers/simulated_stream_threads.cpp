// Streams in memory whose ends are used by two threads at once, and connections that come from a
// third.
#include <array>
#include <asio_wheel.hpp>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using boost::system::error_code;

namespace {

/// Reads and writes on a strand until it has had enough, and then closes in its own way.
struct end : std::enable_shared_from_this<end> {
  end(simulated_stream s, unsigned m, std::atomic<int>& l)
    : stream(std::move(s)),
      manner(m),
      living(l)
  {
    ++living;
  }
  end(const end&) = delete;
  end& operator=(const end&) = delete;
  ~end() { --living; }

  void run()
  {
    asio::post(stream.get_executor(), [self = shared_from_this()] {
      self->read();
      self->write();
    });
  }

  void read()
  {
    stream.async_read_some(asio::buffer(room),
                           [self = shared_from_this()](error_code ec, std::size_t) {
                             if (!ec) self->read();
                           });
  }

  void write()
  {
    stream.async_write_some(asio::buffer(text),
                            timeout_after(5ms, [self = shared_from_this()](error_code ec, auto) {
                              if (++self->writes == 50) return self->leave();
                              if (self->writes % 16 == 0) self->stream.cancel(), self->read();
                              if (ec && ec != asio::error::timed_out) return self->leave();
                              self->write();
                            }));
  }

  void leave()
  {
    switch (manner % 4) {
      case 0: stream.reset(); break;
      case 1: stream.inject_after(100us, simulated_fault::drop); break;
      case 2: stream.inject_after_bytes(1, simulated_fault::half_close); break;
      default: break;
    }
    stream.close();
  }

  simulated_stream stream;
  const unsigned manner;
  std::atomic<int>& living;
  const std::string text = std::string(700, 'x');
  std::array<char, 300> room{};
  int writes = 0;
};

/// Accepts until it fails.
void accept(simulated_acceptor& acceptor, std::atomic<int>& living, unsigned n)
{
  acceptor.async_accept([&, n](error_code ec, simulated_stream stream) {
    if (ec) return;
    std::make_shared<end>(std::move(stream), n, living)->run();
    accept(acceptor, living, n + 1);
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(threads_and_streams_in_memory)

BOOST_AUTO_TEST_CASE(two_ends_are_used_at_once)
{
  std::atomic<int> living = 0;
  for (unsigned round = 0; round < 16; ++round) {
    asio::thread_pool pool(2);
    auto& wheel = make_wheel(pool);
    auto [first, second] =
      simulated_pair(wheel, {.latency = 50us, .jitter = 100us, .send_buffer = 2000, .seed = round},
                     asio::any_io_executor(asio::make_strand(pool)),
                     asio::any_io_executor(asio::make_strand(pool)));
    std::make_shared<end>(std::move(first), round, living)->run();
    std::make_shared<end>(std::move(second), round / 4, living)->run();
    pool.join();
    BOOST_TEST(wheel.pending() == 0U);
  }
  BOOST_TEST(living == 0);
}

BOOST_AUTO_TEST_CASE(connections_come_from_another_thread)
{
  std::atomic<int> living = 0;
  asio::thread_pool pool(2);
  auto& wheel = make_wheel(pool);
  const asio::any_io_executor strand = asio::make_strand(pool);
  simulated_acceptor acceptor(wheel_place<>(wheel, strand));
  asio::post(strand, [&] { accept(acceptor, living, 0); });
  for (unsigned i = 0; i < 8; ++i) {
    const asio::any_io_executor own = asio::make_strand(pool);
    std::make_shared<end>(acceptor.connect({.latency = 50us, .send_buffer = 2000}, own), i, living)
      ->run();
  }
  asio::post(strand, [&] {
    // Behind the last of them.
    wheel.async_wait(20ms, asio::bind_executor(strand, [&](error_code) { acceptor.close(); }));
  });
  pool.join();
  BOOST_TEST(wheel.pending() == 0U);
  BOOST_TEST(living == 0);
}

BOOST_AUTO_TEST_SUITE_END()
