// Two simulated streams in virtual time, and what their operations have said.
#pragma once

#include <array>
#include <asio_wheel/simulated_stream.hpp>
#include <boost/asio/buffer.hpp>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "support/manual_operation.hpp"
#include "support/virtual_wheel.hpp"

namespace support {

struct simulated_ends : wheel_in_virtual_time {
  explicit simulated_ends(const asio_wheel::simulated_link& link = {},
                          asio_wheel::wheel_options options = {})
    : wheel_in_virtual_time(options),
      ends(simulated_pair(wheel, link))
  {}

  /// Calls what is ready, without letting time pass. poll() alone would not do on Windows, where a
  /// thread of Asio's own notices that a timer has expired.
  void run_ready() { time.advance(std::chrono::nanoseconds{}); }

  void start_read()
  {
    read = {};
    server.async_read_some(boost::asio::buffer(room), read.recorder());
  }

  /// The text must live until the operation has ended.
  void start_write(std::string_view text)
  {
    written = {};
    client.async_write_some(boost::asio::buffer(text), written.recorder());
  }

  /// Writes from the client, to whom nothing must be in the way.
  void say(std::string_view text)
  {
    start_write(text);
    run_ready();
    BOOST_TEST_REQUIRE(written.succeeded(text.size()));
  }

  /// What the server can read now, without letting time pass.
  [[nodiscard]] std::string heard()
  {
    std::string all;
    for (;;) {
      start_read();
      run_ready();
      if (read.pending() || read.error || read.size == 0) break;
      all.append(room.data(), read.size);
    }
    server.cancel();
    run_ready();
    return all;
  }

  std::pair<asio_wheel::simulated_stream, asio_wheel::simulated_stream> ends;
  asio_wheel::simulated_stream& client = ends.first;
  asio_wheel::simulated_stream& server = ends.second;
  std::array<char, 65536> room{};
  result read;
  result written;
};

}  // namespace support
