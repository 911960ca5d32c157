// What the deadlines of an asio_wheel::tcp_stream cost (stream_main.hpp).
#include <asio_wheel.hpp>
#include <asio_wheel/timed_stream.hpp>

#include "stream_main.hpp"

int main(int argc, char** argv)
{
  return bench::stream_main<asio_wheel::tcp_stream>(
    argc, argv, "stream_wheel", bench::as_it_is, [](auto& stream, auto operation, auto handler) {
      stream.expires_after(std::chrono::seconds(30));
      operation(handler);
    });
}
