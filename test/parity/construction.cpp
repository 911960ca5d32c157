// Parity of construction: member types, every constructor, the executor and the expiry they leave.
#include "support/run.hpp"
#include "support/timers.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <type_traits>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using support::every_timer;

namespace {

/// Whether `expiry` may have been set, `delay` ahead, between `before` and now.
bool is_ahead_by(steady_clock::time_point expiry, steady_clock::duration delay,
                 steady_clock::time_point before)
{
  return before + delay <= expiry && expiry <= steady_clock::now() + delay;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(construction)

BOOST_AUTO_TEST_CASE_TEMPLATE(every_timer_names_the_same_types, Timer, every_timer)
{
  BOOST_TEST((std::is_same_v<typename Timer::executor_type, asio::any_io_executor>));
  BOOST_TEST((std::is_same_v<typename Timer::clock_type, steady_clock>));
  BOOST_TEST((std::is_same_v<typename Timer::duration, steady_clock::duration>));
  BOOST_TEST((std::is_same_v<typename Timer::time_point, steady_clock::time_point>));
  BOOST_TEST((std::is_same_v<typename Timer::traits_type, asio::steady_timer::traits_type>));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_type_rebinds_to_another_executor_and_back, Timer, every_timer)
{
  using on_io = support::on_io_context<Timer>;
  BOOST_TEST((std::is_same_v<typename on_io::executor_type, asio::io_context::executor_type>));
  BOOST_TEST((std::is_same_v<support::rebound<on_io, asio::any_io_executor>, Timer>));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_made_from_an_executor_has_no_expiry, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context.get_executor());
  BOOST_TEST((timer.get_executor() == context.get_executor()));
  BOOST_TEST((timer.expiry() == typename Timer::time_point{}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_made_from_a_context_has_no_expiry, Timer, every_timer)
{
  asio::io_context context;
  Timer timer(context);
  BOOST_TEST((timer.get_executor() == context.get_executor()));
  BOOST_TEST((timer.expiry() == typename Timer::time_point{}));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_made_with_a_time_point_expires_at_it, Timer, every_timer)
{
  asio::io_context context;
  const auto deadline = steady_clock::now() + 1h;
  const Timer from_executor(context.get_executor(), deadline);
  const Timer from_context(context, deadline);
  BOOST_TEST((from_executor.expiry() == deadline));
  BOOST_TEST((from_context.expiry() == deadline));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_timer_made_with_a_duration_expires_after_it, Timer, every_timer)
{
  asio::io_context context;
  const auto before = steady_clock::now();
  const Timer from_executor(context.get_executor(), 1h);
  const Timer from_context(context, 30min);
  BOOST_TEST(is_ahead_by(from_executor.expiry(), 1h, before));
  BOOST_TEST(is_ahead_by(from_context.expiry(), 30min, before));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_possible_with_a_known_executor_type, Timer, every_timer)
{
  using on_io = support::on_io_context<Timer>;
  asio::io_context context;
  const auto before = steady_clock::now();
  on_io from_executor(context.get_executor(), 1h);
  on_io from_context(context, before);
  BOOST_TEST((from_executor.get_executor() == context.get_executor()));
  BOOST_TEST((from_context.get_executor() == context.get_executor()));
  BOOST_TEST(is_ahead_by(from_executor.expiry(), 1h, before));
  BOOST_TEST((from_context.expiry() == before));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_possible_on_a_strand_and_on_a_pool, Timer, every_timer)
{
  asio::io_context context;
  asio::thread_pool pool(1);
  const auto strand = asio::make_strand(context);
  Timer on_strand(strand, 1h);
  Timer on_pool(pool, 1h);
  BOOST_TEST((on_strand.get_executor() == strand));
  BOOST_TEST((on_pool.get_executor() == pool.get_executor()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_possible_on_a_typed_strand, Timer, every_timer)
{
  using strand_type = asio::strand<asio::io_context::executor_type>;
  asio::io_context context;
  const strand_type strand(context.get_executor());
  support::rebound<Timer, strand_type> timer(strand, 1h);
  BOOST_TEST((timer.get_executor() == strand));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(is_explicit_and_refuses_strangers, Timer, every_timer)
{
  BOOST_TEST((!std::is_convertible_v<asio::any_io_executor, Timer>));
  BOOST_TEST((!std::is_convertible_v<asio::io_context&, Timer>));
  BOOST_TEST((!std::is_constructible_v<Timer, int&>));
  BOOST_TEST((!std::is_constructible_v<Timer, int&, std::chrono::seconds>));
  BOOST_TEST((!std::is_default_constructible_v<Timer>));
  BOOST_TEST((!std::is_copy_constructible_v<Timer>));
  BOOST_TEST((!std::is_copy_assignable_v<Timer>));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(get_executor_returns_a_const_reference, Timer, every_timer)
{
  using result = decltype(std::declval<Timer&>().get_executor());
  BOOST_TEST((std::is_same_v<result, const typename Timer::executor_type&>));
  BOOST_TEST(noexcept(std::declval<Timer&>().get_executor()));
}

BOOST_AUTO_TEST_SUITE_END()
