// A library to preload. It sleeps in one of so many readings of the clock and returns from
// epoll_wait, as if the machine had taken the processor away. run.sh runs the tests with it.
//
//   ASIO_WHEEL_STALL_ONE_IN  one in so many calls sleeps (1000)
//   ASIO_WHEEL_STALL_MAX_MS  for up to so many milliseconds (150)
//   ASIO_WHEEL_STALL_SEED    decides which calls sleep, and for how long (1)
//
// The same seed makes the same calls of the first thread sleep, the same of the second, and so on;
// threads count in the order of their first calls. For Linux with glibc, where std::chrono calls
// clock_gettime; Asio waits in epoll_wait.
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <system_error>

namespace {

struct settings {
  std::uint32_t one_in = 0;  ///< 0 until configure() has run: what starts before it does not sleep
  std::uint32_t max_ms = 0;
  std::uint32_t seed = 0;
};

constinit settings chosen;
constinit std::atomic<std::uint32_t> threads{0};

/// The value of a variable, from `min` to `max`. Any other value ends the process.
std::uint32_t read_variable(const char* name, std::uint32_t fallback, std::uint32_t min,
                            std::uint32_t max)
{
  const char* const text = std::getenv(name);
  if (!text) return fallback;
  const char* const end = text + std::strlen(text);
  std::uint32_t value = 0;
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error == std::errc{} && stop == end && value >= min && value <= max) return value;
  std::fprintf(stderr, "%s=%s: must be a whole number from %u to %u\n", name, text, min, max);
  ::_exit(2);
}

[[gnu::constructor]] void configure()
{
  chosen.max_ms = read_variable("ASIO_WHEEL_STALL_MAX_MS", 150, 1, 60'000);
  chosen.seed = read_variable("ASIO_WHEEL_STALL_SEED", 1, 0, UINT32_MAX);
  chosen.one_in = read_variable("ASIO_WHEEL_STALL_ONE_IN", 1000, 1, UINT32_MAX);
}

/// Allocates nothing, because tests count allocations and let the heap run out.
std::mt19937_64& random_numbers()
{
  thread_local std::mt19937_64 engine((std::uint64_t{chosen.seed} << 32) + threads++);
  return engine;
}

void sleep_for(std::int64_t nanoseconds)
{
  const timespec time{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  const int before = errno;
  // Not through glibc, where this would be a cancellation point. A signal ends the sleep early.
  ::syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
  errno = before;
}

/// Sleeps after the call, which is also before the next one.
void maybe_stall()
{
  // A signal handler may read the clock while its thread is in here.
  constinit thread_local std::atomic<bool> inside{false};
  if (chosen.one_in == 0 || inside.exchange(true)) return;
  std::mt19937_64& random = random_numbers();
  if (std::uniform_int_distribution<std::uint32_t>(1, chosen.one_in)(random) == 1) {
    const std::int64_t longest = std::int64_t{chosen.max_ms} * 1'000'000;
    sleep_for(std::uniform_int_distribution<std::int64_t>(1, longest)(random));
  }
  inside = false;
}

/// The function that the one in this file hides.
template <class Function>
Function* hidden(const char* name)
{
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept
{
  static const auto original = hidden<decltype(::clock_gettime)>("clock_gettime");
  const int result = original(clock, time);
  maybe_stall();
  return result;
}

extern "C" int epoll_wait(int fd, epoll_event* events, int size, int timeout)
{
  static const auto original = hidden<decltype(::epoll_wait)>("epoll_wait");
  const int result = original(fd, events, size, timeout);
  maybe_stall();
  return result;
}
