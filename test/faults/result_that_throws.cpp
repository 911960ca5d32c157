// Fault: an operation with a deadline has left its result behind, and the result throws as it is
// moved; or there is no memory to keep it.
#include <asio_wheel.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>

#include "support/heap.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using boost::system::error_code;

namespace {

/// Throws at a move of any object of it, counted from 1; 0: never.
struct throwing_result {
  inline static int moves_left = 0;

  throwing_result() = default;
  throwing_result(throwing_result&&) { count(); }
  throwing_result(const throwing_result&) { count(); }

  static void count()
  {
    if (moves_left != 0 && --moves_left == 0) throw std::runtime_error("moved");
  }
};

/// Completes inside its initiation.
template <class Token>
auto async_at_once(Token&& token)
{
  return asio::async_initiate<Token, void(error_code, throwing_result)>(
    [](auto handler) { std::move(handler)(error_code(), throwing_result()); }, token);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(left_behind)

BOOST_AUTO_TEST_CASE(a_result_that_throws_takes_its_handler_along)
{
  int thrown = 0;
  for (int n = 1; n != 12; ++n) {
    const auto life = std::make_shared<int>();
    int calls = 0;
    {
      support::context_with_wheel c;
      const auto strand = asio::make_strand(c.context);
      const auto handler = [&calls, life](error_code, const throwing_result&) { ++calls; };
      async_at_once(cancel_after(c.wheel, 1h, asio::bind_executor(strand, handler)));
      throwing_result::moves_left = n;
      bool threw = false;
      try {
        c.context.run_for(support::patience);
      } catch (const std::runtime_error&) {
        threw = true;
        ++thrown;
      }
      throwing_result::moves_left = 0;
      support::run_to_end(c.context);
      BOOST_TEST(calls == (threw ? 0 : 1));
      BOOST_TEST(c.wheel.pending() == 0U);
    }
    BOOST_TEST(life.use_count() == 1);
  }
  BOOST_TEST(thrown > 0);
}

BOOST_AUTO_TEST_CASE(is_kept_without_memory_for_work_in_another_context)
{
  for (std::size_t n = 0; n != 6; ++n) {
    asio::io_context home;
    support::context_with_wheel c;
    const asio::any_io_executor ex = asio::make_strand(home);
    asio::steady_timer object(home, 1h);
    int calls = 0;
    object.async_wait(
      abandon_after(c.wheel, 1ms, asio::bind_executor(ex, [&](error_code) { ++calls; })));
    c.context.run_for(10ms);
    {
      const support::heap_limit limit(n, 1);
      home.poll();
    }
    for (int i = 0; i != 3; ++i) {
      support::run_to_end(c.context);
      home.restart();
      home.poll();
    }
    BOOST_TEST(calls == 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
