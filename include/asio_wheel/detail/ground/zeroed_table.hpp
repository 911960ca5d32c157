// L0 ground: an array of zeroes that takes memory only where it is touched.
#pragma once

#include <asio_wheel/detail/ground/export.hpp>

#include <cstddef>
#include <type_traits>

namespace asio_wheel::detail {

/// Pages of zeroes from the system, which take memory once they are touched. Throws std::bad_alloc.
[[nodiscard]] void* map_zeroes(std::size_t bytes);
void unmap_zeroes(void* p, std::size_t bytes) noexcept;

/// A fixed number of `T`s, all zero at first. What is never touched, most of a large table, takes
/// no memory.
template <class T>
class zeroed_table {
public:
  static_assert(std::is_trivially_destructible_v<T>);

  /// Throws std::bad_alloc.
  explicit zeroed_table(std::size_t size)
    : size_(size),
      values_(static_cast<T*>(map_zeroes(size * sizeof(T))))
  {}
  zeroed_table(const zeroed_table&) = delete;
  zeroed_table& operator=(const zeroed_table&) = delete;
  ~zeroed_table() { unmap_zeroes(values_, size_ * sizeof(T)); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return values_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return values_[i]; }

private:
  std::size_t size_;
  T* values_;
};

}  // namespace asio_wheel::detail
