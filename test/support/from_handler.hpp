// What handlers throw, and a way to run through it.
#pragma once

#include <boost/asio/multiple_exceptions.hpp>
#include <stdexcept>

#include "support/run.hpp"

namespace support {

struct from_handler : std::runtime_error {
  from_handler() : std::runtime_error("from a handler") {}
};

/// Runs a context to its end, through all exceptions. How many left run().
inline int run_through_exceptions(boost::asio::io_context& context)
{
  int thrown = 0;
  for (;;) {
    try {
      run_to_end(context);
      return thrown;
    } catch (const from_handler&) {
      ++thrown;
    } catch (const boost::asio::multiple_exceptions&) {
      ++thrown;
    }
  }
}

}  // namespace support
