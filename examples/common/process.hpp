// What the examples ask of the system: open files, the terminal, and the resources they use.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <stdexcept>

#if __has_include(<sys/resource.h>) && __has_include(<unistd.h>)
#define COMMON_HAS_POSIX 1
#include <sys/resource.h>
#include <unistd.h>
#else
#define COMMON_HAS_POSIX 0
#endif

namespace common {

/// Raises the limit of open files to `wanted`, or as far as possible. Returns the new limit.
inline std::uint64_t raise_open_file_limit(std::uint64_t wanted)
{
#if COMMON_HAS_POSIX
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < wanted) {
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : static_cast<rlim_t>(wanted);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  }
  return limit.rlim_cur;
#else
  return wanted;
#endif
}

/// Makes room for `connections` sockets. Throws std::runtime_error that says what the limit is.
inline void need_open_files(int connections)
{
  const auto files = static_cast<std::uint64_t>(connections) + 16;
  if (const auto limit = raise_open_file_limit(files); limit < files)
    throw std::runtime_error(
      fmt::format("{} connections need {} open files, but the limit is {} (ulimit -Hn)",
                  connections, files, limit));
}

/// Whether stderr is a terminal, on which a line can be rewritten.
inline bool stderr_is_terminal()
{
#if COMMON_HAS_POSIX
  return isatty(STDERR_FILENO) != 0;
#else
  return false;
#endif
}

/// The resources that the process has used.
struct usage {
  std::uint64_t cpu_us = 0;
  std::uint64_t wakeups = 0;  // voluntary context switches
};

inline usage usage_so_far()
{
#if COMMON_HAS_POSIX
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto us = [](const timeval& t) { return t.tv_sec * 1'000'000 + t.tv_usec; };
  return {static_cast<std::uint64_t>(us(u.ru_utime) + us(u.ru_stime)),
          static_cast<std::uint64_t>(u.ru_nvcsw)};
#else
  return {static_cast<std::uint64_t>(static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC), 0};
#endif
}

/// The most memory that the process has had, in bytes.
inline double peak_memory()
{
#if COMMON_HAS_POSIX
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return 1024.0 * static_cast<double>(u.ru_maxrss);
#else
  return 0;
#endif
}

}  // namespace common
