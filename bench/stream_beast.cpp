// What the deadlines of a boost::beast::tcp_stream cost (stream_main.hpp).
#include <boost/beast/core/tcp_stream.hpp>

#include "stream_main.hpp"

int main(int argc, char** argv)
{
  return bench::stream_main<boost::beast::tcp_stream>(
    argc, argv, "stream_beast", bench::as_it_is, [](auto& stream, auto operation, auto handler) {
      stream.expires_after(std::chrono::seconds(30));
      operation(handler);
    });
}
