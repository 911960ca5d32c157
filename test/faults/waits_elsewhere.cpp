// Fault: a wait is on the wheel of one context, its handler in another, and the handler's context
// goes first.
//
// The handlers go with their context, as all others of it do, wherever their waits are. The waits
// stay until they end, and call nothing.
#include <array>
#include <asio_wheel.hpp>
#include <atomic>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>

#include "support/due.hpp"
#include "support/from_handler.hpp"
#include "support/ledger.hpp"
#include "support/run.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using support::context_with_wheel;

namespace {

/// Where a wait is when its handler's context goes.
enum class place { filed, cancelled, refused, due, on_its_way };
constexpr std::array all_places{place::filed, place::cancelled, place::refused, place::due,
                                place::on_its_way};

std::ostream& operator<<(std::ostream& out, place p)
{
  constexpr std::array names{"filed", "cancelled", "refused", "due", "on its way"};
  return out << names[static_cast<std::size_t>(p)];
}

wheel_options options_for(place p)
{
  return support::with_limit(p == place::refused ? 1 : 0);
}

/// Takes the waits that `start(delay)` starts to a place.
template <class Start>
void take_to(place p, context_with_wheel& w, Start start)
{
  const auto next = w.wheel.now() + 1ms;
  if (p == place::refused) w.wheel.async_wait(1h, [](error_code) {});
  if (p == place::due) w.wheel.async_wait(next, [](error_code) { throw support::from_handler(); });
  start(p == place::due || p == place::on_its_way ? 1ms : std::chrono::milliseconds(1h));
  if (p == place::cancelled) w.wheel.cancel_all();
  if (p != place::due && p != place::on_its_way) return;
  support::spin(w.wheel, 4ms);
  if (p == place::due)
    BOOST_CHECK_THROW(w.context.run(), support::from_handler);
  else
    w.context.poll();
}

/// Starts a wait of each kind, with handlers made by `make`.
class waits {
public:
  explicit waits(context_with_wheel& w) : w_(w) {}

  template <class Make>
  void start(std::chrono::milliseconds delay, Make make)
  {
    w_.wheel.async_wait(delay, make());
    timer_.emplace(w_.wheel, delay).async_wait(make());
    interval_.emplace(w_.wheel, delay).async_tick(make());
    watchdog_.emplace(w_.wheel, delay).async_expired(make());
    heartbeat_.emplace(w_.wheel, heartbeat_options{.interval = delay}).async_next(make());
  }

private:
  context_with_wheel& w_;
  std::optional<wheel_timer> timer_;
  std::optional<wheel_interval> interval_;
  std::optional<wheel_watchdog> watchdog_;
  std::optional<heartbeat> heartbeat_;
};

constexpr int kinds_of_waits = 5;

/// A handler that must not be called, with an allocator.
class uncalled {
public:
  using allocator_type = support::booking_allocator<int>;

  uncalled(support::ledger& books, const std::shared_ptr<int>& life) : books_(&books), life_(life)
  {}

  [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(*books_); }

  template <class... Args>
  void operator()(const Args&...) const
  {
    BOOST_TEST(false, "called");
  }

private:
  support::ledger* books_;
  std::shared_ptr<int> life_;
};

/// Destroys the handlers' context while waits on `executor_of(context)` are in each place.
template <class ExecutorOf>
void check_all_places(ExecutorOf executor_of)
{
  for (const place p : all_places) {
    BOOST_TEST_CONTEXT("the wait is " << p)
    {
      const auto life = std::make_shared<int>();
      support::ledger books;
      auto home = std::make_unique<asio::io_context>();
      context_with_wheel w(options_for(p));
      waits all(w);
      {
        const auto ex = executor_of(*home);
        const auto make = [&] { return asio::bind_executor(ex, uncalled(books, life)); };
        take_to(p, w, [&](auto delay) { all.start(delay, make); });
      }
      BOOST_TEST(books.taken >= std::size_t(kinds_of_waits));
      BOOST_TEST(life.use_count() == 1 + kinds_of_waits);
      home.reset();
      BOOST_TEST(life.use_count() == 1);
      BOOST_TEST(books.outstanding == 0U);
      w.wheel.cancel_all();
      support::run_to_end(w.context);
      BOOST_TEST(w.wheel.pending() == 0U);
    }
  }
}

/// Waits with a socket of its own context in its frame.
asio::awaitable<void> wait_with_socket(wheel_timer_service& wheel, std::chrono::milliseconds delay,
                                       [[maybe_unused]] std::shared_ptr<int> life)
{
  using asio::ip::udp;
  const udp::socket socket(co_await asio::this_coro::executor,
                           udp::endpoint(asio::ip::address_v4::loopback(), 0));
  co_await wheel.async_wait(delay, asio::use_awaitable);
}

/// An executor that calls a function at once, in whatever thread.
struct inline_executor {
  asio::execution_context* context;

  template <class Function>
  void execute(Function f) const
  {
    f();
  }

  [[nodiscard]] asio::execution_context& query(asio::execution::context_t) const noexcept
  {
    return *context;
  }

  friend bool operator==(inline_executor, inline_executor) = default;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(waits_elsewhere)

BOOST_AUTO_TEST_CASE(handlers_go_with_their_context)
{
  check_all_places([](asio::io_context& c) { return c.get_executor(); });
  check_all_places([](asio::io_context& c) { return asio::any_io_executor(c.get_executor()); });
}

BOOST_AUTO_TEST_CASE(handlers_on_a_strand_go_with_their_context)
{
  check_all_places([](asio::io_context& c) { return asio::make_strand(c); });
  check_all_places([](asio::io_context& c) { return asio::any_io_executor(asio::make_strand(c)); });
}

BOOST_AUTO_TEST_CASE(type_erased_handlers_go_with_their_context)
{
  using any_handler = asio::any_completion_handler<void(error_code)>;
  for (const place p : all_places) {
    BOOST_TEST_CONTEXT("the wait is " << p)
    {
      const auto life = std::make_shared<int>();
      auto home = std::make_unique<asio::io_context>();
      context_with_wheel w(options_for(p));
      const auto handler = [life](error_code) { BOOST_TEST(false, "called"); };
      take_to(p, w, [&](auto delay) {
        const auto strand = asio::make_strand(*home);
        w.wheel.async_wait(delay, any_handler(asio::bind_executor(strand, handler)));
      });
      home.reset();
      BOOST_TEST(life.use_count() == 2);
      w.wheel.cancel_all();
      support::run_to_end(w.context);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_coroutine_goes_with_its_context)
{
  for (const place p : all_places) {
    BOOST_TEST_CONTEXT("the wait is " << p)
    {
      const auto life = std::make_shared<int>();
      auto home = std::make_unique<asio::io_context>();
      context_with_wheel w(options_for(p));
      take_to(p, w, [&](auto delay) {
        asio::co_spawn(*home, wait_with_socket(w.wheel, delay, life), asio::detached);
        home->poll();
      });
      BOOST_TEST(life.use_count() == 2);
      home.reset();
      BOOST_TEST(life.use_count() == 1);
      w.wheel.cancel_all();
      support::run_to_end(w.context);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_timer_on_an_executor_of_a_context_that_goes)
{
  const auto life = std::make_shared<int>();
  auto home = std::make_unique<asio::io_context>();
  context_with_wheel w;
  using timer_type = basic_wheel_timer<asio::io_context::executor_type>;
  timer_type timer({w.wheel, home->get_executor()}, 1h);
  timer.async_wait([life](error_code) { BOOST_TEST(false, "called"); });
  home.reset();
  BOOST_TEST(life.use_count() == 1);
  timer.cancel();
  support::run_to_end(w.context);
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_started_while_its_handlers_context_goes)
{
  const auto life = std::make_shared<int>();
  support::ledger books;
  auto home = std::make_unique<asio::io_context>();
  context_with_wheel w;
  const auto ex = home->get_executor();
  const auto start = [&] {
    w.wheel.async_wait(1h, asio::bind_executor(ex, uncalled(books, life)));
  };
  start();
  const auto at_end = [start](int*) { start(); };
  asio::post(*home, [end = std::shared_ptr<int>(nullptr, at_end)] {});
  home.reset();
  BOOST_TEST(books.taken >= 2U);
  BOOST_TEST(books.outstanding == 0U);
  BOOST_TEST(life.use_count() == 1);
  w.wheel.cancel_all();
  support::run_to_end(w.context);
}

BOOST_AUTO_TEST_CASE(a_signal_finds_no_handler_any_more)
{
  for (const place p : all_places) {
    asio::cancellation_signal signal;
    auto home = std::make_unique<asio::io_context>();
    context_with_wheel w(options_for(p));
    take_to(p, w, [&](auto delay) {
      w.wheel.async_wait(delay, asio::bind_cancellation_slot(
                                  signal.slot(), asio::bind_executor(*home, [](error_code) {
                                    BOOST_TEST(false, "called");
                                  })));
    });
    home.reset();
    signal.emit(asio::cancellation_type::terminal);
    w.wheel.cancel_all();
    support::run_to_end(w.context);
  }
}

BOOST_AUTO_TEST_CASE(a_handler_may_own_its_context)
{
  for (const place p : {place::filed, place::cancelled, place::refused, place::due}) {
    BOOST_TEST_CONTEXT("the wait is " << p)
    {
      auto home = std::make_shared<asio::io_context>();
      const std::weak_ptr<asio::io_context> watched = home;
      {
        context_with_wheel w(options_for(p));
        take_to(p, w, [&](auto delay) {
          const auto ex = home->get_executor();
          w.wheel.async_wait(delay, asio::bind_executor(ex, [h = std::move(home)](error_code) {}));
        });
        BOOST_TEST(!watched.expired());
      }
      BOOST_TEST(watched.expired());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_handler_called_at_once_may_destroy_its_context)
{
  auto home = std::make_unique<asio::io_context>();
  context_with_wheel w;
  const inline_executor ex{home.get()};
  bool called = false;
  w.wheel.async_wait(1ms, asio::bind_executor(ex, [&](error_code) {
                       called = true;
                       home.reset();
                     }));
  support::run_to_end(w.context);
  BOOST_TEST(called);
}

BOOST_AUTO_TEST_CASE(the_wheel_goes_first)
{
  for (const place p : all_places) {
    BOOST_TEST_CONTEXT("the wait is " << p)
    {
      const auto life = std::make_shared<int>();
      asio::io_context home;
      std::optional<context_with_wheel> w(std::in_place, options_for(p));
      waits all(*w);
      const auto make = [&] {
        return asio::bind_executor(home, [life, p](const auto&...) {
          BOOST_TEST((p == place::due || p == place::on_its_way), "called");
        });
      };
      take_to(p, *w, [&](auto delay) { all.start(delay, make); });
      w.reset();
      if (p != place::due && p != place::on_its_way) BOOST_TEST(life.use_count() == 1);
      support::run_to_end(home);
      BOOST_TEST(life.use_count() == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_wait_keeps_its_handlers_context_running)
{
  asio::io_context home;
  context_with_wheel w;
  int calls = 0;
  support::ledger books;
  w.wheel.async_wait(
    2ms, asio::bind_executor(
           home, asio::bind_allocator(support::booking_allocator<int>(books), [&](error_code ec) {
             BOOST_TEST(!ec);
             BOOST_TEST(home.get_executor().running_in_this_thread());
             BOOST_TEST(books.outstanding == 0U);
             ++calls;
           })));
  BOOST_TEST(home.poll() == 0U);
  BOOST_TEST(!home.stopped());
  support::run_to_end(w.context);
  support::run_to_end(home);
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(a_wait_that_is_moved_on_its_way_ends_if_its_wheel_has_gone)
{
  asio::io_context home;
  std::array<error_code, 4> ends;
  int calls = 0;
  const auto handler = [&](std::size_t i) {
    return asio::bind_executor(home, [&, i](error_code ec, const auto&...) {
      ++calls;
      ends[i] = ec;
    });
  };
  asio::cancellation_signal signal;
  auto w = std::make_unique<context_with_wheel>();
  wheel_watchdog dog(w->wheel, 5ms);
  wheel_watchdog with_slot(w->wheel, 5ms);
  heartbeat beat(w->wheel, {.interval = 5ms});
  wheel_interval interval(w->wheel, 5ms);
  keyed_scheduler<int> tasks({w->wheel, home.get_executor()});
  dog.async_expired(handler(0));
  with_slot.async_expired(asio::bind_cancellation_slot(signal.slot(), handler(1)));
  beat.async_next(handler(2));
  interval.async_tick(handler(3));
  const auto life = std::make_shared<int>();
  tasks.run_after(1, 5ms, [life] { BOOST_TEST(false, "called"); });
  support::run_to_end(w->context);
  BOOST_TEST(calls == 0);
  std::this_thread::sleep_for(10ms);
  dog.set_timeout(1h);
  dog.touch();
  with_slot.set_timeout(1h);
  with_slot.touch();
  beat.received();
  interval.reset();
  tasks.reschedule(1, 1h);
  w.reset();
  home.poll();
  BOOST_TEST(home.stopped());
  BOOST_TEST(calls == 4);
  for (const std::size_t i : {0U, 1U}) BOOST_TEST(ends[i] == asio::error::operation_aborted);
  BOOST_TEST(tasks.size() == 0U);
  BOOST_TEST(life.use_count() == 1);
  signal.emit(asio::cancellation_type::terminal);
  BOOST_TEST(dog.cancel() == 0U);
}

BOOST_AUTO_TEST_CASE(destructors_start_further_waits_while_the_context_goes)
{
  struct again {
    again(wheel_timer_service& w, asio::io_context& c, int more, std::shared_ptr<int> l)
      : wheel(&w),
        context(&c),
        left(more),
        life(std::move(l))
    {}
    again(again&&) noexcept = default;
    ~again()
    {
      if (!life || left == 0) return;
      wheel->async_wait(1h, asio::bind_executor(*context, again(*wheel, *context, left - 1, life)));
    }
    void operator()(error_code = {}) {}

    wheel_timer_service* wheel;
    asio::io_context* context;
    int left;
    std::shared_ptr<int> life;
  };
  for (const bool posted : {false, true}) {
    const auto life = std::make_shared<int>();
    context_with_wheel w;
    {
      asio::io_context home;
      again first(w.wheel, home, 5, life);
      if (posted)
        asio::post(home, std::move(first));
      else
        w.wheel.async_wait(1h, asio::bind_executor(home, std::move(first)));
    }
    BOOST_TEST(life.use_count() == 1);
    w.wheel.cancel_all();
    support::run_to_end(w.context);
    BOOST_TEST(life.use_count() == 1);
  }
}

BOOST_AUTO_TEST_CASE(contexts_go_while_a_wheel_in_another_thread_completes_their_waits)
{
  constexpr int contexts = 300;
  constexpr int waits_of_each = 40;
  const auto life = std::make_shared<std::atomic<int>>();
  context_with_wheel w;
  auto busy = asio::make_work_guard(w.context);
  std::thread other([&] { w.context.run(); });
  for (int i = 0; i < contexts; ++i) {
    asio::io_context home;
    for (int j = 0; j < waits_of_each; ++j) {
      const auto delay = 50us * j;
      const auto count = [life](error_code) { ++*life; };
      if (j % 2)
        w.wheel.async_wait(delay, asio::bind_executor(home, count));
      else
        w.wheel.async_wait(delay, asio::bind_executor(asio::make_strand(home), count));
    }
    home.run_for(1ms);
  }
  BOOST_TEST(life.use_count() == 1);
  busy.reset();
  other.join();
  BOOST_TEST(*life > 0);
}

// The other way round: the wheel's context goes first, and before it the objects that the waits are
// of.
BOOST_AUTO_TEST_CASE(
  the_objects_and_the_wheel_go_while_waits_that_cancel_all_has_ended_are_on_their_way)
{
  int aborted = 0;
  asio::io_context home;
  {
    context_with_wheel w;
    waits all(w);
    take_to(place::on_its_way, w, [&](auto delay) {
      all.start(delay, [&] {
        return asio::bind_executor(home, [&](error_code ec, const auto&...) {
          aborted += ec == asio::error::operation_aborted;
        });
      });
    });
    BOOST_TEST(w.wheel.cancel_all() == std::size_t{kinds_of_waits});
  }
  home.run();
  BOOST_TEST(aborted == kinds_of_waits);
}

BOOST_AUTO_TEST_SUITE_END()
