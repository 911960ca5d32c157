// Ends the process if what should go on does not.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace support {

/// Aborts, naming what hangs, unless it is destroyed within a minute. Threads that wait for one
/// another cannot be joined.
class time_limit {
public:
  explicit time_limit(std::string what) : what_(std::move(what)), thread_([this] { watch(); }) {}
  time_limit(const time_limit&) = delete;
  time_limit& operator=(const time_limit&) = delete;
  ~time_limit()
  {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    change_.notify_all();
    thread_.join();
  }

private:
  void watch()
  {
    std::unique_lock lock(mutex_);
    if (change_.wait_for(lock, std::chrono::minutes{1}, [this] { return over_; })) return;
    std::fprintf(stderr, "hangs: %s\n", what_.c_str());
    std::abort();
  }

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable change_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace support
