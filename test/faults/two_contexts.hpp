// An operation in one context with its deadline on the wheel of another, and all places where that
// deadline can be.
#pragma once

#include <array>
#include <asio_wheel.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <utility>

#include "support/due.hpp"
#include "support/from_handler.hpp"
#include "support/ledger.hpp"
#include "support/manual_operation.hpp"
#include "support/wheel.hpp"

namespace faults {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Where a deadline is.
enum class place {
  filed,         ///< on B's wheel
  due,           ///< in B's batch, behind a handler that has thrown
  on_its_way,    ///< posted to the handler's executor
  fired,         ///< the operation was cancelled, which it ignores
  refused,       ///< by B, which has not said so yet
  refusal_sent,  ///< posted to the handler's executor
  refusal_told,  ///< the operation was cancelled, which it ignores
};

inline constexpr std::array all_places{place::filed,       place::due,     place::on_its_way,
                                       place::fired,       place::refused, place::refusal_sent,
                                       place::refusal_told};

inline std::ostream& operator<<(std::ostream& out, place p)
{
  constexpr std::array names{"filed",   "due",          "on its way",  "fired",
                             "refused", "refusal sent", "refusal told"};
  return out << names[static_cast<std::size_t>(p)];
}

inline bool is_refused(place p)
{
  return p == place::refused || p == place::refusal_sent || p == place::refusal_told;
}
inline bool has_arrived(place p)
{
  return p == place::fired || p == place::refusal_told;
}
inline bool is_under_way(place p)
{
  return p == place::on_its_way || p == place::refusal_sent;
}

/// What an aborted operation in context A reports with timeout_after.
inline asio_wheel::error_code report_of_abort(place p)
{
  if (p == place::fired) return asio::error::timed_out;
  if (p == place::refusal_told) return asio_wheel::wheel_errc::too_many_pending;
  return asio::error::operation_aborted;
}

/// Does something when its context shuts down.
class at_shutdown : public asio::execution_context::service {
public:
  static inline asio::execution_context::id id;

  explicit at_shutdown(asio::execution_context& context) : service(context) {}

  std::function<void()> act;

private:
  void shutdown() override
  {
    if (const auto f = std::exchange(act, nullptr)) f();
  }
};

enum class handler_in { a, strand_of_c };

/// The contexts, and an operation of A that ignores cancellations.
struct scene {
  explicit scene(handler_in h) : where(h)
  {
    if (h == handler_in::strand_of_c) caller = asio::make_strand(*c);
    operation.obeys = false;
  }

  /// Starts the operation, and takes its deadline there.
  void start(place p, bool with_report = true)
  {
    b = std::make_unique<support::context_with_wheel>(support::with_limit(is_refused(p) ? 1 : 0));
    const auto deadline = b->wheel.now() + (p == place::filed ? 1h : 1ms);
    if (is_refused(p)) b->wheel.async_wait(1h, [](asio_wheel::error_code) {});
    if (p == place::due)
      b->wheel.async_wait(deadline, [](asio_wheel::error_code) { throw support::from_handler(); });
    const auto handler = asio::bind_cancellation_slot(
      signal.slot(),
      asio::bind_allocator(support::booking_allocator<int>(books), result.recorder()));
    if (where == handler_in::a)
      run_until(deadline, with_report, handler);
    else
      run_until(deadline, with_report, asio::bind_executor(caller, handler));
    BOOST_TEST(books.taken == 1U);
    take_deadline_to(p);
  }

  /// The same, and then ends the operation where the handler runs, before a deadline on its way
  /// arrives there.
  void start_and_complete(place p, asio_wheel::error_code ec, std::size_t n = 0,
                          bool with_report = true)
  {
    const auto complete = [this, ec, n] { operation.complete(ec, n); };
    if (!has_arrived(p)) asio::post(caller, complete);
    start(p, with_report);
    if (has_arrived(p)) complete();
    poll();
  }

  /// Runs A and C until they have nothing to do.
  void poll()
  {
    for (int i = 0; i < 2; ++i) {
      for (auto* context : {&a, &c}) {
        if (!*context) continue;
        (*context)->restart();
        (*context)->poll();
      }
    }
  }

  /// Runs B to its end.
  void run_b()
  {
    b->wheel.cancel_all();
    support::run_to_end(b->context);
    BOOST_TEST(b->wheel.pending() == 0U);
  }

  [[nodiscard]] std::size_t fired() const { return operation.seen.size(); }

  handler_in where;
  support::ledger books;
  asio::cancellation_signal signal;
  support::result result;
  std::unique_ptr<asio::io_context> a = std::make_unique<asio::io_context>();
  std::unique_ptr<asio::io_context> c = std::make_unique<asio::io_context>();
  std::unique_ptr<support::context_with_wheel> b;
  asio::any_io_executor caller = a->get_executor();  ///< where the handler runs
  support::manual_operation operation{caller};

private:
  template <class Handler>
  void run_until(asio_wheel::wheel_timer_service::time_point deadline, bool with_report,
                 Handler handler)
  {
    if (with_report)
      operation.async_run(asio_wheel::timeout_at(b->wheel, deadline, handler));
    else
      operation.async_run(asio_wheel::cancel_at(b->wheel, deadline, handler));
  }

  void take_deadline_to(place p)
  {
    if (p == place::filed || p == place::refused) return;
    support::spin(b->wheel, 3ms);
    if (p == place::due) {
      BOOST_CHECK_THROW(b->context.run(), support::from_handler);
      BOOST_TEST(b->wheel.pending() == 1U);
      return;
    }
    b->context.poll();
    if (is_under_way(p)) return;
    poll();
    BOOST_TEST(fired() == 1U);
  }
};

/// Plays `act` for handlers in either context and deadlines in all places.
template <class Act>
void in_all_places(Act act)
{
  for (const handler_in h : {handler_in::a, handler_in::strand_of_c}) {
    for (const place p : all_places) {
      BOOST_TEST_CONTEXT("the deadline is " << p << ", the handler runs in "
                                            << (h == handler_in::a ? "A" : "C"))
      {
        scene s(h);
        act(s, p);
      }
    }
  }
}

}  // namespace faults
