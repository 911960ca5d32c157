// Redisson's lock watchdog: a lock in Redis is a lease, which the server ends after 30 s. Its
// holder renews it after every third of that time. So a lock outlives its holder by at most one
// lease. In our terms: renewals are a task under the lock's name, and the server's lease is a
// wheel_watchdog.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/virtual_wheel.hpp"

using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;

namespace {

constexpr duration lease = 30s;

/// The server: locks by name, each with its owner until its lease ends.
class lock_store {
public:
  explicit lock_store(wheel_timer_service& wheel) : wheel_(wheel) {}

  bool acquire(const std::string& name, const std::string& owner, duration length)
  {
    const auto [at, is_free] = locks_.try_emplace(name, lock{owner, {wheel_, length}});
    if (is_free) {
      at->second.alive.async_expired([this, name](error_code ec) {
        if (!ec) locks_.erase(name);
      });
    }
    return is_free;
  }

  bool renew(const std::string& name, const std::string& owner)
  {
    if (owner_of(name) != owner) return false;
    locks_.at(name).alive.touch();
    return true;
  }

  void release(const std::string& name, const std::string& owner)
  {
    if (owner_of(name) == owner) locks_.erase(name);
  }

  /// Nobody has an empty name.
  [[nodiscard]] std::string owner_of(const std::string& name) const
  {
    const auto found = locks_.find(name);
    return found == locks_.end() ? std::string() : found->second.owner;
  }

private:
  struct lock {
    std::string owner;
    wheel_watchdog alive;
  };

  wheel_timer_service& wheel_;
  std::map<std::string, lock> locks_;
};

/// A process that holds locks. When it is gone, nobody renews or releases them.
class client {
public:
  client(wheel_timer_service& wheel, lock_store& store, std::string id)
    : store_(store),
      id_(std::move(id)),
      renewals_(wheel)
  {}

  /// Takes the lock until unlock().
  bool try_lock(const std::string& name)
  {
    if (!store_.acquire(name, id_, lease)) return false;
    renewals_.run_every(name, lease / 3, [this, name] { renew(name); });
    return true;
  }

  /// Takes the lock until `length` has passed, or unlock().
  bool try_lock(const std::string& name, duration length)
  {
    return store_.acquire(name, id_, length);
  }

  void unlock(const std::string& name)
  {
    renewals_.cancel(name);
    store_.release(name, id_);
  }

  [[nodiscard]] bool renews(const std::string& name) const { return renewals_.contains(name); }

  bool connected = true;
  int renewed = 0;

private:
  void renew(const std::string& name)
  {
    if (!connected) return;
    if (store_.renew(name, id_))
      ++renewed;
    else
      renewals_.cancel(name);
  }

  lock_store& store_;
  std::string id_;
  keyed_scheduler<std::string> renewals_;
};

struct two_clients : support::wheel_in_virtual_time {
  /// Advances until the lock is free. Returns when that is.
  [[nodiscard]] duration time_of_loss(const std::string& name)
  {
    while (!store.owner_of(name).empty() && time.advance_to_next()) continue;
    return elapsed();
  }

  lock_store store{wheel};
  std::unique_ptr<client> holder = std::make_unique<client>(wheel, store, "holder");
  client rival{wheel, store, "rival"};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(redisson)

BOOST_AUTO_TEST_CASE(a_lock_is_renewed_after_every_third_of_its_lease)
{
  two_clients c;
  BOOST_TEST(c.holder->try_lock("lock"));
  std::vector<duration> renewals;
  while (c.holder->renewed < 4) {
    const int before = c.holder->renewed;
    BOOST_REQUIRE(c.time.advance_to_next());
    if (c.holder->renewed > before) renewals.push_back(c.elapsed());
  }
  BOOST_TEST((renewals == std::vector<duration>{10s, 20s, 30s, 40s}));
}

BOOST_AUTO_TEST_CASE(a_lock_is_held_for_as_long_as_it_is_wanted)
{
  two_clients c;
  BOOST_TEST(c.holder->try_lock("lock"));
  for (int hour = 0; hour < 24; ++hour) {
    BOOST_TEST(!c.rival.try_lock("lock"));
    c.time.advance(1h);
  }
  BOOST_TEST(c.store.owner_of("lock") == "holder");
  BOOST_TEST(c.holder->renewed == 24 * 60 * 6);
}

BOOST_AUTO_TEST_CASE(a_released_lock_is_free_at_once_and_renewed_no_more)
{
  two_clients c;
  BOOST_TEST(c.holder->try_lock("lock"));
  c.time.advance(25s);
  c.holder->unlock("lock");
  BOOST_TEST(!c.holder->renews("lock"));
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(c.rival.try_lock("lock"));
  c.time.advance(1h);
  BOOST_TEST(c.holder->renewed == 2);
  BOOST_TEST(c.store.owner_of("lock") == "rival");
}

BOOST_AUTO_TEST_CASE(a_dead_holder_renews_no_more)
{
  two_clients c;
  BOOST_TEST(c.holder->try_lock("lock"));
  c.time.advance(25s);
  c.holder.reset();
  BOOST_TEST(c.wheel.pending() == 1U);  // the server's lease
  BOOST_TEST(c.store.owner_of("lock") == "holder");
}

BOOST_AUTO_TEST_CASE(a_dead_holders_lock_is_lost_one_lease_after_its_last_renewal)
{
  two_clients c;
  BOOST_TEST(c.holder->try_lock("lock"));
  c.time.advance(25s);
  c.holder.reset();
  c.time.advance(24s);
  BOOST_TEST(!c.rival.try_lock("lock"));
  BOOST_TEST((c.time_of_loss("lock") == 20s + lease));
  BOOST_TEST(c.rival.try_lock("lock"));
}

BOOST_AUTO_TEST_CASE(a_lock_whose_renewals_do_not_arrive_is_lost_after_one_lease)
{
  two_clients c;
  BOOST_TEST(c.holder->try_lock("lock"));
  c.time.advance(5s);
  c.holder->connected = false;
  BOOST_TEST((c.time_of_loss("lock") == lease));
}

BOOST_AUTO_TEST_CASE(a_renewal_may_be_missed)
{
  two_clients c;
  BOOST_TEST(c.holder->try_lock("lock"));
  c.holder->connected = false;
  c.time.advance(15s);
  c.holder->connected = true;
  c.time.advance(1h);
  BOOST_TEST(c.store.owner_of("lock") == "holder");
}

BOOST_AUTO_TEST_CASE(a_lock_that_was_lost_is_renewed_no_more)
{
  two_clients c;
  BOOST_TEST(c.holder->try_lock("lock"));
  c.holder->connected = false;
  c.time.advance(lease);
  BOOST_TEST(c.rival.try_lock("lock"));
  c.holder->connected = true;
  BOOST_TEST(c.holder->renews("lock"));
  c.time.advance(10s);
  BOOST_TEST(!c.holder->renews("lock"));
  BOOST_TEST(c.holder->renewed == 0);
  BOOST_TEST(c.store.owner_of("lock") == "rival");
}

BOOST_AUTO_TEST_CASE(a_lock_with_a_lease_of_its_own_is_not_renewed)
{
  two_clients c;
  BOOST_TEST(c.holder->try_lock("lock", 45s));
  BOOST_TEST(!c.holder->renews("lock"));
  BOOST_TEST((c.time_of_loss("lock") == 45s));
}

BOOST_AUTO_TEST_CASE(each_lock_is_renewed_by_itself)
{
  two_clients c;
  BOOST_TEST(c.holder->try_lock("first"));
  c.time.advance(5s);
  BOOST_TEST(c.holder->try_lock("second"));
  c.time.advance(20s);
  BOOST_TEST(c.holder->renewed == 4);  // at 10 s and 20 s, and at 15 s and 25 s
  c.holder->unlock("first");
  c.time.advance(1min);
  BOOST_TEST(c.holder->renewed == 10);
  BOOST_TEST(c.store.owner_of("first").empty());
  BOOST_TEST(c.store.owner_of("second") == "holder");
}

BOOST_AUTO_TEST_SUITE_END()
