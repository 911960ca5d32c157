// L2 service: the library's own errors.
#pragma once

#include <asio_wheel/ground/export.hpp>
#include <asio_wheel/service/asio.hpp>

#include <system_error>
#include <type_traits>

namespace asio_wheel {

enum class wheel_errc {
  too_many_pending = 1,  ///< `wheel_options::max_pending` waits were pending already
};

[[nodiscard]] ASIO_WHEEL_EXPORT const boost::system::error_category& wheel_category() noexcept;

[[nodiscard]] inline error_code make_error_code(wheel_errc e) noexcept
{
  return {static_cast<int>(e), wheel_category()};
}

}  // namespace asio_wheel

template <>
struct boost::system::is_error_code_enum<asio_wheel::wheel_errc> : std::true_type {};

template <>
struct std::is_error_code_enum<asio_wheel::wheel_errc> : std::true_type {};
