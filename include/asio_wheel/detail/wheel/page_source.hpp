// L1 wheel: where a wheel's memory comes from.
#pragma once

#include <cstddef>

namespace asio_wheel::detail {

/// Hands out pages of page_size bytes, aligned to their size.
///
/// A wheel that moves its entries must not run out of memory. So it has pages promised to it, which
/// costs no memory yet, before it files the entries that may need them.
class page_source {
public:
  /// Promises `n` pages more. Throws std::bad_alloc, with nothing changed.
  virtual void promise(std::size_t n) = 0;

  /// `n` of the promised pages will not be needed.
  virtual void forgo(std::size_t n) noexcept = 0;

  /// Hands out one of the promised pages. Its contents are undefined.
  [[nodiscard]] virtual void* take_promised() noexcept = 0;

  virtual void give_back(void* page) noexcept = 0;

protected:
  ~page_source() = default;
};

}  // namespace asio_wheel::detail
