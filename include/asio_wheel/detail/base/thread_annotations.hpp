// L0 base: tells Clang's -Wthread-safety about locks; expands to nothing for other compilers.
#pragma once

#if defined(__clang__)
#define ASIO_WHEEL_ATTRIBUTE(x) __attribute__((x))
#else
#define ASIO_WHEEL_ATTRIBUTE(x)
#endif

// For classes and members.
#define ASIO_WHEEL_LOCK ASIO_WHEEL_ATTRIBUTE(capability("lock"))
#define ASIO_WHEEL_SCOPED_LOCK ASIO_WHEEL_ATTRIBUTE(scoped_lockable)
#define ASIO_WHEEL_GUARDED_BY(lock) ASIO_WHEEL_ATTRIBUTE(guarded_by(lock))

// For functions: the lock that they require, exclude, take, release or return.
#define ASIO_WHEEL_REQUIRES(lock) ASIO_WHEEL_ATTRIBUTE(requires_capability(lock))
#define ASIO_WHEEL_EXCLUDES(lock) ASIO_WHEEL_ATTRIBUTE(locks_excluded(lock))
#define ASIO_WHEEL_ACQUIRE(...) ASIO_WHEEL_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define ASIO_WHEEL_TRY_ACQUIRE(...) ASIO_WHEEL_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define ASIO_WHEEL_RELEASE(...) ASIO_WHEEL_ATTRIBUTE(release_capability(__VA_ARGS__))
#define ASIO_WHEEL_RETURNS(lock) ASIO_WHEEL_ATTRIBUTE(lock_returned(lock))

// What Clang must believe: that a lock is held, or that all is well. The latter needs a reason.
#define ASIO_WHEEL_ASSERTS(lock) ASIO_WHEEL_ATTRIBUTE(assert_capability(lock))
#define ASIO_WHEEL_NO_LOCK_ANALYSIS ASIO_WHEEL_ATTRIBUTE(no_thread_safety_analysis)
