// The result of one wait: how often its handler was called, and with which error.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <ostream>

namespace support {

struct outcome {
  int calls = 0;
  boost::system::error_code error;

  [[nodiscard]] bool pending() const { return calls == 0; }
  [[nodiscard]] bool succeeded() const { return calls == 1 && !error; }
  [[nodiscard]] bool aborted() const
  {
    return calls == 1 && error == boost::asio::error::operation_aborted;
  }

  /// A handler that writes here. The outcome must outlive it.
  [[nodiscard]] auto recorder()
  {
    return [this](boost::system::error_code ec, const auto&...) {
      ++calls;
      error = ec;
    };
  }
};

}  // namespace support
