// Two connected sockets: local ones, or TCP where the system has no pairs of local ones.
#pragma once

#if defined(_WIN32)
#include <boost/asio/ip/tcp.hpp>
#else
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#endif

namespace support {

#if defined(_WIN32)
using pair_protocol = boost::asio::ip::tcp;
#else
using pair_protocol = boost::asio::local::stream_protocol;
#endif
using pair_socket = pair_protocol::socket;

/// Sockets of `pair_protocol`, on whichever executors.
template <class One, class Other>
void connect_pair(One& one, Other& other)
{
#if defined(_WIN32)
  const pair_protocol::endpoint anywhere(boost::asio::ip::address_v4::loopback(), 0);
  boost::asio::basic_socket_acceptor<pair_protocol, typename One::executor_type> acceptor(
    one.get_executor(), anywhere);
  one.connect(acceptor.local_endpoint());
  acceptor.accept(other);
#else
  boost::asio::local::connect_pair(one, other);
#endif
}

}  // namespace support
