// L2 engine: Asio, Boost's or the standalone Asio, and the names that the library borrows from it.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

// What nearly every part of the library needs. A part includes what only it needs, with this macro.
// clang-format off
#include ASIO_WHEEL_ASIO(any_io_executor.hpp)
#include ASIO_WHEEL_ASIO(associated_allocator.hpp)
#include ASIO_WHEEL_ASIO(associated_cancellation_slot.hpp)
#include ASIO_WHEEL_ASIO(associated_executor.hpp)
#include ASIO_WHEEL_ASIO(associator.hpp)
#include ASIO_WHEEL_ASIO(async_result.hpp)
#include ASIO_WHEEL_ASIO(cancellation_type.hpp)
#include ASIO_WHEEL_ASIO(deferred.hpp)
#include ASIO_WHEEL_ASIO(dispatch.hpp)
#include ASIO_WHEEL_ASIO(error.hpp)
#include ASIO_WHEEL_ASIO(execution/allocator.hpp)
#include ASIO_WHEEL_ASIO(execution/blocking.hpp)
#include ASIO_WHEEL_ASIO(execution/context.hpp)
#include ASIO_WHEEL_ASIO(execution/outstanding_work.hpp)
#include ASIO_WHEEL_ASIO(execution_context.hpp)
#include ASIO_WHEEL_ASIO(executor_work_guard.hpp)
#include ASIO_WHEEL_ASIO(io_context.hpp)
#include ASIO_WHEEL_ASIO(post.hpp)
#include ASIO_WHEEL_ASIO(prefer.hpp)
#include ASIO_WHEEL_ASIO(query.hpp)
#include ASIO_WHEEL_ASIO(require.hpp)
#include ASIO_WHEEL_ASIO(strand.hpp)
#include ASIO_WHEEL_ASIO(thread_pool.hpp)
#include ASIO_WHEEL_ASIO(version.hpp)
#include ASIO_WHEEL_ASIO(wait_traits.hpp)
// clang-format on

#if defined(ASIO_WHEEL_STANDALONE)
#include <system_error>
#else
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#endif

#include <type_traits>

#if defined(ASIO_WHEEL_STANDALONE) && ASIO_VERSION < 103000
#error asio_wheel needs Asio 1.30 or newer
#endif

namespace asio_wheel {

#if defined(ASIO_WHEEL_STANDALONE)
namespace asio = ::asio;
using std::error_category;
using std::error_code;
using std::system_error;
#else
namespace asio = boost::asio;
using boost::system::error_category;
using boost::system::error_code;
using boost::system::system_error;
#endif

namespace detail {
/// The default completion token of `Executor`, or asio::deferred if it has none.
template <class Executor>
using default_token_for =
  std::conditional_t<std::is_void_v<typename asio::default_completion_token<Executor>::type>,
                     asio::deferred_t, typename asio::default_completion_token<Executor>::type>;
}  // namespace detail

}  // namespace asio_wheel
