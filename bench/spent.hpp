// What the process has spent, in user mode and in the kernel.
#pragma once

#include <sys/resource.h>

#include <chrono>

#include "measure.hpp"

namespace bench {

struct spent {
  nanoseconds user{}, system{};

  static spent so_far()
  {
    rusage r{};
    ::getrusage(RUSAGE_SELF, &r);
    const auto of = [](const timeval& t) {
      return std::chrono::seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
    };
    return {of(r.ru_utime), of(r.ru_stime)};
  }

  friend spent operator-(const spent& a, const spent& b)
  {
    return {a.user - b.user, a.system - b.system};
  }
};

}  // namespace bench
