// Where wheel_timer is stricter than steady_timer: a wait that is due can still be cancelled.
#include <asio_wheel.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <type_traits>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/timers.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using std::chrono::steady_clock;
using support::every_timer;
using support::outcome;

namespace {

template <class Timer>
constexpr bool is_strict = !std::is_same_v<Timer, boost::asio::steady_timer>;

/// Makes the deadlines of two timers pass together. Calls `act(second)` in the handler of `first`,
/// while the handler of `second` is queued behind it.
template <class Timer>
struct expired_pair {
  asio::io_context context;
  Timer first{context, steady_clock::now() - 1s};
  Timer second{context, steady_clock::now() - 1s};
  outcome queued;

  template <class Act>
  void run(Act act)
  {
    first.async_wait([this, act](boost::system::error_code ec) {
      BOOST_TEST(!ec);
      act(second);
    });
    second.async_wait(queued.recorder());
    support::run_to_end(context);
  }
};

/// The result of a queued wait that was cancelled, and what the cancel returned.
template <class Timer>
void check_cancelled(const outcome& wait, std::size_t counted)
{
  BOOST_TEST(counted == (is_strict<Timer> ? 1U : 0U));
  BOOST_TEST(is_strict<Timer> == wait.aborted());
  BOOST_TEST(is_strict<Timer> != wait.succeeded());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stricter_than_steady_timer)

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_ends_a_queued_expiry, Timer, every_timer)
{
  expired_pair<Timer> pair;
  std::size_t n = 0;
  pair.run([&](Timer& timer) { n = timer.cancel(); });
  check_cancelled<Timer>(pair.queued, n);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_one_ends_a_queued_expiry, Timer, every_timer)
{
  expired_pair<Timer> pair;
  std::size_t n = 0;
  pair.run([&](Timer& timer) { n = timer.cancel_one(); });
  check_cancelled<Timer>(pair.queued, n);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_new_expiry_undoes_a_queued_one, Timer, every_timer)
{
  expired_pair<Timer> pair;
  std::size_t n = 0;
  pair.run([&](Timer& timer) { n = timer.expires_after(1h); });
  check_cancelled<Timer>(pair.queued, n);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_assignment_ends_a_queued_expiry, Timer, every_timer)
{
  expired_pair<Timer> pair;
  pair.run([&](Timer& timer) { timer = Timer(pair.context); });
  BOOST_TEST(is_strict<Timer> == pair.queued.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destruction_in_its_own_handler_ends_the_other_waits, Timer,
                              every_timer)
{
  asio::io_context context;
  auto timer = std::make_unique<Timer>(context, 1ms);
  outcome first;
  outcome second;
  timer->async_wait([&](error_code ec) {
    first.recorder()(ec);
    timer.reset();
  });
  timer->async_wait(second.recorder());
  support::run_to_end(context);
  BOOST_TEST(first.succeeded());
  BOOST_TEST(is_strict<Timer> == second.aborted());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_ends_an_expiry_on_its_way_to_another_context, Timer,
                              every_timer)
{
  asio::io_context context;
  asio::io_context other;
  Timer timer(context, 1ms);
  outcome wait;
  timer.async_wait(asio::bind_executor(asio::make_strand(other), wait.recorder()));
  support::run_to_end(context);
  BOOST_TEST(wait.pending());
  check_cancelled<Timer>(wait, [&] {
    const std::size_t n = timer.cancel();
    support::run_to_end(other);
    return n;
  }());
}

BOOST_AUTO_TEST_SUITE_END()
