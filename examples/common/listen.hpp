// How the servers listen.
#pragma once

#include <fmt/format.h>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace common {

/// Throws std::runtime_error that names the address.
///
/// @param where  the acceptor's executor, or its context
template <class ExecutorOrContext>
boost::asio::ip::tcp::acceptor listen(ExecutorOrContext&& where, const std::string& address,
                                      int port)
{
  using boost::asio::ip::tcp;
  try {
    const auto ip = boost::asio::ip::make_address(address);
    tcp::acceptor acceptor(where, {ip, static_cast<std::uint16_t>(port)});
    // Accepted sockets inherit it. Left to itself, the kernel keeps megabytes for each client that
    // reads slowly, and takes more only when a third of them has gone.
    acceptor.set_option(tcp::socket::send_buffer_size(64 * 1024));
    return acceptor;
  } catch (const boost::system::system_error& e) {
    throw std::runtime_error(
      fmt::format("cannot listen on {}, port {}: {}", address, port, e.code().message()));
  }
}

}  // namespace common
