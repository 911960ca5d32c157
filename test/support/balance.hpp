// Shared by the programs of test/races: a balance of waits started and ended, and a time to stop.
#pragma once

#include <asio_wheel.hpp>
#include <atomic>
#include <boost/asio/error.hpp>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace support {

/// True while a race may go on: 0.7 s, or as many milliseconds as ASIO_WHEEL_RACE_MS says.
class race_time {
public:
  explicit operator bool() const { return std::chrono::steady_clock::now() < end_; }

private:
  static std::chrono::milliseconds length()
  {
    const char* const text = std::getenv("ASIO_WHEEL_RACE_MS");
    return std::chrono::milliseconds{text ? std::atoll(text) : 700};
  }

  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + length();
};

/// Counts waits and their ends; any thread may write.
class balance {
public:
  /// Counts a wait. Its handler counts its end.
  [[nodiscard]] auto wait()
  {
    ++started_;
    return [this](boost::system::error_code ec) {
      if (ec == boost::asio::error::operation_aborted) {
        ++aborted_;
      } else if (ec) {
        ++failed_;
      } else {
        ++succeeded_;
      }
    };
  }

  /// Counts the result of a function that cancels.
  void cancelled(std::size_t n) { cancelled_ += n; }

  /// How many waits have not ended, or had not ended a moment ago.
  [[nodiscard]] std::size_t outstanding() const
  {
    const std::size_t ended = succeeded_ + aborted_ + failed_;
    return started_ - ended;  // read last: never less than have ended
  }

  /// 0 if each wait ended once and without another error. With `every_cancel_was_counted`, the
  /// number of aborted waits must be what the cancels returned. Prints the figures and what does
  /// not fit.
  [[nodiscard]] int check(bool every_cancel_was_counted = true) const
  {
    std::printf("%zu started, %zu succeeded, %zu aborted, %zu counted as cancelled\n",
                started_.load(), succeeded_.load(), aborted_.load(), cancelled_.load());
    int wrong = 0;
    const auto expect = [&wrong](bool ok, const char* claim) {
      if (ok) return;
      ++wrong;
      std::printf("wrong: %s\n", claim);
    };
    expect(started_ > 0, "some waits were started");
    expect(failed_ == 0, "no wait ended with another error");
    expect(started_ == succeeded_ + aborted_, "every wait ended once");
    if (every_cancel_was_counted) expect(aborted_ == cancelled_, "each cancel aborted one wait");
    return wrong == 0 ? 0 : 1;
  }

private:
  std::atomic<std::size_t> started_ = 0;
  std::atomic<std::size_t> succeeded_ = 0;
  std::atomic<std::size_t> aborted_ = 0;
  std::atomic<std::size_t> failed_ = 0;
  std::atomic<std::size_t> cancelled_ = 0;
};

/// Counts operations with a deadline, and how they end; any thread may write.
class operation_balance {
public:
  /// Counts an operation. Its handler must be called once; it counts the end.
  [[nodiscard]] auto operation()
  {
    ++started_;
    return [this, calls = 0](boost::system::error_code ec) mutable {
      const bool again = ++calls > 1;
      if (!again && !ec)
        ++succeeded_;
      else if (!again && ec == boost::asio::error::timed_out)
        ++timed_out_;
      else
        ++other_;
    };
  }

  /// The same, and counts `left` up here, and down at the end.
  [[nodiscard]] auto operation(std::atomic<int>& left)
  {
    ++left;
    return [&left, end = operation()](boost::system::error_code ec) mutable {
      end(ec);
      --left;
    };
  }

  /// 0 if each operation ended once, some in time and some not, and nothing is pending. Prints the
  /// figures.
  [[nodiscard]] int check(std::size_t pending = 0) const
  {
    std::printf("%zu started, %zu succeeded, %zu timed out, %zu otherwise, %zu still pending\n",
                started_.load(), succeeded_.load(), timed_out_.load(), other_.load(), pending);
    const bool right = started_ == succeeded_ + timed_out_ && other_ == 0 && timed_out_ > 0 &&
                       succeeded_ > 0 && pending == 0;
    return right ? 0 : 1;
  }

private:
  std::atomic<std::size_t> started_ = 0;
  std::atomic<std::size_t> succeeded_ = 0;
  std::atomic<std::size_t> timed_out_ = 0;
  std::atomic<std::size_t> other_ = 0;
};

}  // namespace support
