// L2 engine: a symbol that makes linking fail if the library and the program differ in their Asio.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

// Not all of asio.hpp: with some settings it compiles on other platforms only.
// clang-format off
#include ASIO_WHEEL_ASIO(cancellation_type.hpp)  // and with it Asio's settings
#include ASIO_WHEEL_ASIO(version.hpp)
// clang-format on
#if !defined(ASIO_WHEEL_STANDALONE)
#include <boost/version.hpp>
#endif

// If a library and a program differ in one of the settings below, they disagree about objects that
// both touch. They would link and then hang or crash: the library was compiled for another
// io_context than the program's. So each setting is a part of a name. Every file that includes this
// header refers to the name, and only a library with equal settings defines it.
//
// Boost.Asio and the standalone Asio have equal settings, with and without BOOST_ in front. If a
// program includes both, the settings of the library's Asio count.
//
// Some settings are left out, as the two sides may differ in them: BOOST_ASIO_SEPARATE_COMPILATION
// and HEADER_ONLY, NO_DEPRECATED, NO_EXTENSIONS, and ENABLE_BUFFER_DEBUGGING, since no buffer
// passes through the library. The code below tests Asio's conclusions (HAS_...) where there are
// any, as they depend on the platform, too.

// How threads wait for events: the class of the reactor.
#if defined(ASIO_WHEEL_STANDALONE) ? defined(ASIO_HAS_IOCP) : defined(BOOST_ASIO_HAS_IOCP)
#define ASIO_WHEEL_ABI_REACTOR _iocp
#elif defined(ASIO_WHEEL_STANDALONE) ? defined(ASIO_HAS_IO_URING_AS_DEFAULT) \
                                     : defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT)
#define ASIO_WHEEL_ABI_REACTOR _io_uring
#elif defined(ASIO_WHEEL_STANDALONE) ? defined(ASIO_HAS_EPOLL) : defined(BOOST_ASIO_HAS_EPOLL)
#define ASIO_WHEEL_ABI_REACTOR _epoll
#elif defined(ASIO_WHEEL_STANDALONE) ? defined(ASIO_HAS_KQUEUE) : defined(BOOST_ASIO_HAS_KQUEUE)
#define ASIO_WHEEL_ABI_REACTOR _kqueue
#elif defined(ASIO_WHEEL_STANDALONE) ? defined(ASIO_HAS_DEV_POLL) : defined(BOOST_ASIO_HAS_DEV_POLL)
#define ASIO_WHEEL_ABI_REACTOR _dev_poll
#else
#define ASIO_WHEEL_ABI_REACTOR _select
#endif

// Recycled blocks note their size in units of 8 bytes with io_uring, else of 4.
#if defined(ASIO_WHEEL_STANDALONE)                                         \
  ? (defined(ASIO_HAS_IO_URING) && !defined(ASIO_HAS_IO_URING_AS_DEFAULT)) \
  : (defined(BOOST_ASIO_HAS_IO_URING) && !defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT))
#define ASIO_WHEEL_ABI_IO_URING _and_io_uring
#else
#define ASIO_WHEEL_ABI_IO_URING
#endif

// A reactor is woken through an eventfd or a pipe: a write to the one must not go to the other.
#if defined(ASIO_WHEEL_STANDALONE) ? (defined(__linux__) && !defined(ASIO_HAS_EVENTFD)) \
                                   : (defined(__linux__) && !defined(BOOST_ASIO_HAS_EVENTFD))
#define ASIO_WHEEL_ABI_EVENTFD _no_eventfd
#else
#define ASIO_WHEEL_ABI_EVENTFD
#endif

// Without a timerfd here, nobody sets the timerfd that the other side relies on.
#if defined(ASIO_WHEEL_STANDALONE)                          \
  ? (defined(ASIO_HAS_EPOLL) && !defined(ASIO_HAS_TIMERFD)) \
  : (defined(BOOST_ASIO_HAS_EPOLL) && !defined(BOOST_ASIO_HAS_TIMERFD))
#define ASIO_WHEEL_ABI_TIMERFD _no_timerfd
#else
#define ASIO_WHEEL_ABI_TIMERFD
#endif

// What mutexes, events and threads are: empty classes, POSIX's, or Windows'. With MinGW the choice
// between the last two depends on what a file includes before Asio, so src/CMakeLists.txt decides.
#if defined(ASIO_WHEEL_STANDALONE) ? !defined(ASIO_HAS_THREADS) : !defined(BOOST_ASIO_HAS_THREADS)
#define ASIO_WHEEL_ABI_THREADS _no_threads
#elif defined(ASIO_WHEEL_STANDALONE) ? !defined(ASIO_HAS_PTHREADS) \
                                     : !defined(BOOST_ASIO_HAS_PTHREADS)
#define ASIO_WHEEL_ABI_THREADS _no_pthreads
#else
#define ASIO_WHEEL_ABI_THREADS
#endif

// The way to a thread's own data, by which Asio knows that the thread runs a context.
#if defined(ASIO_WHEEL_STANDALONE)                                             \
  ? (defined(ASIO_HAS_THREADS) && !defined(ASIO_HAS_THREAD_KEYWORD_EXTENSION)) \
  : (defined(BOOST_ASIO_HAS_THREADS) && !defined(BOOST_ASIO_HAS_THREAD_KEYWORD_EXTENSION))
#define ASIO_WHEEL_ABI_THREAD_KEYWORD _no_thread_keyword
#else
#define ASIO_WHEEL_ABI_THREAD_KEYWORD
#endif

// Each operation has a number.
#if defined(ASIO_WHEEL_STANDALONE) ? defined(ASIO_CUSTOM_HANDLER_TRACKING) \
                                   : defined(BOOST_ASIO_CUSTOM_HANDLER_TRACKING)
#define ASIO_WHEEL_ABI_TRACKING _custom_tracking
#elif defined(ASIO_WHEEL_STANDALONE) ? defined(ASIO_ENABLE_HANDLER_TRACKING) \
                                     : defined(BOOST_ASIO_ENABLE_HANDLER_TRACKING)
#define ASIO_WHEEL_ABI_TRACKING _tracking
#else
#define ASIO_WHEEL_ABI_TRACKING
#endif

// The class any_io_executor, and what executor_work_guard holds.
#if defined(ASIO_WHEEL_STANDALONE) ? defined(ASIO_USE_TS_EXECUTOR_AS_DEFAULT) \
                                   : defined(BOOST_ASIO_USE_TS_EXECUTOR_AS_DEFAULT)
#define ASIO_WHEEL_ABI_EXECUTORS _ts_executor_as_default
#elif defined(ASIO_WHEEL_STANDALONE) ? defined(ASIO_NO_TS_EXECUTORS) \
                                     : defined(BOOST_ASIO_NO_TS_EXECUTORS)
#define ASIO_WHEEL_ABI_EXECUTORS _no_ts_executors
#else
#define ASIO_WHEEL_ABI_EXECUTORS
#endif

// A recycled block has an extra byte. Freeing the block writes to it.
#if defined(ASIO_WHEEL_STANDALONE)                                                       \
  ? (defined(ASIO_DISABLE_SMALL_BLOCK_RECYCLING) || defined(ASIO_DISABLE_HANDLER_HOOKS)) \
  : (defined(BOOST_ASIO_DISABLE_SMALL_BLOCK_RECYCLING) ||                                \
     defined(BOOST_ASIO_DISABLE_HANDLER_HOOKS))
#define ASIO_WHEEL_ABI_RECYCLING _no_recycling
#else
#define ASIO_WHEEL_ABI_RECYCLING
#endif

// How many blocks fit into a thread's own data. A plain number, as it becomes a part of a name.
#define ASIO_WHEEL_ABI_CACHE_OF(n) _cache_of_##n
#define ASIO_WHEEL_ABI_CACHE_OF_VALUE(n) ASIO_WHEEL_ABI_CACHE_OF(n)
#if defined(ASIO_WHEEL_STANDALONE)
#if defined(ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE) && ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE != 2
#define ASIO_WHEEL_ABI_CACHE ASIO_WHEEL_ABI_CACHE_OF_VALUE(ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE)
#endif
#elif defined(BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE) && \
  BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE != 2
#define ASIO_WHEEL_ABI_CACHE \
  ASIO_WHEEL_ABI_CACHE_OF_VALUE(BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE)
#endif
#if !defined(ASIO_WHEEL_ABI_CACHE)
#define ASIO_WHEEL_ABI_CACHE
#endif

// A thread's own data keeps an exception on its way out of a handler.
#if defined(ASIO_WHEEL_STANDALONE)                                        \
  ? (defined(ASIO_NO_EXCEPTIONS) || !defined(ASIO_HAS_STD_EXCEPTION_PTR)) \
  : (defined(BOOST_ASIO_NO_EXCEPTIONS) || !defined(BOOST_ASIO_HAS_STD_EXCEPTION_PTR))
#define ASIO_WHEEL_ABI_EXCEPTIONS _no_exceptions
#else
#define ASIO_WHEEL_ABI_EXCEPTIONS
#endif

// A context finds its services by their type, or by a number: it would have each service twice.
#if defined(ASIO_WHEEL_STANDALONE) ? defined(ASIO_NO_TYPEID) : defined(BOOST_ASIO_NO_TYPEID)
#define ASIO_WHEEL_ABI_TYPEID _no_typeid
#else
#define ASIO_WHEEL_ABI_TYPEID
#endif

// Which Asio it is.
#if defined(ASIO_WHEEL_STANDALONE)
#define ASIO_WHEEL_ABI_VERSIONS standalone_asio_, ASIO_VERSION
#else
#define ASIO_WHEEL_ABI_BOOST(version) boost_##version##_asio_
#define ASIO_WHEEL_ABI_BOOST_VALUE(version) ASIO_WHEEL_ABI_BOOST(version)
#define ASIO_WHEEL_ABI_VERSIONS ASIO_WHEEL_ABI_BOOST_VALUE(BOOST_VERSION), BOOST_ASIO_VERSION
#endif

#define ASIO_WHEEL_ABI_JOIN(which, asio, a, b, c, d, e, f, g, h, i, j, k, l) \
  which##asio##a##b##c##d##e##f##g##h##i##j##k##l
#define ASIO_WHEEL_ABI_JOIN_VALUES(...) ASIO_WHEEL_ABI_JOIN(__VA_ARGS__)
#define ASIO_WHEEL_ABI_NAME                                                           \
  ASIO_WHEEL_ABI_JOIN_VALUES(                                                         \
    ASIO_WHEEL_ABI_VERSIONS, ASIO_WHEEL_ABI_REACTOR, ASIO_WHEEL_ABI_IO_URING,         \
    ASIO_WHEEL_ABI_EVENTFD, ASIO_WHEEL_ABI_TIMERFD, ASIO_WHEEL_ABI_THREADS,           \
    ASIO_WHEEL_ABI_THREAD_KEYWORD, ASIO_WHEEL_ABI_TRACKING, ASIO_WHEEL_ABI_EXECUTORS, \
    ASIO_WHEEL_ABI_RECYCLING, ASIO_WHEEL_ABI_CACHE, ASIO_WHEEL_ABI_EXCEPTIONS,        \
    ASIO_WHEEL_ABI_TYPEID)

// Keeps a variable that nobody reads: `used` from the compiler, `retain` from --gc-sections.
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(gnu::retain) && defined(__ELF__)
#define ASIO_WHEEL_ABI_KEEP [[gnu::used, gnu::retain]]
#elif __has_cpp_attribute(gnu::used)
#define ASIO_WHEEL_ABI_KEEP [[gnu::used]]
#endif
#endif
#if !defined(ASIO_WHEEL_ABI_KEEP)
#define ASIO_WHEEL_ABI_KEEP
#endif

namespace asio_wheel::detail {

/// If the linker sends you here, compile the library and the program with one Boost, one Asio
/// (Boost's or the standalone Asio) and equal settings of Asio. The linker names the program's
/// settings; `nm -C libasio_wheel.a | grep library_and_program` shows the library's.
namespace library_and_program_must_use_the_same_boost_and_asio_settings {

/// Costs a program one pointer.
struct ASIO_WHEEL_ABI_NAME {
  /// Defined by the library; never called.
  ASIO_WHEEL_EXPORT static void agreed() noexcept;

  /// The reference. It is a member, so that its name depends on the settings: of several variables
  /// of one name the linker keeps only one, and with it only one reference.
  ASIO_WHEEL_ABI_KEEP static inline void (*const reference)() noexcept = &agreed;
};

using settings = ASIO_WHEEL_ABI_NAME;

}  // namespace library_and_program_must_use_the_same_boost_and_asio_settings
}  // namespace asio_wheel::detail

#undef ASIO_WHEEL_ABI_REACTOR
#undef ASIO_WHEEL_ABI_IO_URING
#undef ASIO_WHEEL_ABI_EVENTFD
#undef ASIO_WHEEL_ABI_TIMERFD
#undef ASIO_WHEEL_ABI_THREADS
#undef ASIO_WHEEL_ABI_THREAD_KEYWORD
#undef ASIO_WHEEL_ABI_TRACKING
#undef ASIO_WHEEL_ABI_EXECUTORS
#undef ASIO_WHEEL_ABI_RECYCLING
#undef ASIO_WHEEL_ABI_CACHE_OF
#undef ASIO_WHEEL_ABI_CACHE_OF_VALUE
#undef ASIO_WHEEL_ABI_CACHE
#undef ASIO_WHEEL_ABI_EXCEPTIONS
#undef ASIO_WHEEL_ABI_TYPEID
#undef ASIO_WHEEL_ABI_VERSIONS
#undef ASIO_WHEEL_ABI_BOOST
#undef ASIO_WHEEL_ABI_BOOST_VALUE
#undef ASIO_WHEEL_ABI_JOIN
#undef ASIO_WHEEL_ABI_JOIN_VALUES
#undef ASIO_WHEEL_ABI_NAME
#undef ASIO_WHEEL_ABI_KEEP
