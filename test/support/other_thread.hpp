// Another thread, which runs functions while the caller waits.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace support {

class other_thread {
public:
  other_thread() : thread_([this] { obey(); }) {}
  other_thread(const other_thread&) = delete;
  other_thread& operator=(const other_thread&) = delete;
  ~other_thread()
  {
    run({});
    thread_.join();
  }

  /// Runs `f` and waits for it. An empty one ends the thread.
  void run(std::function<void()> f)
  {
    std::unique_lock lock(mutex_);
    task_ = std::move(f);
    given_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !given_; });
  }

private:
  void obey()
  {
    for (bool more = true; more;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return given_; });
      more = task_ != nullptr;
      if (more) task_();
      given_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool given_ = false;
  std::thread thread_;
};

/// Calls `f` in the same other thread every time.
inline void in_other_thread(std::function<void()> f)
{
  static other_thread thread;
  thread.run(std::move(f));
}

}  // namespace support
