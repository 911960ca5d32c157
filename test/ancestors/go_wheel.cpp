// The timing wheels written in Go (RussellLuo/timingwheel, ouqiang/timewheel and others): tasks
// that run once, several times or for ever, each under a unique key by which it is removed. In our
// terms: such a wheel is a keyed_scheduler.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/virtual_wheel.hpp"

using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;

namespace {

struct go_wheel_in_virtual_time : support::wheel_in_virtual_time {
  /// A task that records when it ran.
  [[nodiscard]] auto note(std::vector<duration>& runs)
  {
    return [this, &runs] { runs.push_back(elapsed()); };
  }

  keyed_scheduler<std::string> tasks{wheel};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(go_wheel)

BOOST_AUTO_TEST_CASE(a_task_runs_once_after_its_delay)
{
  go_wheel_in_virtual_time c;
  std::vector<duration> runs;
  BOOST_TEST(c.tasks.run_after("mail", 5s, c.note(runs)));
  BOOST_TEST(c.tasks.contains("mail"));
  c.time.advance(1h);
  BOOST_TEST((runs == std::vector<duration>{5s}));
  BOOST_TEST(!c.tasks.contains("mail"));
}

BOOST_AUTO_TEST_CASE(a_task_runs_a_number_of_times)
{
  go_wheel_in_virtual_time c;
  std::vector<duration> runs;
  BOOST_TEST(c.tasks.run_every("poll", 10s, c.note(runs), 3));
  c.time.advance(1h);
  BOOST_TEST((runs == std::vector<duration>{10s, 20s, 30s}));
  BOOST_TEST(c.tasks.size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_task_runs_for_ever)
{
  go_wheel_in_virtual_time c;
  std::vector<duration> runs;
  BOOST_TEST(c.tasks.run_every("poll", 10s, c.note(runs)));
  c.time.advance(24h);
  BOOST_TEST(runs.size() == 24U * 60U * 6U);
  BOOST_TEST((runs.back() == 24h));
  BOOST_TEST(c.tasks.contains("poll"));
}

BOOST_AUTO_TEST_CASE(a_task_is_removed_by_its_key)
{
  go_wheel_in_virtual_time c;
  std::vector<duration> runs;
  std::vector<duration> others;
  c.tasks.run_every("poll", 10s, c.note(runs));
  c.tasks.run_every("other", 20s, c.note(others));
  c.time.advance(25s);
  BOOST_TEST(c.tasks.cancel("poll"));
  c.time.advance(25s);
  BOOST_TEST((runs == std::vector<duration>{10s, 20s}));
  BOOST_TEST((others == std::vector<duration>{20s, 40s}));
}

BOOST_AUTO_TEST_CASE(a_removal_tells_whether_it_was_in_time)
{
  go_wheel_in_virtual_time c;
  std::vector<duration> runs;
  c.tasks.run_after("over", 1s, c.note(runs));
  c.tasks.run_after("to come", 1min, c.note(runs));
  c.time.advance(1s);
  BOOST_TEST(!c.tasks.cancel("over"));
  BOOST_TEST(c.tasks.cancel("to come"));
  BOOST_TEST(!c.tasks.cancel("to come"));
  BOOST_TEST(!c.tasks.cancel("never there"));
  c.time.advance(1h);
  BOOST_TEST((runs == std::vector<duration>{1s}));
}

BOOST_AUTO_TEST_CASE(a_removed_task_keeps_nothing)
{
  go_wheel_in_virtual_time c;
  const auto data = std::make_shared<int>(0);
  c.tasks.run_every("poll", 1h, [data] { ++*data; });
  BOOST_TEST(data.use_count() == 2);
  c.tasks.cancel("poll");
  c.time.advance(0s);
  BOOST_TEST(data.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(a_second_task_under_a_live_key_is_refused)
{
  go_wheel_in_virtual_time c;
  std::vector<duration> first;
  std::vector<duration> second;
  BOOST_TEST(c.tasks.run_every("key", 10s, c.note(first), 2));
  BOOST_TEST(!c.tasks.run_every("key", 1s, c.note(second)));
  BOOST_TEST(!c.tasks.run_after("key", 1s, c.note(second)));
  BOOST_TEST(c.tasks.size() == 1U);
  c.time.advance(1min);
  BOOST_TEST((first == std::vector<duration>{10s, 20s}));
  BOOST_TEST(second.empty());
}

BOOST_AUTO_TEST_CASE(a_key_is_free_again_once_its_task_is_over_or_removed)
{
  go_wheel_in_virtual_time c;
  std::vector<duration> runs;
  BOOST_TEST(c.tasks.run_after("key", 1s, c.note(runs)));
  c.time.advance(1s);
  BOOST_TEST(c.tasks.run_after("key", 1s, c.note(runs)));
  c.tasks.cancel("key");
  BOOST_TEST(c.tasks.run_after("key", 2s, c.note(runs)));
  c.time.advance(1min);
  BOOST_TEST((runs == std::vector<duration>{1s, 3s}));
}

BOOST_AUTO_TEST_CASE(a_task_is_given_another_period_by_removing_it)
{
  go_wheel_in_virtual_time c;
  std::vector<duration> runs;
  c.tasks.run_every("poll", 10s, c.note(runs));
  c.time.advance(20s);
  BOOST_TEST(c.tasks.cancel("poll"));
  BOOST_TEST(c.tasks.run_every("poll", 1min, c.note(runs)));
  c.time.advance(2min);
  BOOST_TEST((runs == std::vector<duration>{10s, 20s, 80s, 140s}));
}

BOOST_AUTO_TEST_CASE(a_task_may_remove_itself)
{
  go_wheel_in_virtual_time c;
  int runs = 0;
  c.tasks.run_every("poll", 10s, [&] {
    if (++runs == 3) BOOST_TEST(c.tasks.cancel("poll"));
  });
  c.time.advance(1h);
  BOOST_TEST(runs == 3);
  BOOST_TEST(c.tasks.size() == 0U);
}

BOOST_AUTO_TEST_CASE(a_task_may_choose_when_it_runs_next)
{
  go_wheel_in_virtual_time c;
  std::vector<duration> runs;
  duration pause = 1s;
  std::function<void()> back_off = [&] {
    runs.push_back(c.elapsed());
    pause *= 2;
    if (pause < 10s) BOOST_TEST(c.tasks.run_after("retry", pause, back_off));
  };
  c.tasks.run_after("retry", pause, back_off);
  c.time.advance(1h);
  BOOST_TEST((runs == std::vector<duration>{1s, 3s, 7s, 15s}));
}

BOOST_AUTO_TEST_CASE(a_stopped_wheel_runs_no_task)
{
  support::wheel_in_virtual_time c;
  std::optional<keyed_scheduler<int>> tasks(c.wheel);
  int runs = 0;
  for (int key = 0; key < 100; ++key) tasks->run_every(key, 10s, [&] { ++runs; });
  c.time.advance(10s);
  BOOST_TEST(runs == 100);
  tasks.reset();
  BOOST_TEST(c.wheel.pending() == 0U);
  c.time.advance(1h);
  BOOST_TEST(runs == 100);
}

BOOST_AUTO_TEST_SUITE_END()
