// L2 engine: the library's own errors.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/asio.hpp>

#include <system_error>
#include <type_traits>

namespace asio_wheel {

/// The errors that Asio has no code for.
enum class wheel_errc {
  too_many_pending = 1,  ///< `wheel_options::max_pending` waits are pending; a deadline: no memory
};

/// The category of wheel_errc.
[[nodiscard]] ASIO_WHEEL_EXPORT const error_category& wheel_category() noexcept;

/// Converts a wheel_errc to an error_code.
[[nodiscard]] inline error_code make_error_code(wheel_errc e) noexcept
{
  return {static_cast<int>(e), wheel_category()};
}

}  // namespace asio_wheel

#if !defined(ASIO_WHEEL_STANDALONE)
template <>
struct boost::system::is_error_code_enum<asio_wheel::wheel_errc> : std::true_type {};
#endif

template <>
struct std::is_error_code_enum<asio_wheel::wheel_errc> : std::true_type {};
