// Fault: an executor blocks while its queue is full, refuses functions, throws, is slow, or drops
// them, by a seed. It is that of the handler, of the object that waits, or of the wheel's context.
//
// ASIO_WHEEL_SEEDS says how many seeds are played, ASIO_WHEEL_FIRST_SEED where they begin.
#include <array>
#include <asio_wheel.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "faults/operations_elsewhere.hpp"
#include "support/own_executor.hpp"
#include "support/queue_context.hpp"
#include "support/run.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"
#include "support/time_limit.hpp"
#include "support/whims.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace faults;
using namespace std::chrono_literals;

namespace {

enum class executor_of { handler, object, context };

constexpr std::array<support::bad_habits, 6> all_habits{{
  {},  // only blocks
  {.refuses = 5},
  {.throws = 5},
  {.delays = 4},
  {.drops = 4},
  {.refuses = 2, .throws = 2, .delays = 2, .drops = 1},
}};

constexpr std::size_t room = 1;

/// Runs a context in a thread of its own, through whatever executors throw.
template <class Context>
class runner {
public:
  explicit runner(Context& context)
    : work_(std::in_place, asio::prefer(asio::any_io_executor(context.get_executor()),
                                        asio::execution::outstanding_work.tracked)),
      thread_([&context] { run(context); })
  {}
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;
  ~runner() { finish(); }

  void finish()
  {
    work_.reset();
    if (thread_.joinable()) thread_.join();
  }

private:
  static void run(Context& context)
  {
    for (;;) {
      try {
        context.run();
        return;
      } catch (const std::bad_alloc&) {
      } catch (const support::queue_is_full&) {
      }
    }
  }

  std::optional<asio::any_io_executor> work_;
  std::thread thread_;
};

/// Where functions run that the executor takes.
enum class run_by {
  context,  ///< the wheel's, so that nothing blocks
  queue,    ///< with a thread of its own and room for one
};

struct cast {
  executor_of whose;
  run_by where;
};

/// A context with a wheel and a thread; a queue with another, which may have the wheel instead; and
/// an unruly executor on either.
template <class Operation>
class story {
public:
  story(cast c, std::uint64_t seed, account& books)
    : cast_(c),
      habits_(all_habits[seed % all_habits.size()]),
      books_(books),
      random_(seed),
      whims_(seed, habits_),
      wheel_(make_wheel_for(c)),
      operation_(
        std::in_place, books,
        surroundings{
          {wheel_, c.whose == executor_of::handler ? calm() : unruly()}, calm(), context_}),
      queue_thread_(std::in_place, queue_),
      context_thread_(std::in_place, context_)
  {}

  void play()
  {
    for (int i = 0; i < 24; ++i) {
      act();
      if (random_() % 4 == 0) std::this_thread::sleep_for(200us);
    }
    if (random_() % 2 == 0) books_.cancelled += wheel_.cancel_all();
    whims_.calm_down();
    if (!loses_what_the_wheel_needs()) expect_all_end();
    BOOST_TEST(wheel_.pending() <= books_.made);
    leave();
  }

private:
  wheel_timer_service& make_wheel_for(cast c)
  {
    if (c.whose != executor_of::context) return make_wheel(context_);
    if (c.where == run_by::queue) return asio::make_service<wheel_timer_service>(queue_, unruly());
    return asio::make_service<wheel_timer_service>(context_, unruly());
  }

  [[nodiscard]] asio::any_io_executor calm()
  {
    if (cast_.where == run_by::queue) return queue_.get_executor();
    return context_.get_executor();
  }
  [[nodiscard]] asio::any_io_executor unruly()
  {
    return support::own_executor(calm(), whims_.takes());
  }

  [[nodiscard]] bool loses_what_the_wheel_needs() const
  {
    return cast_.whose == executor_of::context && habits_.drops != 0;
  }

  void act()
  {
    switch (random_() % 8) {
      case 0: return operation_->cancel();
      case 1: return operation_->end_one();
      default: break;
    }
    if (cast_.whose == executor_of::handler)
      operation_->start(asio::bind_executor(unruly(), accounted(books_)));
    else
      operation_->start(accounted(books_));
  }

  /// What is still to come comes now, or with a later wait.
  void expect_all_end()
  {
    const auto all_ended = [&] { return books_.ended() == books_.made; };
    for (int i = 1; i <= 5000 && !all_ended(); ++i) {
      if (i % 10 == 0) operation_->end_rest();
      if (i % 10 == 0) wheel_.async_wait(1ms, accounted(books_));
      std::this_thread::sleep_for(1ms);
    }
    BOOST_TEST(all_ended());
    BOOST_TEST(support::eventually([&] { return wheel_.pending() == 0; }));
    if (habits_.drops != 0) return;
    if (Operation::calls_each) BOOST_TEST(books_.destroyed == books_.told);
    if (Operation::is_wait) BOOST_TEST(books_.aborted == books_.cancelled);
  }

  void leave()
  {
    if (loses_what_the_wheel_needs()) {
      queue_.stop();
      context_.stop();
    }
    context_thread_.reset();
    queue_thread_.reset();
    queue_.stop();
    operation_.reset();
  }

  const cast cast_;
  const support::bad_habits habits_;
  account& books_;
  std::mt19937_64 random_;
  support::whims whims_;
  support::queue_context queue_{room};
  asio::io_context context_;
  wheel_timer_service& wheel_;
  std::optional<Operation> operation_;
  std::optional<runner<support::queue_context>> queue_thread_;
  std::optional<runner<asio::io_context>> context_thread_;
};

template <class Operation>
void play(executor_of whose)
{
  const char* const of[] = {"handler", "object", "context"};
  support::for_each_seed(24, [&](std::uint64_t seed) {
    const cast c{whose, seed / all_habits.size() % 2 == 0 ? run_by::queue : run_by::context};
    const auto name = std::string("the executor of the ") + of[static_cast<int>(whose)] +
                      ", seed " + std::to_string(seed);
    const support::time_limit limit(name);
    account books;
    {
      story<Operation> s(c, seed, books);
      s.play();
    }
    BOOST_TEST(books.ended() == books.made);
    BOOST_TEST(books.twice == 0U);
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(unruly_executor)

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_handler_loses_no_operation, Operation, every_operation_elsewhere)
{
  play<Operation>(executor_of::handler);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_an_object_loses_no_operation, Operation, every_operation_elsewhere)
{
  play<Operation>(executor_of::object);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_the_context_loses_no_operation, Operation,
                              every_operation_elsewhere)
{
  play<Operation>(executor_of::context);
}

BOOST_AUTO_TEST_SUITE_END()
