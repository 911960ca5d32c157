// L2 service: a cancellation signal that contains its handler.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/service/op_memory.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// An `asio::cancellation_signal` with room for the handler that an operation puts into its slot.
/// The handlers of Asio's operations fit. A larger handler gets memory as a wait does.
///
/// Not thread-safe, like Asio's.
class embedded_signal {
public:
  embedded_signal() = default;
  embedded_signal(const embedded_signal&) = delete;
  embedded_signal& operator=(const embedded_signal&) = delete;
  ~embedded_signal() { clear(); }

  /// Calls the handler in the slot, if there is one.
  void emit(asio::cancellation_type_t type)
  {
    if (of_) of_->call(handler_, type);
  }

  [[nodiscard]] bool has_handler() const noexcept { return of_ != nullptr; }

  /// Replaces the handler. Throws what its constructor or its allocation throws, and then has none.
  template <class Handler, class... Args>
  Handler& emplace(Args&&... args)
  {
    clear();
    memory m(*this, sizeof(Handler), alignof(Handler));
    auto* const h = ::new (m.place) Handler(std::forward<Args>(args)...);
    handler_ = std::exchange(m.place, nullptr);
    of_ = &functions_of<Handler>;
    return *h;
  }

  void clear() noexcept
  {
    if (!of_) return;
    const functions& f = *std::exchange(of_, nullptr);
    f.destroy(handler_);
    if (handler_ != room_) deallocate_op(handler_, f.size, f.alignment);
  }

private:
  struct functions {
    void (*call)(void*, asio::cancellation_type_t);
    void (*destroy)(void*) noexcept;
    std::size_t size;
    std::size_t alignment;
  };

  template <class Handler>
  static constexpr functions functions_of{
    [](void* h, asio::cancellation_type_t type) { (*static_cast<Handler*>(h))(type); },
    [](void* h) noexcept { std::destroy_at(static_cast<Handler*>(h)); }, sizeof(Handler),
    alignof(Handler)};

  /// Memory for a handler that is about to be constructed.
  struct memory {
    memory(embedded_signal& s, std::size_t n, std::size_t a)
      : signal(s),
        place(n <= sizeof(room_) && a <= alignof(std::max_align_t) ? s.room_ : allocate_op(n, a)),
        size(n),
        alignment(a)
    {}
    memory(const memory&) = delete;
    memory& operator=(const memory&) = delete;
    ~memory()
    {
      if (place && place != signal.room_) deallocate_op(place, size, alignment);
    }

    embedded_signal& signal;
    void* place;
    std::size_t size;
    std::size_t alignment;
  };

  const functions* of_ = nullptr;  ///< the handler's; null if there is none
  void* handler_;                  ///< valid only if there is one
  alignas(std::max_align_t) std::byte room_[48];
};

/// The slot of an embedded_signal, as operations see it; see Asio's CancellationSlot.
class embedded_slot {
public:
  explicit embedded_slot(embedded_signal& signal) noexcept : signal_(&signal) {}

  template <class Handler, class... Args>
  Handler& emplace(Args&&... args) const
  {
    return signal_->emplace<Handler>(std::forward<Args>(args)...);
  }
  template <class Handler>
  std::decay_t<Handler>& assign(Handler&& handler) const
  {
    return emplace<std::decay_t<Handler>>(std::forward<Handler>(handler));
  }
  void clear() const noexcept { signal_->clear(); }

  [[nodiscard]] constexpr bool is_connected() const noexcept { return true; }
  [[nodiscard]] bool has_handler() const noexcept { return signal_->has_handler(); }

  friend bool operator==(embedded_slot a, embedded_slot b) noexcept
  {
    return a.signal_ == b.signal_;
  }
  friend bool operator!=(embedded_slot a, embedded_slot b) noexcept { return !(a == b); }

private:
  embedded_signal* signal_;
};

}  // namespace asio_wheel::detail
