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
  ~embedded_signal()
  {
    if (of_ && of_->destroy) of_->destroy(room_);
  }

  /// Calls the handler in the slot, if there is one.
  void emit(asio::cancellation_type_t type)
  {
    if (of_) of_->call(room_, type);
  }

  [[nodiscard]] bool has_handler() const noexcept { return of_ != nullptr; }

  /// Replaces the handler. Throws what its constructor or its allocation throws, and then has none.
  template <class Handler, class... Args>
  Handler& emplace(Args&&... args)
  {
    clear();
    if constexpr (sizeof(Handler) <= sizeof(room_) &&
                  alignof(Handler) <= alignof(std::max_align_t)) {
      return hold<Handler>(std::forward<Args>(args)...);
    } else {
      using elsewhere = large<Handler>;
      return hold<elsewhere>(new
                             typename elsewhere::object{{}, Handler(std::forward<Args>(args)...)})
        .at->handler;
    }
  }

  void clear() noexcept
  {
    if (!of_) return;
    if (const auto destroy = std::exchange(of_, nullptr)->destroy) destroy(room_);
  }

private:
  /// What is done with the object in the room.
  struct functions {
    void (*call)(void*, asio::cancellation_type_t);
    void (*destroy)(void*) noexcept;  ///< null: nothing is to be done
  };

  template <class T>
  static constexpr functions functions_of{
    [](void* p, asio::cancellation_type_t type) { (*std::launder(static_cast<T*>(p)))(type); },
    std::is_trivially_destructible_v<T>
      ? nullptr
      : +[](void* p) noexcept { std::destroy_at(std::launder(static_cast<T*>(p))); }};

  /// Stands for a handler that the room is too small for.
  template <class Handler>
  struct large {
    struct object : recycled<object> {
      Handler handler;
    };

    explicit large(object* p) noexcept : at(p) {}
    void operator()(asio::cancellation_type_t type) { at->handler(type); }

    std::unique_ptr<object> at;
  };

  template <class T, class... Args>
  T& hold(Args&&... args)
  {
    auto* const p = ::new (static_cast<void*>(room_)) T(std::forward<Args>(args)...);
    of_ = &functions_of<T>;
    return *p;
  }

  const functions* of_ = nullptr;  ///< of what is in the room; null if that is nothing
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
