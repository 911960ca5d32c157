// An exception for handlers to throw, and a way to run through it.
#pragma once

#include <boost/asio/multiple_exceptions.hpp>
#include <stdexcept>

#include "support/run.hpp"

namespace support {

struct from_handler : std::runtime_error {
  from_handler() : std::runtime_error("from a handler") {}
};

/// Runs a context through all exceptions, until it is out of work. Returns how many left run().
/// Several threads may do so.
inline int count_exceptions(boost::asio::io_context& context)
{
  int thrown = 0;
  for (;;) {
    try {
      context.run_for(patience);
      return thrown;
    } catch (const from_handler&) {
      ++thrown;
    } catch (const boost::asio::multiple_exceptions&) {
      ++thrown;
    }
  }
}

/// The same for a context that may have been out of work before.
inline int run_through_exceptions(boost::asio::io_context& context)
{
  context.restart();
  const int thrown = count_exceptions(context);
  run_to_end(context);
  return thrown;
}

}  // namespace support
