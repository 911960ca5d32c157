// What a pending read ends with when its socket is closed.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>

#include "support/run.hpp"
#include "support/socket_pair.hpp"

namespace support {

/// operation_aborted, but under wine, which has an error of its own.
inline boost::system::error_code error_of_closing()
{
  boost::asio::io_context context;
  pair_socket socket(context);
  pair_socket peer(context);
  connect_pair(socket, peer);
  std::array<char, 1> room{};
  boost::system::error_code error;
  socket.async_read_some(boost::asio::buffer(room),
                         [&](boost::system::error_code ec, std::size_t) { error = ec; });
  socket.close();
  run_to_end(context);
  return error;
}

}  // namespace support
