// wheel_watchdog with an idle_window: how its timeout follows the wheel's pressure.
#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/outcome.hpp"
#include "support/run.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::context_with_wheel;
using support::outcome;
using support::wheel_in_virtual_time;

namespace {

constexpr idle_window window{10s, 60s};

/// A watchdog in virtual time that is waited for.
struct watched : wheel_in_virtual_time {
  wheel_watchdog dog{wheel, window};
  outcome expiry;

  watched() { dog.async_expired(expiry.recorder()); }
};

/// So many that are waited for, in real time.
struct many_watched : context_with_wheel {
  many_watched(std::size_t n, idle_window w)
  {
    for (std::size_t i = 0; i != n; ++i) {
      dogs.emplace_back(wheel, w);
      watch(dogs.back());
    }
    context.poll();
  }

  void watch(wheel_watchdog& dog)
  {
    dog.async_expired([this](error_code ec) { expired += ec ? 0 : 1; });
  }

  std::vector<wheel_watchdog> dogs;
  std::size_t expired = 0;
};

/// A watchdog in virtual time that has a wait or guards an operation, and when that is to end.
class watched_by_rule {
public:
  watched_by_rule(wheel_timer_service& w, bool guards) : wheel_(w), guards_(guards)
  {
    replace({10s, 60s});
  }

  void replace(idle_window w)
  {
    window_ = w;
    dog_.emplace(wheel_, w);
    touched_ = changed_ = wheel_.now();
    pending_ = false;
    never_ends_.cancel();
  }

  void touch()
  {
    dog_->touch();
    touched_ = wheel_.now();
  }

  void start()
  {
    if (pending_) return;
    pending_ = true;
    changed_ = wheel_.now();
    const auto ended = [this](error_code ec) {
      if (ec == asio::error::operation_aborted) return;
      const auto now = wheel_.now();
      pending_ = false;
      ++expired;
      if (now < due()) complaint = "early";
      if (now > std::max(due(), changed_) + 2ms) complaint = "late";
    };
    if (guards_)
      never_ends_.async_wait(dog_->guard(ended));
    else
      dog_->async_expired(ended);
  }

  void move() { dog_.emplace(wheel_watchdog(std::move(*dog_))); }

  void cancel()
  {
    dog_->cancel();
    never_ends_.cancel();
    pending_ = false;
  }

  void set_timeout(duration d)
  {
    window_ = {d, d};
    dog_->set_timeout(d);
    changed_ = wheel_.now();
  }

  void check()
  {
    if (pending_ && wheel_.now() > std::max(due(), changed_) + 2ms) complaint = "missed";
  }

  /// Something other than a touch may have made it due.
  void change() { changed_ = wheel_.now(); }

  int expired = 0;
  std::string complaint;

private:
  [[nodiscard]] wheel_timer_service::time_point due() const
  {
    const double part =
      wheel_.pressure() * static_cast<double>((window_.max - window_.min).count());
    return touched_ + window_.max - duration(static_cast<duration::rep>(part));
  }

  wheel_timer_service& wheel_;
  const bool guards_;
  idle_window window_{};
  std::optional<wheel_watchdog> dog_;
  asio::steady_timer never_ends_{wheel_.get_executor(), asio::steady_timer::time_point::max()};
  wheel_timer_service::time_point touched_, changed_;
  bool pending_ = false;
};

struct any_watched {
  static constexpr int many = 30;

  explicit any_watched(wheel_timer_service& w) : wheel(w)
  {
    for (int i = 0; i != many; ++i)
      dogs.push_back(std::make_unique<watched_by_rule>(w, i % 2 == 0));
  }

  void set_pressure(double p)
  {
    wheel.set_pressure(p);
    for (auto& dog : dogs) dog->change();
  }

  [[nodiscard]] std::string check() const
  {
    for (auto& dog : dogs) {
      dog->check();
      if (!dog->complaint.empty()) return dog->complaint;
    }
    return {};
  }

  [[nodiscard]] int expired() const
  {
    int n = 0;
    for (auto& dog : dogs) n += dog->expired;
    return n;
  }

  wheel_timer_service& wheel;
  std::vector<std::unique_ptr<watched_by_rule>> dogs;
};

template <class Function>
bool refuses(Function f, const std::string& value, const std::string& range)
{
  try {
    f();
  } catch (const std::invalid_argument& e) {
    const std::string what = e.what();
    return what.find(value) != what.npos && what.find(range) != what.npos;
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(watchdog_under_pressure)

BOOST_AUTO_TEST_CASE(expires_after_what_the_pressure_leaves_of_its_window)
{
  for (const auto& [p, timeout] : {std::pair{0.0, 60s}, {0.2, 50s}, {0.5, 35s}, {1.0, 10s}}) {
    wheel_in_virtual_time c;
    c.wheel.set_pressure(p);
    BOOST_TEST(c.wheel.pressure() == p);
    wheel_watchdog dog(c.wheel, window);
    BOOST_TEST((dog.timeout() == timeout));
    outcome o;
    dog.async_expired(o.recorder());
    c.time.advance(timeout - 1ms);
    BOOST_TEST(o.pending());
    c.time.advance(1ms);
    BOOST_TEST(o.succeeded());
  }
}

BOOST_AUTO_TEST_CASE(follows_rising_pressure_while_it_is_pending)
{
  watched c;
  c.time.advance(20s);
  c.wheel.set_pressure(0.5);
  c.time.advance(14s);
  BOOST_TEST(c.expiry.pending());
  c.time.advance(1s);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(expires_at_once_if_it_was_idle_for_too_long_by_the_new_rule)
{
  watched c;
  c.time.advance(20s);
  c.wheel.set_pressure(1);
  BOOST_TEST(c.expiry.pending());
  c.time.advance(2ms);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(follows_a_second_rise_while_the_time_stands_still)
{
  watched c;
  c.time.advance(20s);
  c.wheel.set_pressure(0.5);
  c.time.advance(0s);
  c.wheel.set_pressure(1);
  c.time.advance(0s);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(is_put_off_by_falling_pressure_while_it_is_pending)
{
  watched c;
  c.wheel.set_pressure(1);
  c.time.advance(9s);
  c.wheel.set_pressure(0.2);
  c.time.advance(40s);
  BOOST_TEST(c.expiry.pending());
  c.wheel.set_pressure(0);
  c.time.advance(10s);
  BOOST_TEST(c.expiry.pending());
  c.time.advance(1s);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(counts_from_the_last_touch)
{
  watched c;
  c.wheel.set_pressure(1);
  for (int i = 0; i != 10; ++i) {
    c.time.advance(9s);
    c.dog.touch();
  }
  BOOST_TEST(c.expiry.pending());
  c.time.advance(10s);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(leaves_a_fixed_timeout_alone)
{
  wheel_in_virtual_time c;
  wheel_watchdog fixed(c.wheel, 60s);
  outcome o;
  fixed.async_expired(o.recorder());
  c.wheel.set_pressure(1);
  c.time.advance(59s);
  BOOST_TEST(o.pending());
  BOOST_TEST((fixed.timeout() == 60s));
}

BOOST_AUTO_TEST_CASE(gives_way_to_a_timeout_that_is_set)
{
  watched c;
  c.wheel.set_pressure(0.5);
  c.dog.set_timeout(5s);
  BOOST_TEST((c.dog.timeout() == 5s));
  c.wheel.set_pressure(1);
  c.time.advance(4s);
  BOOST_TEST(c.expiry.pending());
  c.time.advance(1s);
  BOOST_TEST(c.expiry.succeeded());
}

BOOST_AUTO_TEST_CASE(may_be_without_end_and_get_one)
{
  wheel_in_virtual_time c;
  wheel_watchdog dog(c.wheel, idle_window{1ns, duration::max()});
  outcome o;
  dog.async_expired(o.recorder());
  c.time.advance(24h);
  BOOST_TEST(o.pending());
  c.wheel.set_pressure(1);
  c.time.advance(2ms);
  BOOST_TEST(o.succeeded());
}

BOOST_AUTO_TEST_CASE(takes_its_window_with_it_when_it_is_moved)
{
  watched c;
  wheel_watchdog moved(std::move(c.dog));
  wheel_watchdog assigned(c.wheel, idle_window{1s, 2s});
  assigned = std::move(moved);
  c.time.advance(20s);
  c.wheel.set_pressure(1);
  c.time.advance(2ms);
  BOOST_TEST(c.expiry.succeeded());
  BOOST_TEST((moved.timeout() == 60s));
}

BOOST_AUTO_TEST_CASE(refuses_what_makes_no_sense)
{
  context_with_wheel c;
  const auto make = [&](idle_window w) { return [&c, w] { wheel_watchdog dog(c.wheel, w); }; };
  BOOST_TEST(refuses(make({0s, 1s}), "0ns", "more than 0ns"));
  BOOST_TEST(refuses(make({2s, 1s}), "1000000000ns", "at least"));
  for (const double p : {-0.1, 1.5, std::numeric_limits<double>::infinity()})
    BOOST_TEST(refuses([&] { c.wheel.set_pressure(p); }, "", "from 0 to 1"));
  BOOST_TEST(refuses([&] { c.wheel.set_pressure(1.5); }, "1.5", "from 0 to 1"));
  BOOST_TEST(refuses([&] { c.wheel.set_pressure(std::numeric_limits<double>::quiet_NaN()); }, "nan",
                     "from 0 to 1"));
  BOOST_TEST(c.wheel.pressure() == 0);
}

BOOST_AUTO_TEST_CASE(is_looked_for_in_pieces_with_other_work_in_between)
{
  many_watched c(20'000, {1h, 2h});
  c.wheel.set_pressure(1);
  // Handlers run one at a time, and none of them looks at all of the watchdogs.
  std::size_t turns = 0;
  while (c.context.poll_one() != 0) ++turns;
  BOOST_TEST(turns > 4U);
  for (auto& dog : c.dogs) BOOST_TEST_REQUIRE((dog.timeout() == 1h));
}

BOOST_AUTO_TEST_CASE(small_rises_do_not_keep_the_context_busy)
{
  many_watched c(10'000, {1h, 2h});
  std::size_t turns = 0;
  for (int i = 1; i <= 100; ++i) {
    c.wheel.set_pressure(i / 1000.0);
    turns += c.context.poll();
  }
  BOOST_TEST(turns < 2000U);
}

BOOST_AUTO_TEST_CASE(one_is_found_among_many_that_were_touched)
{
  wheel_in_virtual_time c;
  std::vector<wheel_watchdog> dogs;
  std::size_t expired = 0;
  for (std::size_t i = 0; i != 5000; ++i) {
    dogs.emplace_back(c.wheel, window);
    dogs.back().async_expired([&](error_code ec) { expired += ec ? 0 : 1; });
  }
  for (int round = 1; round <= 3; ++round) {
    c.wheel.set_pressure(0);
    c.time.advance(20s);
    for (auto& dog : dogs) {
      if (&dog != &dogs[static_cast<std::size_t>(round) * 1234]) dog.touch();
    }
    c.wheel.set_pressure(1);
    c.time.advance(2ms);
    BOOST_TEST(expired == static_cast<std::size_t>(round));
  }
}

BOOST_AUTO_TEST_CASE(may_go_while_it_is_looked_for)
{
  many_watched c(5000, {1ms, 1h});
  std::this_thread::sleep_for(2ms);
  c.wheel.set_pressure(1);
  c.context.poll_one();
  c.expired = 0;
  c.dogs.erase(c.dogs.begin() + 1000, c.dogs.end());
  c.dogs.erase(c.dogs.begin(), c.dogs.begin() + 900);
  support::run_to_end(c.context);
  BOOST_TEST(c.expired == 100U);
}

BOOST_AUTO_TEST_CASE(may_come_go_and_move_while_it_is_looked_for)
{
  constexpr idle_window wide{1ms, 1h};
  many_watched c(2000, wide);
  std::mt19937 random(1124);
  for (int round = 1; round <= 300; ++round) {
    c.wheel.set_pressure(round / 1000.0);
    if (random() % 4 == 0) c.context.poll_one();
    const bool grows = round / 50 % 2 == 0;
    for (int i = 0; i != 100; ++i) {
      auto& one = c.dogs[random() % c.dogs.size()];
      if (random() % 8 < (grows ? 6U : 2U)) {
        wheel_watchdog moved = std::exchange(one, wheel_watchdog(c.wheel, wide));
        c.watch(one);
        c.dogs.push_back(std::move(moved));
      } else if (c.dogs.size() > 1) {
        std::swap(one, c.dogs.back());
        c.dogs.pop_back();
      }
    }
  }
  std::this_thread::sleep_for(2ms);
  c.wheel.set_pressure(1);
  support::run_to_end(c.context);
  BOOST_TEST(c.expired == c.dogs.size());
}

BOOST_AUTO_TEST_CASE(those_that_are_gone_are_not_looked_at)
{
  many_watched c(100'000, {1h, 2h});
  c.dogs.erase(c.dogs.begin() + 10, c.dogs.end());
  c.context.poll();
  c.wheel.set_pressure(1);
  BOOST_TEST(c.context.poll() < 5U);
}

BOOST_AUTO_TEST_CASE(follows_when_a_virtual_time_is_over)
{
  context_with_wheel c;
  wheel_watchdog dog(c.wheel, idle_window{1ms, 24h});
  outcome o;
  dog.async_expired(o.recorder());
  {
    virtual_time time(c.wheel);
    time.advance(1h);
    dog.touch();
    c.wheel.set_pressure(0.5);
    time.advance(11h + 30min);  // the look before 12h finds it touched
  }
  dog.touch();
  c.wheel.set_pressure(1);
  support::run_to_end(c.context);
  BOOST_TEST(o.succeeded());
}

BOOST_AUTO_TEST_CASE(a_look_that_is_ahead_is_no_work)
{
  context_with_wheel c;
  wheel_watchdog dog(c.wheel, idle_window{1h, 2h});
  dog.async_expired([](error_code) {});
  c.wheel.set_pressure(0.5);
  c.context.poll();
  dog.cancel();
  support::run_to_end(c.context);
  BOOST_TEST(c.wheel.stats().wakeups == 0U);
}

BOOST_AUTO_TEST_CASE(a_look_wakes_nobody_up_when_all_is_filed_under_the_pressure)
{
  wheel_in_virtual_time c;
  wheel_watchdog dog(c.wheel, idle_window{1h, 2h});
  c.wheel.set_pressure(0.5);
  c.time.advance(2h + 1ms);
  dog.touch();
  outcome o;
  dog.async_expired(o.recorder());
  BOOST_TEST((c.wheel.next_expiry() >= c.wheel.now() + 90min));
  c.time.advance_to_next();
  BOOST_TEST((c.elapsed() >= 210min));
  BOOST_TEST(o.succeeded());
}

BOOST_AUTO_TEST_CASE(whatever_happens_it_expires_by_the_rule_and_within_two_ticks)
{
  wheel_in_virtual_time c;
  any_watched all(c.wheel);
  std::mt19937 random(1124);
  const auto below = [&](int n) { return std::uniform_int_distribution<>(0, n - 1)(random); };
  for (int step = 0; step != 20'000; ++step) {
    watched_by_rule& one = *all.dogs[static_cast<std::size_t>(below(any_watched::many))];
    switch (below(8)) {
      case 0: all.set_pressure(below(11) / 10.0); break;
      case 1: all.set_pressure(std::min(1.0, c.wheel.pressure() + 1e-4)); break;
      case 2: one.touch(); break;
      case 3: one.start(); break;
      case 4: one.move(); break;
      case 5: one.cancel(); break;
      case 6:
        if (below(4) == 0) one.replace({1ms * (1 + below(500)), 1s * (1 + below(100))});
        break;
      default:
        if (below(10) == 0) one.set_timeout(1ms * (1 + below(5000)));
    }
    constexpr std::array spans{1, 1, 20, 300, 5000};
    c.time.advance(1ms * (1 + below(spans[static_cast<std::size_t>(below(5))])));
    BOOST_TEST_REQUIRE(all.check() == "");
  }
  BOOST_TEST(all.expired() > 1000);
}

BOOST_AUTO_TEST_CASE(costs_the_context_nothing_if_nobody_follows)
{
  context_with_wheel c;
  wheel_watchdog fixed(c.wheel, 1h);
  c.wheel.set_pressure(0.5);
  BOOST_TEST(c.context.poll() == 0U);
}

BOOST_AUTO_TEST_CASE(outlives_its_context)
{
  auto c = std::make_unique<context_with_wheel>();
  wheel_watchdog dog(c->wheel, window);
  dog.async_expired([](error_code) {});
  c->wheel.set_pressure(0.5);
  c.reset();
  dog.touch();
  BOOST_TEST(dog.cancel() == 0U);
}

BOOST_AUTO_TEST_CASE(comes_and_goes_on_other_threads_while_the_pressure_changes)
{
  context_with_wheel c;
  auto work = boost::asio::make_work_guard(c.context);
  std::atomic<int> strange{0};
  std::atomic<bool> stop{false};
  std::thread runner([&] { c.context.run(); });
  std::thread presser([&] {
    std::mt19937 random(1);
    while (!stop) c.wheel.set_pressure(static_cast<double>(random() % 101) / 100);
  });
  const auto live = [&] {
    std::vector<wheel_watchdog> dogs;
    for (int i = 0; i != 2000; ++i) {
      const auto born = c.wheel.now();
      dogs.emplace_back(c.wheel, idle_window{1ms, 5ms});
      dogs.back().async_expired([&, born](error_code ec) {
        if (!ec && c.wheel.now() < born + 1ms) ++strange;
      });
      dogs.back().touch();
      if (dogs.size() == 50) dogs.erase(dogs.begin(), dogs.begin() + 25);
    }
  };
  std::thread other(live);
  live();
  other.join();
  stop = true;
  presser.join();
  work.reset();
  runner.join();
  BOOST_TEST(strange == 0);
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
