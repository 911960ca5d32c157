// Connections that must stay alive: this library's watchdog and heartbeat.
//   watchdog       wheel_watchdog: touch() for each use
//   heartbeat      heartbeat: sent() and received() for each use
//   steady         asio::steady_timer, cancelled and started again for each use
//   steady_typed   the same with io_context::executor_type
//   lazy           by an expert's hand: each use stores the time; a steady_timer per connection,
//   which
//                  is set again when it fires and finds a later time
//   clock          for each use only reads the clock that --clock names
//   store          the same, and stores the time in an object as large as a watchdog: the floor
//   ticks          sent() and received() store the time, and a calendar has the waits: the floor
// work_alive.hpp describes the workloads.
#include <time.h>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/version.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <type_traits>
#include <utility>

#include "calendar.hpp"
#include "install_wheel.hpp"
#include "work_alive.hpp"
#include "workloads.hpp"

namespace {

using namespace bench;

// Brings an object into the cache.
template <class Object>
void read_all(const Object& object)
{
  const auto* bytes = reinterpret_cast<const volatile char*>(&object);
  for (std::size_t at = 0; at < sizeof object; at += 64) static_cast<void>(bytes[at]);
  static_cast<void>(bytes[sizeof object - 1]);
}

class watchdogs {
public:
  watchdogs(const options& o, asio::io_context& context, nanoseconds timeout)
  {
    install_wheel(context, o);
    dogs_.reserve(o.n);
    for (std::size_t i = 0; i < o.n; ++i) dogs_.emplace_back(context, timeout);
  }

  template <class Function>
  void start(std::size_t i, Function f)
  {
    dogs_[i].async_expired([f](const error_code& ec) mutable { f(bool{ec}); });
  }
  void use(std::size_t i) { dogs_[i].touch(); }
  void read(std::size_t i) { read_all(dogs_[i]); }

private:
  std::vector<asio_wheel::wheel_watchdog> dogs_;
};

class heartbeats {
public:
  heartbeats(const options& o, asio::io_context& context, nanoseconds interval)
  {
    install_wheel(context, o);
    beats_.reserve(o.n);
    for (std::size_t i = 0; i < o.n; ++i)
      beats_.emplace_back(context, asio_wheel::heartbeat_options{interval, 3});
  }

  template <class Function>
  void start(std::size_t i, Function f)
  {
    beats_[i].async_next(
      [f](const error_code& ec, asio_wheel::heartbeat_event) mutable { f(bool{ec}); });
  }
  void use(std::size_t i)
  {
    beats_[i].sent();
    beats_[i].received();
  }
  void read(std::size_t i) { read_all(beats_[i]); }

private:
  std::vector<asio_wheel::heartbeat> beats_;
};

template <class Timer>
class rearmed {
public:
  rearmed(const options& o, asio::io_context& context, nanoseconds timeout) : timeout_{timeout}
  {
    timers_.reserve(o.n);
    for (std::size_t i = 0; i < o.n; ++i) timers_.emplace_back(context.get_executor(), timeout);
  }

  // The constructor or use() has set its expiry.
  template <class Function>
  void start(std::size_t i, Function f)
  {
    timers_[i].async_wait([f](const error_code& ec) mutable { f(bool{ec}); });
  }
  // Cancels the pending wait, if there is one, and starts another in its place.
  void use(std::size_t i)
  {
    if (timers_[i].expires_after(timeout_) > 0) start(i, [](bool) {});
  }
  void read(std::size_t i) { read_all(timers_[i]); }

private:
  nanoseconds timeout_;
  std::vector<Timer> timers_;
};

using steady = rearmed<asio::steady_timer>;
using steady_typed =
  rearmed<asio::basic_waitable_timer<steady_clock, asio::wait_traits<steady_clock>,
                                     asio::io_context::executor_type>>;

class lazy {
public:
  lazy(const options& o, asio::io_context& context, nanoseconds timeout) : timeout_{timeout}
  {
    connections_.reserve(o.n);
    for (std::size_t i = 0; i < o.n; ++i) connections_.emplace_back(context);
  }

  template <class Function>
  void start(std::size_t i, Function f)
  {
    connection& c = connections_[i];
    c.timer.expires_at(c.used + timeout_);
    c.timer.async_wait([this, i, f](const error_code& ec) mutable {
      if (!ec && connections_[i].used + timeout_ > connections_[i].timer.expiry())
        start(i, f);
      else
        f(bool{ec});
    });
  }
  void use(std::size_t i) { connections_[i].used = steady_clock::now(); }
  void read(std::size_t i) { read_all(connections_[i]); }

private:
  struct connection {
    explicit connection(asio::io_context& context) : timer(context) {}

    time_point used = steady_clock::now();
    asio::steady_timer timer;
  };

  nanoseconds timeout_;
  std::vector<connection> connections_;
};

class clock_reads {
public:
  clock_reads(const options& o, asio::io_context&, nanoseconds)
    : id_{o.clock == "coarse" ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC}
  {}

  template <class Function>
  void start(std::size_t, Function)
  {}
  void read(std::size_t) {}
  void use(std::size_t) { read_ = now(); }

protected:
  nanoseconds::rep now() const { return cpu_clock(id_).count(); }

private:
  clockid_t id_;
  volatile nanoseconds::rep read_ = 0;
};

class stores : public clock_reads {
public:
  stores(const options& o, asio::io_context& context, nanoseconds timeout)
    : clock_reads{o, context, timeout},
      connections_(o.n)
  {}

  void read(std::size_t i) { read_all(connections_[i]); }
  void use(std::size_t i) { connections_[i].used.store(now(), std::memory_order_relaxed); }

private:
  struct connection {
    std::atomic<nanoseconds::rep> used;
    std::array<char, sizeof(asio_wheel::wheel_watchdog) - sizeof used> rest;
  };

  std::vector<connection> connections_;
};

class ticks {
public:
  ticks(const options& o, asio::io_context& context, nanoseconds interval)
    : interval_{interval},
      calendar_{context},
      connections_(o.n)
  {}

  template <class Function>
  void start(std::size_t i, Function f)
  {
    const auto handler = [f](const error_code& ec) mutable { f(bool{ec}); };
    const connection& c = connections_[i];
    calendar_.add(std::min(c.sent, c.received) + interval_,
                  wait<std::decay_t<decltype(handler)>>::make(handler));
  }
  void use(std::size_t i)
  {
    connections_[i].sent = steady_clock::now();
    connections_[i].received = steady_clock::now();
  }

private:
  struct connection {
    time_point sent, received;
  };

  nanoseconds interval_;
  calendar calendar_;
  std::vector<connection> connections_;
};

template <class Connections>
entry contender(const char* name)
{
  return {
    name,
    {{"touch", run_work<touch_work<Connections>>}, {"beats", run_work<beats_work<Connections>>}}};
}

}  // namespace

int main(int argc, char** argv)
{
  auto watchdog = contender<watchdogs>("watchdog");
  watchdog.workloads.emplace_back("refile", refile<watchdogs>);
  auto heartbeat = contender<heartbeats>("heartbeat");
  heartbeat.workloads.emplace_back("refile", refile<heartbeats>);
  auto by_hand = contender<lazy>("lazy");
  by_hand.workloads.emplace_back("refile", refile<lazy>);
  return bench_main(argc, argv,
                    {watchdog, heartbeat, by_hand, contender<steady>("steady"),
                     contender<steady_typed>("steady_typed"),
                     entry{"ticks", {{"beats", run_work<beats_work<ticks>>}}},
                     entry{"clock", {{"touch", run_work<touch_work<clock_reads>>}}},
                     entry{"store", {{"touch", run_work<touch_work<stores>>}}}},
                    {{"boost", BOOST_LIB_VERSION}});
}
