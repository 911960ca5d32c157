// How long to wait before something that failed is tried again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

namespace redis {

/// Anything up to a limit that doubles from one failure to the next ("full jitter"). Clients that
/// failed at the same time would else come back at the same time, again and again.
class backoff {
public:
  using milliseconds = std::chrono::milliseconds;

  backoff(milliseconds base, milliseconds longest) : base_(base), longest_(longest) {}

  /// The delay after so many failures, one or more.
  milliseconds operator()(int failures)
  {
    const double limit = std::min(static_cast<double>(longest_.count()),
                                  static_cast<double>(base_.count()) * std::exp2(failures - 1));
    return milliseconds(std::llround(std::uniform_real_distribution(0.0, limit)(random_)));
  }

private:
  milliseconds base_, longest_;
  std::mt19937 random_{std::random_device()()};
};

}  // namespace redis
