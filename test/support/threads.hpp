// Threads that run a context, and threads that do something to it meanwhile.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <thread>
#include <vector>

namespace support {

/// Calls `work(0)` to `work(n - 1)` in threads that start together, and waits for all.
template <class Work>
void in_threads(int n, Work work)
{
  std::atomic<int> absent = n;
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) {
    threads.emplace_back([&, i] {
      --absent;
      while (absent > 0) std::this_thread::yield();
      work(i);
    });
  }
  for (auto& thread : threads) thread.join();
}

/// Threads that run a context until it has nothing left to do and this goes out of scope.
class running_threads {
public:
  running_threads(boost::asio::io_context& context, int n) : work_(context.get_executor())
  {
    for (int i = 0; i < n; ++i) threads_.emplace_back([&context] { context.run(); });
  }
  running_threads(const running_threads&) = delete;
  running_threads& operator=(const running_threads&) = delete;
  ~running_threads() { finish(); }

  /// Waits until the context is out of work.
  void finish()
  {
    work_.reset();
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

private:
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::vector<std::thread> threads_;
};

}  // namespace support
