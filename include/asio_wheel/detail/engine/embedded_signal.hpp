// L2 engine: a cancellation signal that contains its handler.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>

#include ASIO_WHEEL_ASIO(cancellation_signal.hpp)

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace asio_wheel::detail {

/// What is stored for a cancellation handler made of `Args`.
template <class Handler, class... Args>
struct stored_handler {
  using type = Handler;
};

#if defined(BOOST_ASIO_VERSION) && BOOST_ASIO_VERSION < 102800
/// Stands for the cancellation handler of co_spawn, which posts a pointer to itself through the
/// executor that it is made of. If the handler has been called, it goes behind what it has posted;
/// at once if the executor refuses.
template <class Handler, class Executor>
class posting_handler {
public:
  template <class T>
  posting_handler(T&& arg, const Executor& ex)
    : at_(new object{{}, Handler(std::forward<T>(arg), ex), ex})
  {}
  posting_handler(const posting_handler&) = delete;
  posting_handler& operator=(const posting_handler&) = delete;
  ~posting_handler()
  {
    if (!at_->was_called) return;
    const Executor ex = at_->executor;
    try {
      asio::post(ex, [kept = std::move(at_)] {});
    } catch (...) {
    }
  }

  void operator()(asio::cancellation_type_t type)
  {
    at_->was_called = true;
    at_->handler(type);
  }

  [[nodiscard]] Handler& inner() noexcept { return at_->handler; }

private:
  struct object : recycled<object> {
    Handler handler;
    Executor executor;
    bool was_called = false;
  };

  std::unique_ptr<object> at_;
};

template <class Handler, class T, class Executor>
  requires(asio::execution::is_executor<Executor>::value || asio::is_executor<Executor>::value)
struct stored_handler<Handler, T, Executor> {
  using type = posting_handler<Handler, Executor>;
};
#endif

/// An `asio::cancellation_signal` with storage for the handler that an operation puts into its
/// slot. The handlers of Asio's operations fit. A larger handler gets memory as a wait does. This
/// saves an operation 56 to 72 instructions and an allocation (bench/LOG.md).
///
/// Code that stores an `asio::cancellation_slot`, as Boost.Beast does, makes this an Asio signal
/// for good: see asio_slot().
///
/// Not thread-safe, like Asio's.
class embedded_signal {
public:
  embedded_signal() noexcept {}
  embedded_signal(const embedded_signal&) = delete;
  embedded_signal& operator=(const embedded_signal&) = delete;
  ~embedded_signal()
  {
    if (of_ && of_->destroy) of_->destroy(*this);
  }

  /// Calls the handler in the slot, if there is one.
  void emit(asio::cancellation_type_t type)
  {
    if (of_) of_->call(*this, type);
  }

  [[nodiscard]] bool has_handler() const noexcept
  {
    return is_asios() ? asio_signal_.slot().has_handler() : of_ != nullptr;
  }

  /// Replaces the handler. Throws what its constructor or its allocation throws, and has no handler
  /// then.
  template <class Handler, class... Args>
  Handler& emplace(Args&&... args)
  {
    clear();
    using stored_type = typename stored_handler<Handler, std::decay_t<Args>...>::type;
    stored_type& stored = put<stored_type>(std::forward<Args>(args)...);
    if constexpr (std::is_same_v<stored_type, Handler>)
      return stored;
    else
      return stored.inner();
  }

  void clear() noexcept
  {
    if (!of_) return;
    if (is_asios()) [[unlikely]]
      return asio_signal_.slot().clear();
    if (const auto destroy = std::exchange(of_, nullptr)->destroy) destroy(*this);
  }

  /// Returns the slot as Asio's type, and keeps its handler. From then on handlers are in an Asio
  /// signal, in Asio's memory, so that this slot and Asio's are one. Throws std::bad_alloc, only if
  /// there is a handler.
  [[nodiscard, gnu::noinline, gnu::cold]] asio::cancellation_slot asio_slot()
  {
    if (!is_asios()) {
      std::construct_at(&asio_signal_);
      try {
        if (of_) asio_signal_.slot().emplace<taken_along>(*this);
      } catch (...) {
        std::destroy_at(&asio_signal_);
        throw;
      }
      of_ = &functions_of_asios;
    }
    return asio_signal_.slot();
  }

private:
  /// The functions of the object in the storage.
  struct functions {
    void (*call)(embedded_signal&, asio::cancellation_type_t);
    void (*destroy)(embedded_signal&) noexcept;  ///< null: nothing to do
  };

  template <class T>
  [[nodiscard]] T& content() noexcept
  {
    return *std::launder(reinterpret_cast<T*>(room_));
  }

  template <class T>
  static void call_content(embedded_signal& s, asio::cancellation_type_t type)
  {
    s.content<T>()(type);
  }
  template <class T>
  static void destroy_content(embedded_signal& s) noexcept
  {
    std::destroy_at(&s.content<T>());
  }
  template <class T>
  static constexpr functions functions_of{
    &call_content<T>, std::is_trivially_destructible_v<T> ? nullptr : &destroy_content<T>};

  static void emit_asios(embedded_signal& s, asio::cancellation_type_t type)
  {
    s.asio_signal_.emit(type);
  }
  static void destroy_asios(embedded_signal& s) noexcept { std::destroy_at(&s.asio_signal_); }
  static constexpr functions functions_of_asios{&emit_asios, &destroy_asios};

  /// In an Asio signal, stands for the handler that is still in the storage.
  class taken_along {
  public:
    explicit taken_along(embedded_signal& s) noexcept : signal_(&s), of_(s.of_) {}
    taken_along(const taken_along&) = delete;
    taken_along& operator=(const taken_along&) = delete;
    ~taken_along()
    {
      if (of_->destroy) of_->destroy(*signal_);
    }
    void operator()(asio::cancellation_type_t type) { of_->call(*signal_, type); }

  private:
    embedded_signal* signal_;
    const functions* of_;
  };

  /// Stands for a handler that does not fit into the storage.
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

  /// Requires that there is no handler.
  template <class Handler, class... Args>
  Handler& put(Args&&... args)
  {
    if (is_asios()) [[unlikely]]
      return asio_signal_.slot().emplace<Handler>(std::forward<Args>(args)...);
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

  [[nodiscard]] bool is_asios() const noexcept { return of_ == &functions_of_asios; }

  const functions* of_ = nullptr;  ///< of the object in the storage; null without an object
  union {
    mutable asio::cancellation_signal asio_signal_;  ///< where the handlers are if is_asios()
  };
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

  /// For code that stores slots of Asio's type.
  operator asio::cancellation_slot() const { return signal_->asio_slot(); }

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
