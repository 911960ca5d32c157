// The two ends of a TCP connection in one context, in virtual time.
#pragma once

#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>

#include "support/run.hpp"
#include "support/virtual_wheel.hpp"

namespace support {

struct tcp_ends : wheel_in_virtual_time {
  tcp_ends()
  {
    using boost::asio::ip::tcp;
    tcp::acceptor acceptor(context, {boost::asio::ip::address_v4::loopback(), 0});
    local.socket().connect(acceptor.local_endpoint());
    acceptor.accept(remote.socket());
  }

  /// Runs whatever is ready `ahead`, in virtual time, and not a tick before that.
  template <class Pending>
  void ends_after(std::chrono::milliseconds ahead, Pending pending)
  {
    time.advance(ahead - std::chrono::milliseconds(1));
    BOOST_TEST(pending());
    time.advance(std::chrono::milliseconds(1));
    BOOST_TEST(!pending());
  }

  asio_wheel::tcp_stream local{context};
  asio_wheel::tcp_stream remote{context};
};

}  // namespace support
