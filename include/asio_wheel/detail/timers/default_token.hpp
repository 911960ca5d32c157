// L3 timers: the completion token of an operation called without a token.
#pragma once

#include <asio_wheel/asio.hpp>

#include <type_traits>

namespace asio_wheel::detail {

/// The default completion token of `Executor`, or asio::deferred if it has none.
template <class Executor>
using default_token_for =
  std::conditional_t<std::is_void_v<typename asio::default_completion_token<Executor>::type>,
                     asio::deferred_t, typename asio::default_completion_token<Executor>::type>;

}  // namespace asio_wheel::detail
