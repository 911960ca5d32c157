// L3 timers: one end of a simulated connection, without the types of executors and handlers.
#pragma once

#include <asio_wheel/asio.hpp>
#include <asio_wheel/detail/base/any_delay.hpp>
#include <asio_wheel/detail/base/export.hpp>
#include <asio_wheel/detail/base/intrusive_list.hpp>
#include <asio_wheel/simulated_link.hpp>
#include <asio_wheel/wheel_timer.hpp>

// clang-format off
#include ASIO_WHEEL_ASIO(buffer.hpp)
#include ASIO_WHEEL_ASIO(socket_base.hpp)
// clang-format on

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <tuple>
#include <utility>

namespace asio_wheel::detail {

class simulated_connection;  // both ends, and what is on the way

/// A read or a write. Its handler is that of a wait on the timer, which never ends by itself: the
/// connection cancels the wait when the operation can complete. So the wheel takes care of the
/// handler's executor, allocator, slot and outstanding work, and destroys the handler with its
/// context. The connection's mutex guards all but the timer.
struct ASIO_WHEEL_EXPORT simulated_operation : list_link,
                                               std::enable_shared_from_this<simulated_operation> {
  simulated_operation(const asio::any_io_executor& ex, std::shared_ptr<simulated_connection> c,
                      std::size_t s)
    : list_link{},
      timer(wheel_place<>(ex), any_deadline(wheel_timer::time_point::max())),
      connection(std::move(c)),
      side(s)
  {}
  simulated_operation(const simulated_operation&) = delete;
  simulated_operation& operator=(const simulated_operation&) = delete;
  ~simulated_operation();

  static list_link& link_of(simulated_operation& op) noexcept { return op; }
  static simulated_operation& of_link(list_link& link) noexcept
  {
    return static_cast<simulated_operation&>(link);
  }

  wheel_timer timer;
  const std::shared_ptr<simulated_connection> connection;  ///< null: ends with bad_descriptor
  const std::size_t side;
  bool is_listed = false;
  bool is_woken = false;  ///< it can complete, and its wait was cancelled for that
  bool is_done = false;   ///< it ends with the following, whatever its wait says
  error_code error = asio::error::bad_descriptor;
  std::size_t size = 0;
};

/// The first buffers of a sequence that are not empty: a stream need not use all at a time.
template <class Buffer>
class simulated_buffers {
public:
  template <class Sequence>
  explicit simulated_buffers(const Sequence& sequence)
  {
    const auto end = asio::buffer_sequence_end(sequence);
    for (auto i = asio::buffer_sequence_begin(sequence); i != end && count_ < all_.size(); ++i)
      if (const Buffer buffer(*i); buffer.size() != 0) all_[count_++] = buffer;
  }
  operator std::span<const Buffer>() const noexcept { return {all_.data(), count_}; }

private:
  std::array<Buffer, 16> all_{};
  std::size_t count_ = 0;
};

/// One end of a connection, or none.
class ASIO_WHEEL_EXPORT simulated_end {
public:
  using operation_ptr = std::shared_ptr<simulated_operation>;
  using result = std::tuple<error_code, std::size_t>;
  using read_buffers = std::span<const asio::mutable_buffer>;
  using write_buffers = std::span<const asio::const_buffer>;

  simulated_end() = default;

  /// Two ends that are connected. Throws std::invalid_argument.
  [[nodiscard]] static std::pair<simulated_end, simulated_end> connect(wheel_timer_service& wheel,
                                                                       const simulated_link& link);

  // As those of a socket.
  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] std::size_t available() const noexcept;
  void cancel() const noexcept;
  void close() const noexcept;
  void shutdown(asio::socket_base::shutdown_type what, error_code& ec) const noexcept;

  // These do nothing without a connection. The last two throw std::bad_alloc.
  void inject(simulated_fault fault) const noexcept;
  void inject_after(any_delay delay, simulated_fault fault) const;
  void inject_after_bytes(std::size_t n, simulated_fault fault) const;

  /// Starts the wait of a new operation. A handler without an executor is called through `ex`.
  /// `finish(operation, error)` returns a tuple of what the handler is called with.
  template <class Handler, class Finish>
  operation_ptr prepare(const asio::any_io_executor& ex, Handler&& handler, Finish finish) const;

  // Then begins the operation, which may complete from here on.
  static void start(simulated_operation& op, read_buffers buffers) noexcept;
  static void start(simulated_operation& op, write_buffers buffers) noexcept;

  // The wait has ended with `ec`: how does the operation end?
  static result finish(simulated_operation& op, error_code ec, read_buffers buffers) noexcept;
  static result finish(simulated_operation& op, error_code ec, write_buffers buffers) noexcept;

  // What is sent here in place of bytes: ends for an acceptor. Returns false if this is closed.
  [[nodiscard]] bool bring(const simulated_end& end) const;
  static error_code accept(simulated_operation& op, error_code ec, simulated_end& end) noexcept;

private:
  simulated_end(std::shared_ptr<simulated_connection> c, std::size_t side) noexcept
    : connection_(std::move(c)),
      side_(side)
  {}

  std::shared_ptr<simulated_connection> connection_;
  std::size_t side_ = 0;  ///< 0 or 1
};

/// The handler of an operation's wait.
template <class Handler, class Finish>
struct simulated_handler {
  void operator()(const error_code& ec)
  {
    auto results = [&, op = std::move(operation)] { return finish(*op, ec); }();
    std::apply(std::move(handler), std::move(results));
  }

  Handler handler;
  simulated_end::operation_ptr operation;
  Finish finish;
};

template <class Handler, class Finish>
simulated_end::operation_ptr simulated_end::prepare(const asio::any_io_executor& ex,
                                                    Handler&& handler, Finish finish) const
{
  auto op = std::make_shared<simulated_operation>(ex, connection_, side_);
  op->timer.async_wait(simulated_handler<std::decay_t<Handler>, Finish>{
    std::forward<Handler>(handler), op, std::move(finish)});
  return op;
}

}  // namespace asio_wheel::detail

/// Its associated objects are the handler's.
template <template <class, class> class Associator, class Handler, class Finish, class Candidate>
struct asio_wheel::asio::associator<
  Associator, asio_wheel::detail::simulated_handler<Handler, Finish>, Candidate>
  : Associator<Handler, Candidate> {
  static auto get(const asio_wheel::detail::simulated_handler<Handler, Finish>& h) noexcept
  {
    return Associator<Handler, Candidate>::get(h.handler);
  }
  static auto get(const asio_wheel::detail::simulated_handler<Handler, Finish>& h,
                  const Candidate& c) noexcept
    -> decltype(Associator<Handler, Candidate>::get(h.handler, c))
  {
    return Associator<Handler, Candidate>::get(h.handler, c);
  }
};
