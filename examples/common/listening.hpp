// What the servers share: the options that say where to listen, and the line that says where they
// do.
#pragma once

#include "command_line.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdio>
#include <string>
#include <string_view>

namespace common {

/// Makes a check that refuses values which are not IP addresses.
inline auto is_ip_address(std::string name)
{
  return [=](const std::string& value) {
    boost::system::error_code ec;
    boost::asio::ip::make_address(value, ec);
    if (ec) throw po::error(fmt::format("--{} must be an IP address, not '{}'", name, value));
  };
}

/// Adds --address and --port, whose defaults are the values of the parameters.
inline void add_listen_options(po::options_description& options, std::string& address, int& port)
{
  auto add = options.add_options();
  add("address",
      po::value(&address)->default_value(address)->value_name("ip")->notifier(
        is_ip_address("address")),
      "IP address to listen on");
  add("port", ranged(port, "port", 0, 65'535, "n"), "port to listen on; 0 chooses a free one");
}

/// Prints that a server is ready. Flushes, because scripts wait for the line through a pipe.
inline void announce(std::string_view name, const boost::asio::ip::tcp::endpoint& where)
{
  fmt::print("{}: listening on {}\n", name, fmt::streamed(where));
  std::fflush(stdout);
}

}  // namespace common
