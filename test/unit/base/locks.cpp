// The lock has one owner at a time, and nobody waits for ever.
#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <mutex>
#include <thread>

#include <detail/base/locks.hpp>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "support/child.hpp"
#endif

using asio_wheel::detail::spin_lock;

BOOST_AUTO_TEST_SUITE(spin_lock_)

BOOST_AUTO_TEST_CASE(has_no_second_owner)
{
  spin_lock lock;
  lock.lock();
  BOOST_TEST(!lock.try_lock());
  lock.unlock();
  const std::unique_lock next(lock, std::try_to_lock);
  BOOST_TEST(next.owns_lock());
}

BOOST_AUTO_TEST_CASE(lets_one_thread_in_at_a_time)
{
  constexpr int rounds = 50'000;
  spin_lock lock;
  int count = 0;  // not atomic
  std::array<std::thread, 4> threads;
  for (auto& t : threads) {
    t = std::thread([&] {
      for (int i = 0; i < rounds; ++i) {
        const std::scoped_lock guard(lock);
        ++count;
      }
    });
  }
  for (auto& t : threads) t.join();
  BOOST_TEST(count == 4 * rounds);
}

#if defined(__linux__)

namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Lets the calling thread preempt all ordinary threads and yield to none of them.
bool become_urgent()
{
  sched_param priority{};
  priority.sched_priority = 1;
  return ::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &priority) == 0;
}

boost::test_tools::assertion_result may_become_urgent(boost::unit_test::test_unit_id)
{
  bool may = false;
  std::thread([&] { may = become_urgent(); }).join();
  if (may) return true;
  boost::test_tools::assertion_result no(false);
  no.message() << "this process may not use SCHED_FIFO";
  return no;
}

/// Confines the calling thread, and threads that it starts, to one processor.
bool stay_on_one_processor()
{
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  int last = CPU_SETSIZE - 1;
  while (last > 0 && !CPU_ISSET(last, &allowed)) --last;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  return ::sched_setaffinity(0, sizeof one, &one) == 0;
}

/// An ordinary thread takes the lock; an urgent one preempts it and wants the lock, too. Returns
/// how long the urgent thread waits. It has the processor to itself until it sleeps.
steady_clock::duration wait_for_preempted_owner()
{
  spin_lock lock;
  std::atomic<bool> taken = false;
  steady_clock::duration waited{};
  std::thread urgent([&] {
    if (!become_urgent()) std::abort();
    taken.wait(false);
    const auto start = steady_clock::now();
    lock.lock();
    waited = steady_clock::now() - start;
    lock.unlock();
  });
  std::thread owner([&] {
    // Lets the urgent thread fall asleep, so that it preempts this one when it wakes up.
    std::this_thread::sleep_for(5ms);
    lock.lock();
    taken = true;
    taken.notify_one();
    const auto until = steady_clock::now() + 1ms;
    while (steady_clock::now() < until) continue;
    lock.unlock();
  });
  owner.join();
  urgent.join();
  return waited;
}

}  // namespace

// Linux usually takes the processor from urgent threads for 50 ms of each second. So a thread that
// never sleeps waits for most of a second in some rounds; without that rule it waits for ever.
BOOST_AUTO_TEST_CASE(a_preempted_owner_runs_though_an_urgent_thread_waits,
                     *boost::unit_test::precondition(may_become_urgent))
{
  support::child process([] {
    ::alarm(60);
    if (!stay_on_one_processor()) return false;
    steady_clock::duration longest{};
    for (int i = 0; i < 5; ++i) longest = std::max(longest, wait_for_preempted_owner());
    std::printf("an urgent thread waited %.1f ms at most\n",
                std::chrono::duration<double, std::milli>(longest).count());
    std::fflush(stdout);
    return longest < 500ms;
  });
  BOOST_TEST(process.went_well(), "it waited 500 ms or more, or for ever");
}

#endif

BOOST_AUTO_TEST_SUITE_END()
