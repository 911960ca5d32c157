// An asynchronous operation that the test case controls.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "support/run.hpp"
#include "support/wheel.hpp"

namespace support {

/// Completes with an error_code and a size when told to. Records the cancellations.
class manual_operation {
public:
  using executor_type = boost::asio::any_io_executor;

  explicit manual_operation(executor_type ex) : executor_(std::move(ex)) {}

  template <class Token>
  auto async_run(Token&& token)
  {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, std::size_t)>(
      initiation{this}, token);
  }

  [[nodiscard]] bool running() const { return handler_ != nullptr; }

  /// Completes through the handler's executor.
  void complete(boost::system::error_code ec, std::size_t n = 0)
  {
    std::exchange(handler_, nullptr)->complete(ec, n);
  }

  /// Destroys the handler uncalled.
  void drop() { handler_.reset(); }

  std::vector<boost::asio::cancellation_type_t> seen;  ///< the cancellations
  std::function<void()> when_cancelled;
  bool obeys = true;  ///< completes with operation_aborted when it is cancelled

private:
  struct any_handler {
    virtual ~any_handler() = default;
    virtual void complete(boost::system::error_code ec, std::size_t n) = 0;
  };

  template <class Handler>
  struct typed_handler final : any_handler {
    typed_handler(Handler h, executor_type ex) : handler(std::move(h)), fallback(std::move(ex)) {}

    void complete(boost::system::error_code ec, std::size_t n) override
    {
      auto ex = boost::asio::get_associated_executor(handler, fallback);
      boost::asio::dispatch(ex, [h = std::move(handler), ec, n]() mutable { std::move(h)(ec, n); });
    }

    Handler handler;
    executor_type fallback;
  };

  struct initiation {
    using executor_type = manual_operation::executor_type;
    [[nodiscard]] executor_type get_executor() const noexcept { return self->executor_; }

    template <class Handler>
    void operator()(Handler&& handler) const
    {
      auto slot = boost::asio::get_associated_cancellation_slot(handler);
      if (slot.is_connected()) {
        slot.assign([op = self](boost::asio::cancellation_type_t type) {
          op->seen.push_back(type);
          if (op->when_cancelled) op->when_cancelled();
          if (op->obeys && op->running()) op->complete(boost::asio::error::operation_aborted);
        });
      }
      self->handler_ = std::make_unique<typed_handler<std::decay_t<Handler>>>(
        std::forward<Handler>(handler), self->executor_);
    }

    manual_operation* self;
  };

  executor_type executor_;
  std::unique_ptr<any_handler> handler_;
};

/// The arguments with which a manual_operation's handler was called.
struct result {
  int calls = 0;
  boost::system::error_code error;
  std::size_t size = 0;

  [[nodiscard]] bool pending() const { return calls == 0; }
  [[nodiscard]] bool succeeded(std::size_t n) const { return calls == 1 && !error && size == n; }
  template <class Error>
  [[nodiscard]] bool failed(Error e) const
  {
    return calls == 1 && error == e;
  }
  [[nodiscard]] auto recorder()
  {
    return [this](boost::system::error_code ec, std::size_t n) {
      ++calls;
      error = ec;
      size = n;
    };
  }
};

/// An operation in a context with a wheel, and the result of its one run.
struct operation_on_wheel : context_with_wheel {
  explicit operation_on_wheel(asio_wheel::wheel_options options = {})
    : context_with_wheel(options),
      operation(context.get_executor())
  {}

  /// Runs until the operation was asked to stop `n` times, which it ignores.
  void await_cancellations(std::size_t n)
  {
    run_until(context, [&] { return operation.seen.size() == n; });
  }

  manual_operation operation;
  support::result result;
};

}  // namespace support
