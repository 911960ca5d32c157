// L0 base: objects that count their owners, and counted pointers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace asio_wheel::detail {

/// Base of a `T` that its last owner deletes. Its destructor is not virtual, so only pointers to
/// `T` own.
///
/// `intrusive_ptr` counts owners. Code that owns through a raw pointer counts with the two
/// functions below. Adding an owner is relaxed, because only an owner adds owners. Removing an
/// owner releases what it did; the last owner acquires what all did, and deletes the object.
template <class T>
class intrusive_ref_counter {
public:
  intrusive_ref_counter(const intrusive_ref_counter&) = delete;
  intrusive_ref_counter& operator=(const intrusive_ref_counter&) = delete;

  friend void intrusive_ptr_add_ref(const intrusive_ref_counter* p) noexcept
  {
    p->owners_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(const intrusive_ref_counter* p) noexcept
  {
    if (p->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) [[unlikely]]
      destroy(p);
  }

protected:
  intrusive_ref_counter() = default;
  ~intrusive_ref_counter() = default;

private:
  // Out of line, so that a release can be inline.
  [[gnu::noinline, gnu::cold]] static void destroy(const intrusive_ref_counter* p) noexcept
  {
    delete static_cast<const T*>(p);
  }

  mutable std::atomic<std::uint32_t> owners_{0};
};

/// Owns an object that counts its owners, or nothing.
template <class T>
class intrusive_ptr {
public:
  intrusive_ptr() noexcept = default;
  intrusive_ptr(std::nullptr_t) noexcept {}

  /// Adds an owner; without `add_ref`, takes over an owner that was added by hand.
  intrusive_ptr(T* p, bool add_ref = true) noexcept : p_(p)
  {
    if (p_ && add_ref) intrusive_ptr_add_ref(p_);
  }
  intrusive_ptr(const intrusive_ptr& other) noexcept : intrusive_ptr(other.p_) {}
  intrusive_ptr(intrusive_ptr&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  intrusive_ptr& operator=(intrusive_ptr other) noexcept
  {
    swap(other);
    return *this;
  }
  [[gnu::always_inline]] ~intrusive_ptr()
  {
    if (p_) intrusive_ptr_release(p_);
  }

  void swap(intrusive_ptr& other) noexcept { std::swap(p_, other.p_); }

  /// Gives its ownership to the caller.
  [[nodiscard]] T* release() noexcept { return std::exchange(p_, nullptr); }

  [[nodiscard]] T* get() const noexcept { return p_; }
  [[nodiscard]] T& operator*() const noexcept { return *p_; }
  [[nodiscard]] T* operator->() const noexcept { return p_; }
  [[nodiscard]] explicit operator bool() const noexcept { return p_ != nullptr; }

private:
  T* p_ = nullptr;
};

}  // namespace asio_wheel::detail
