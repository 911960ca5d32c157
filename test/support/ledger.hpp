// An allocator that counts how much was allocated, and how much of it is not freed.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>

namespace support {

struct ledger {
  std::size_t taken = 0;            ///< allocations so far
  std::size_t outstanding = 0;      ///< of these, not given back yet
  std::size_t refused = unlimited;  ///< the allocation that throws std::bad_alloc, counted from 0

  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
};

template <class T>
struct booking_allocator {
  using value_type = T;

  explicit booking_allocator(ledger& l) noexcept : books(&l) {}
  template <class U>
  booking_allocator(const booking_allocator<U>& other) noexcept : books(other.books)
  {}

  T* allocate(std::size_t n)
  {
    if (books->taken == books->refused) {
      books->refused = ledger::unlimited;
      throw std::bad_alloc();
    }
    T* p = std::allocator<T>{}.allocate(n);
    ++books->taken;
    ++books->outstanding;
    return p;
  }
  void deallocate(T* p, std::size_t n) noexcept
  {
    --books->outstanding;
    std::allocator<T>{}.deallocate(p, n);
  }
  template <class U>
  bool operator==(const booking_allocator<U>& other) const noexcept
  {
    return books == other.books;
  }

  ledger* books;
};

}  // namespace support
