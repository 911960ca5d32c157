// Fault: memory is refused for the n-th allocation, for each n, while something of an operation is
// on its way: its start, its expiry, its cancellation, its refusal or its result, to a handler of
// another context, or on a strand there. No handler is lost, nor what was decided about it.
#include <asio_wheel.hpp>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "faults/operations_elsewhere.hpp"
#include "support/heap.hpp"
#include "support/outcome.hpp"
#include "support/own_executor.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace faults;
using namespace std::chrono_literals;
using support::heap_limit;

namespace {

enum class event { start, expiry, cancel_all, refusal, cancellation, completion };

enum class handlers_on { context, strand };

struct as_they_are {
  template <class Handler>
  Handler operator()(Handler h) const
  {
    return h;
  }
};

struct type_erased {
  template <class Handler>
  asio::any_completion_handler<void(error_code)> operator()(Handler h) const
  {
    return h;
  }
};

/// The wheel in one context and the handlers on another.
template <class Operation, class Handlers>
class story {
public:
  story(event e, handlers_on where, account& books)
    : event_(e),
      where_(where),
      books_(books),
      c_(options_for(e))
  {
    if (where == handlers_on::strand) executor_ = asio::make_strand(other_);
    if (e == event::refusal) c_.wheel.async_wait(1h, holder_.recorder());
    operation_.emplace(books,
                       surroundings{{c_.wheel, c_.context.get_executor()}, executor_, c_.context});
  }

  /// Returns whether memory was refused.
  bool play(std::size_t calls, std::size_t refusals)
  {
    if (event_ != event::start) start();
    if (event_ == event::cancel_all) books_.cancelled += c_.wheel.cancel_all();
    bool refused;
    {
      const heap_limit limit(calls, refusals, heap_limit::reach::asio_too);
      for (int i = 0; i < 3; ++i) act();
      refused = limit.was_reached();
    }
    finish();
    return refused;
  }

private:
  static wheel_options options_for(event e)
  {
    wheel_options options;
    options.shards = 1;
    options.max_pending = e == event::refusal ? 1 : 0;
    return options;
  }

  void start()
  {
    for (int i = 0; i < 5; ++i) start_one();
    attempt([&] { other_.poll(); });
  }

  template <class Act>
  void attempt(Act act)
  {
    try {
      act();
    } catch (const std::exception&) {
    }
    other_.restart();
    c_.context.restart();
  }

  void act()
  {
    attempt([&] {
      if (event_ == event::start) start_one();
      if (event_ == event::cancellation) operation_->cancel();
      if (event_ == event::completion) operation_->end_one();
    });
    run_handlers();
    attempt([&] { c_.context.poll(); });
    if (event_ == event::expiry) attempt([&] { c_.time.advance(2 * a_moment); });
    run_handlers();
  }

  /// Without memory, Asio's strand ends the process.
  void run_handlers()
  {
    if (where_ == handlers_on::context) attempt([&] { other_.poll(); });
  }

  void start_one()
  {
    operation_->start(Handlers()(asio::bind_executor(executor_, accounted(books_))));
  }

  /// With memory, everything ends.
  void finish()
  {
    support::outcome later;
    for (int i = 0; i < 20; ++i) {
      attempt([&] { c_.time.advance(a_moment); });
      attempt([&] { other_.poll(); });
      if (i == 10) operation_->end_rest();
    }
    if (is_stuck()) return;
    BOOST_TEST(books_.ended() == books_.made);
    if (Operation::calls_each) BOOST_TEST(books_.destroyed == books_.told);
    const bool is_held = event_ == event::refusal;
    BOOST_TEST(c_.wheel.pending() == (is_held ? 1U : 0U));
    BOOST_TEST(c_.wheel.cancel_all() == (is_held ? 1U : 0U));
    c_.wheel.async_wait(a_moment, later.recorder());
    c_.time.advance(a_moment);
    BOOST_TEST(later.succeeded());
    BOOST_TEST(holder_.aborted() == is_held);
    BOOST_TEST(c_.wheel.pending() == 0U);
    if (event_ == event::cancel_all && Operation::is_wait)
      BOOST_TEST(books_.aborted == books_.cancelled);
  }

  /// A strand of Asio's that had no memory to be run keeps its functions and runs no more.
  bool is_stuck()
  {
    bool ran = false;
    asio::post(executor_, [&ran] { ran = true; });
    other_.restart();
    other_.poll();
    return !ran;
  }

  support::outcome holder_;  ///< of the wait that fills the wheel
  const event event_;
  const handlers_on where_;
  account& books_;
  support::wheel_in_virtual_time c_;
  asio::io_context other_;
  asio::any_io_executor executor_ = other_.get_executor();
  std::optional<Operation> operation_;
};

/// Returns whether memory was refused.
template <class Operation, class Handlers = as_they_are>
bool refuse(event e, handlers_on where, std::size_t calls, std::size_t refusals)
{
  bool refused = false;
  BOOST_TEST_CONTEXT("after " << calls << " allocations, " << refusals << " refused"
                              << (where == handlers_on::strand ? ", on a strand" : ""))
  {
    account books;
    {
      story<Operation, Handlers> s(e, where, books);
      refused = s.play(calls, refusals);
    }
    BOOST_TEST(books.ended() == books.made);
    BOOST_TEST(books.twice == 0U);
  }
  return refused;
}

template <class Operation>
void refuse_each(event e)
{
  for (const handlers_on where : {handlers_on::context, handlers_on::strand}) {
    // Asio's sockets lose what a strand has no memory for, and the strand with it.
    if (where == handlers_on::strand && !Operation::calls_each) continue;
    for (const std::size_t refusals : {std::size_t{1}, std::size_t{3}}) {
      for (std::size_t calls = 0; refuse<Operation>(e, where, calls, refusals);) ++calls;
    }
  }
}

/// Whether the wheel's context goes before the executor has taken the result.
using context_ends = std::tuple<std::false_type, std::true_type>;

}  // namespace

BOOST_AUTO_TEST_SUITE(refused_dispatch)

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_start, Operation, every_operation_elsewhere)
{
  refuse_each<Operation>(event::start);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_an_expiry, Operation, every_operation_elsewhere)
{
  refuse_each<Operation>(event::expiry);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_what_cancel_all_cancelled, Operation, every_operation_elsewhere)
{
  refuse_each<Operation>(event::cancel_all);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_refusal, Operation, every_operation_elsewhere)
{
  refuse_each<Operation>(event::refusal);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_cancellation, Operation, every_operation_elsewhere)
{
  refuse_each<Operation>(event::cancellation);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_completion, Operation, every_operation_elsewhere)
{
  refuse_each<Operation>(event::completion);
}

// The wheel asks such a handler for its executor when the deadline is due, and that takes memory.
// Without memory for what comes later, Asio itself ends the process.
using with_erased_handlers = std::tuple<expiry_of_a_timer, timeout_elsewhere, guarded_elsewhere>;
BOOST_AUTO_TEST_CASE_TEMPLATE(of_the_executor_of_an_erased_handler, Operation, with_erased_handlers)
{
  for (const handlers_on where : {handlers_on::context, handlers_on::strand})
    BOOST_TEST((refuse<Operation, type_erased>(event::expiry, where, 0, 1)));
}

// The operation completes inside its initiation, so that its result goes through the executor.
BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_result_again_and_again, Ends, context_ends)
{
  std::optional<support::wheel_in_virtual_time> c(std::in_place);
  asio::io_context other;
  bool refuses = true;
  int refused = 0;
  int told = 0;
  const std::function<bool()> takes = [&] {
    if (!refuses) return true;
    ++refused;
    throw std::bad_alloc();
  };
  const support::own_executor ex(other.get_executor(), takes);
  auto value = std::make_shared<int>(7);
  const std::weak_ptr<int> kept = value;
  auto token = timeout_after(
    c->wheel, 1h, asio::bind_executor(ex, [&told](error_code ec, std::shared_ptr<int> v) {
      BOOST_TEST(!ec);
      BOOST_TEST((v && *v == 7));
      ++told;
    }));
  asio::async_initiate<decltype(token), void(error_code, std::shared_ptr<int>)>(
    [](auto handler, std::shared_ptr<int> v) { std::move(handler)(error_code(), std::move(v)); },
    token, std::move(value));
  c->time.advance(a_moment);
  BOOST_TEST(refused > 2);
  BOOST_TEST(told == 0);
  BOOST_TEST(!kept.expired());
  refuses = false;
  if (Ends::value)
    c.reset();
  else
    c->time.advance(a_moment);
  other.poll();
  BOOST_TEST(told == (Ends::value ? 0 : 1));
  BOOST_TEST(kept.expired());
}

BOOST_AUTO_TEST_SUITE_END()
