// Asio's timer and ours. A parity case runs once with each.
#pragma once

#include <asio_wheel.hpp>
#include <asio_wheel/drop_in.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <tuple>
namespace support {

using every_timer =
  std::tuple<boost::asio::steady_timer, asio_wheel::wheel_timer, asio_wheel::drop_in::steady_timer>;

template <class Timer, class Executor>
using rebound = typename Timer::template rebind_executor<Executor>::other;

/// The same timer, with the executor's type known.
template <class Timer>
using on_io_context = rebound<Timer, boost::asio::io_context::executor_type>;

}  // namespace support
