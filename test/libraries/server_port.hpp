// Where the server of a test listens, on 127.0.0.1.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace support {

inline std::string server_port()
{
  const char* const port = std::getenv("ASIO_WHEEL_SERVER_PORT");
  if (!port) throw std::runtime_error("no server: run this with test/libraries/check.sh");
  return port;
}

}  // namespace support
