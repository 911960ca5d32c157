// An operation with a deadline that a script controls.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "model/pending_waits.hpp"

namespace model {

/// What an operation does when it is initiated, and when it is cancelled.
enum class reaction : std::uint8_t { none, abort, succeed, drop };

class limited_run {
public:
  enum class stage : std::uint8_t {
    over,        ///< not started yet, or completed
    running,     ///< the operation has its handler
    ended,       ///< its result is on its way
    delivering,  ///< its handler is running
  };

  /// Starts it. `cancelled(type)` is what its cancellation slot calls.
  template <class Token>
  void async_run(Token&& token)
  {
    boost::asio::async_initiate<Token, void(error_code, int)>(
      [this](auto&& handler) { this->initiate(std::forward<decltype(handler)>(handler)); }, token);
  }

  /// Calls the handler.
  void complete(error_code ec, int n) { std::exchange(handler_, nullptr)->complete(ec, n); }

  /// Destroys the handler.
  void drop() { handler_ = nullptr; }

  int number = 0;
  int signal = -1;
  bool foreign = false;  ///< its handler runs on the other context
  bool reports_timeout = false;
  reaction when_initiated = reaction::none;
  reaction when_cancelled = reaction::none;
  std::function<void()> initiated;
  std::function<void(boost::asio::cancellation_type_t)> cancelled;
  script_view body{};  ///< what the handler does

  std::shared_ptr<wait> deadline;  ///< null: none is filed
  error_code verdict;              ///< reported in place of operation_aborted
  stage at = stage::over;
  bool posted = false;   ///< its result is on its way through an executor
  bool may_lag = false;  ///< it ended while its deadline may have been on its way to its executor
  int asked = 0;         ///< how often it was cancelled
  error_code result;     ///< what the handler should see
  int value = 0;         ///< what the handler should see

private:
  struct any_handler {
    virtual ~any_handler() = default;
    virtual void complete(error_code ec, int n) = 0;
  };

  template <class Handler>
  struct typed_handler final : any_handler {
    explicit typed_handler(Handler h) : handler(std::move(h)) {}
    void complete(error_code ec, int n) override { std::move(handler)(ec, n); }

    Handler handler;
  };

  template <class Handler>
  void initiate(Handler&& handler)
  {
    const auto slot = boost::asio::get_associated_cancellation_slot(handler);
    slot.assign([this](boost::asio::cancellation_type_t type) { cancelled(type); });
    handler_ = std::make_unique<typed_handler<std::decay_t<Handler>>>(std::move(handler));
    initiated();
  }

  std::unique_ptr<any_handler> handler_;
};

/// Lives while the handler runs.
struct [[nodiscard]] while_delivering {
  limited_run& op;
  ~while_delivering() { op.at = limited_run::stage::over; }
};

}  // namespace model
