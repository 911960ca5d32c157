// L2 service: the waits that one posted function completes.
#pragma once

#include <asio_wheel/service/wait_op.hpp>

#include <array>
#include <cstddef>

namespace asio_wheel {

/// A bounded number of waits on their way to their handlers.
class batch {
public:
  // Small enough that other I/O of the context does not wait long, large enough that the way
  // through the executor is not felt (bench/README.md).
  static constexpr std::size_t capacity = 64;

  batch() = default;
  batch(const batch&) = delete;
  batch& operator=(const batch&) = delete;

  [[nodiscard]] bool full() const noexcept { return size_ == ops_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void push(wait_op& op) noexcept { ops_[size_++] = &op; }
  [[nodiscard]] wait_op& operator[](std::size_t i) const noexcept { return *ops_[i]; }

  /// Completes the waits in order. If a handler throws, those after it are handed to
  /// `put_back(wait_queue&)` before the exception goes on its way.
  template <class PutBack>
  void complete(PutBack put_back)
  {
    std::size_t next = 0;
    try {
      while (next < size_) {
        wait_op& op = *ops_[next++];
        op.complete(op.outcome());
      }
    } catch (...) {
      wait_queue rest;
      for (; next < size_; ++next) rest.push_back(*ops_[next]);
      if (!rest.empty()) put_back(rest);
      throw;
    }
  }

private:
  std::array<wait_op*, capacity> ops_;
  std::size_t size_ = 0;
};

}  // namespace asio_wheel
