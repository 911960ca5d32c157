// From the name of a server to where it is.
#pragma once

#include <fmt/format.h>
#include <boost/asio.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace rpc {

using endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

/// Blocks until the name is resolved. Throws std::runtime_error, which names it.
inline endpoints resolve(boost::asio::io_context& context, const std::string& host, int port)
{
  try {
    const auto found = boost::asio::ip::tcp::resolver(context).resolve(host, fmt::to_string(port));
    return {found.begin(), found.end()};
  } catch (const boost::system::system_error& e) {
    throw std::runtime_error(fmt::format("cannot resolve '{}': {}", host, e.code().message()));
  }
}

}  // namespace rpc
