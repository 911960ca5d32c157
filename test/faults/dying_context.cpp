// Fault: the context goes, with a million waits, with services in any order, as a static object, or
// with others who use the wheel while it does.
//
// As soon as its context shuts down, a wheel destroys every handler that it gets: none is called,
// none is left, nothing crashes. Timers may outlive all of it.
#include <array>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "faults/every_operation.hpp"
#include "support/heap.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using namespace faults;
using namespace std::chrono_literals;

namespace {

/// Another service that holds timers, and does something when its context shuts down.
class lodger : public asio::execution_context::service {
public:
  static inline asio::execution_context::id id;

  explicit lodger(asio::execution_context& context) : service(context) {}

  std::optional<wheel_timer> timer;
  std::optional<wheel_timer> other;
  std::function<void()> at_shutdown;

private:
  void shutdown() override
  {
    // Newer Asio calls this twice.
    if (const auto act = std::exchange(at_shutdown, nullptr)) act();
  }
};

/// A handler that must not be called.
class uncalled {
public:
  explicit uncalled(const std::shared_ptr<int>& life) : life_(life) {}

  template <class... Args>
  void operator()(const Args&...) const
  {
    BOOST_TEST(false, "called");
  }

private:
  std::shared_ptr<int> life_;
};

enum class order { lodger_first, wheel_first };
constexpr std::array both_orders{order::lodger_first, order::wheel_first};

/// A context with a wheel and another service, made in this order, and so destroyed in the other.
struct house {
  explicit house(order o)
  {
    if (o == order::lodger_first) use_lodger();
    wheel = &make_wheel(*context);
    if (o == order::wheel_first) use_lodger();
  }

  void use_lodger() { guest = &asio::use_service<lodger>(*context); }

  std::unique_ptr<asio::io_context> context = std::make_unique<asio::io_context>();
  wheel_timer_service* wheel = nullptr;
  lodger* guest = nullptr;
  std::shared_ptr<int> life = std::make_shared<int>();
};

/// Runs a little, so that there are completions in every state.
void run_a_little(asio::io_context& context)
{
  context.poll_one();
  context.poll_one();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dying_context)

BOOST_AUTO_TEST_CASE(with_a_million_waits_destroys_each_and_gives_their_memory_back)
{
  constexpr std::size_t many = 1'000'000;
  const auto life = std::make_shared<int>();
  const auto fill_and_destroy = [&] {
    std::vector<wheel_timer> timers;
    {
      support::context_with_wheel c;
      support::delays delays(-1ms, 24h);
      timers.reserve(many / 10);
      for (std::size_t i = 0; i < many; ++i) {
        if (i % 10 == 0) {
          timers.emplace_back(c.wheel).expires_after(delays.next());
          timers.back().async_wait(uncalled(life));
        } else {
          c.wheel.async_wait(delays.next(), uncalled(life));
        }
        if (i % 7 == 0) timers[timers.size() / 2].cancel();
      }
      BOOST_TEST(static_cast<std::size_t>(life.use_count()) == many + 1);
    }
    BOOST_TEST(life.use_count() == 1);
  };
  fill_and_destroy();
  const std::size_t before = support::heap_in_use();
  fill_and_destroy();
  BOOST_TEST(support::heap_in_use() == before);
}

BOOST_AUTO_TEST_CASE(may_have_a_service_with_timers_that_is_older_or_younger_than_the_wheel)
{
  for (const order o : both_orders) {
    house h(o);
    h.guest->timer.emplace(*h.wheel, 1h);
    h.guest->timer->async_wait(uncalled(h.life));
    h.guest->other.emplace(*h.wheel, 1h);
    h.guest->other->async_wait(uncalled(h.life));
    h.guest->other->cancel();
    BOOST_TEST(h.life.use_count() == 3);
    h.context.reset();
    BOOST_TEST(h.life.use_count() == 1);
  }
}

BOOST_AUTO_TEST_CASE(may_have_a_service_whose_timers_are_in_handlers_of_the_wheel)
{
  for (const order o : both_orders) {
    house h(o);
    auto timer = std::make_shared<wheel_timer>(*h.wheel, 1h);
    h.guest->timer.emplace(*h.wheel, 1h);
    h.guest->timer->async_wait([timer, u = uncalled(h.life)](error_code) { u(); });
    timer->async_wait([u = uncalled(h.life)](error_code) { u(); });
    h.guest->at_shutdown = [weak = std::weak_ptr(timer), u = uncalled(h.life)] {
      if (const auto t = weak.lock()) t->cancel();
    };
    timer.reset();
    h.context.reset();
    BOOST_TEST(h.life.use_count() == 1);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destroys_what_a_service_starts_as_it_shuts_down, Operation,
                              every_operation)
{
  // Asio's timer must not outlive its context; ours may.
  constexpr bool outlives = !std::is_same_v<Operation, operation_that_times_out>;
  for (const order o : both_orders) {
    for (const bool in_use : {false, true}) {
      house h(o);
      // So that nothing falls due, however slow the machine is.
      std::optional<virtual_time> still(std::in_place, *h.wheel);
      std::optional<Operation> before(std::in_place, *h.wheel);
      std::optional<Operation> during;
      if (in_use) {
        before->start(uncalled(h.life));
        run_a_little(*h.context);
      }
      still.reset();
      h.guest->at_shutdown = [&] {
        before->start(uncalled(h.life));
        during.emplace(*h.wheel);
        during->start(uncalled(h.life));
        before.reset();
        if (!outlives) during.reset();
      };
      h.context.reset();
      during.reset();
      BOOST_TEST(h.life.use_count() == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(lets_everything_be_asked_of_the_wheel_as_it_goes)
{
  for (const order o : both_orders) {
    house h(o);
    auto& context = *h.context;
    auto& wheel = *h.wheel;
    auto& guest = *h.guest;
    guest.timer.emplace(wheel, 1h);
    guest.timer->async_wait(uncalled(h.life));
    wheel.async_wait(1h, uncalled(h.life));
    guest.at_shutdown = [&] {
      wheel_timer& timer = *guest.timer;
      timer.async_wait(uncalled(h.life));
      timer.cancel_one();
      timer.expires_after(0s);
      timer.async_wait(uncalled(h.life));
      wheel_timer moved(std::move(timer));
      moved.expires_at(time_point::max());
      timer = std::move(moved);
      wheel.cancel_all();
      BOOST_TEST((wheel.now() > time_point{}));
      BOOST_TEST(wheel.pending() == 0U);
      BOOST_TEST(wheel.stats().expired == 0U);
      BOOST_TEST(&use_wheel(context) == &wheel);
    };
    h.context.reset();
    BOOST_TEST(h.life.use_count() == 1);
  }
}

BOOST_AUTO_TEST_CASE(may_get_its_first_wheel_while_it_shuts_down)
{
  const auto life = std::make_shared<int>();
  {
    asio::io_context context;
    auto& guest = asio::use_service<lodger>(context);
    guest.at_shutdown = [&] {
      auto& wheel = use_wheel(context);
      wheel.async_wait(0s, uncalled(life));
      wheel.async_wait(1h, uncalled(life));
      guest.timer.emplace(context, 1h);
      guest.timer->async_wait(uncalled(life));
    };
  }
  BOOST_TEST(life.use_count() == 1);
}

// The end of the process checks this: it must be an orderly one.
BOOST_AUTO_TEST_CASE(may_be_static)
{
  struct check {
    std::shared_ptr<int> life = std::make_shared<int>();
    ~check()
    {
      if (life.use_count() != 1) std::abort();
    }
  };
  // Destroyed from the last to the first.
  static check last;
  static std::optional<wheel_timer> outlives_its_context;
  static asio::io_context context;
  static wheel_timer goes_before_its_context(context, 1h);
  outlives_its_context.emplace(context, 1h);
  outlives_its_context->async_wait(uncalled(last.life));
  goes_before_its_context.async_wait(uncalled(last.life));
  use_wheel(context).async_wait(0s, uncalled(last.life));
  use_wheel(context).async_wait(1h, uncalled(last.life));
  BOOST_TEST(last.life.use_count() == 5);
}

BOOST_AUTO_TEST_SUITE_END()
