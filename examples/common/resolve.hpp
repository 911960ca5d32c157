// Resolves the name of a server.
#pragma once

#include <fmt/format.h>
#include <boost/asio.hpp>

#include <stdexcept>
#include <string>
#include <vector>

namespace common {

using endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

/// Resolves `host`; blocks until that is done. Throws std::runtime_error that names the host.
inline endpoints resolve(boost::asio::io_context& context, const std::string& host, int port)
{
  try {
    const auto found = boost::asio::ip::tcp::resolver(context).resolve(host, fmt::to_string(port));
    return {found.begin(), found.end()};
  } catch (const boost::system::system_error& e) {
    throw std::runtime_error(fmt::format("cannot resolve '{}': {}", host, e.code().message()));
  }
}

}  // namespace common
