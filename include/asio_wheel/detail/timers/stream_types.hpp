// L3 timers: a stream's types from its next layer, and its endpoints.
#pragma once

#include <asio_wheel/asio.hpp>

#include ASIO_WHEEL_ASIO(connect.hpp)

#include <concepts>
#include <utility>

namespace asio_wheel::detail {

/// The protocol and endpoint of a socket; nothing for another kind of layer.
template <class Socket>
struct stream_types {};
template <class Socket>
  requires requires
  {
    typename Socket::protocol_type;
    typename Socket::endpoint_type;
  }
struct stream_types<Socket> {
  using protocol_type = typename Socket::protocol_type;  ///< of the socket
  using endpoint_type = typename Socket::endpoint_type;  ///< of the socket
};

/// One endpoint that a socket can be connected to.
template <class T, class Socket>
concept endpoint_of = std::convertible_to<const T&, typename Socket::endpoint_type>;

template <class T>
concept endpoint_sequence = static_cast<bool>(asio::is_endpoint_sequence<T>::value);

/// A token for connecting to one of several endpoints.
template <class T, class Socket>
concept connect_token =
  asio::completion_token_for<T, void(error_code, typename Socket::endpoint_type)>;

/// Returns true if an endpoint is to be tried or, in the older form, returns the endpoint to try
/// next.
template <class T, class Iterator>
concept connect_condition =
  std::predicate<T&, const error_code&, decltype(*std::declval<Iterator>())> ||
  requires(T& condition, const error_code& ec, Iterator i)
{
  {
    condition(ec, i)
    } -> std::convertible_to<Iterator>;
};

template <class T, class Endpoints>
concept connect_condition_of = connect_condition<T, typename Endpoints::const_iterator>;

/// The condition that any endpoint meets.
struct any_endpoint {
  template <class Endpoint>
  bool operator()(const error_code&, const Endpoint&) const noexcept
  {
    return true;
  }
};

}  // namespace asio_wheel::detail
