// L2 engine: aborts that are exceptions.
#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/completion_result.hpp>

#include ASIO_WHEEL_ASIO(multiple_exceptions.hpp)

namespace asio_wheel::detail {

bool is_abort(const std::exception_ptr& e) noexcept
{
  if (!e) return false;
  try {
    std::rethrow_exception(e);
  } catch (const system_error& error) {
    return error.code() == asio::error::operation_aborted;
  } catch (const asio::multiple_exceptions& several) {
    return is_abort(several.first_exception());
  } catch (...) {
    return false;
  }
}

std::exception_ptr exception_of(const error_code& ec) noexcept
{
  return std::make_exception_ptr(system_error(ec));
}

}  // namespace asio_wheel::detail
