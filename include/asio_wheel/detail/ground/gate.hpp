// L0 ground: lets threads in until it is closed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace asio_wheel::detail {

/// Guards something that one thread takes away while others may use it.
///
/// A user makes a `visit` and asks whether the gate was open. `close()` refuses later visits, and
/// returns when nobody is inside.
class gate {
public:
  class [[nodiscard]] visit {
  public:
    explicit visit(gate& g) noexcept
      : gate_(g),
        let_in_((g.inside_.fetch_add(1, std::memory_order_acquire) & closed) == 0)
    {}
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() { gate_.inside_.fetch_sub(1, std::memory_order_release); }

    /// Whether the gate was open. Then close() waits for this visit to end.
    explicit operator bool() const noexcept { return let_in_; }

  private:
    gate& gate_;
    const bool let_in_;
  };

  void close() noexcept
  {
    inside_.fetch_or(closed, std::memory_order_acquire);
    while (inside_.load(std::memory_order_acquire) != closed)
      std::this_thread::sleep_for(std::chrono::microseconds{20});
  }

private:
  static constexpr std::uint32_t closed = std::uint32_t{1} << 31;

  std::atomic<std::uint32_t> inside_{0};
};

}  // namespace asio_wheel::detail
