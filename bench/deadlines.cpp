// Deadlines on operations: what a deadline adds to an operation that completes by one post.
//   none                 the post alone, with a 16-byte handler
//   cancel_after         asio_wheel's, with the same handler
//   steady_timer         a steady_timer per operation: expires_after, async_wait, cancel
//   lazy                 by an expert's hand: each operation stores its deadline; a steady_timer
//   per
//                        connection, which is set again when it fires
//   floor                the least a deadline consists of: a reading of the clock, and a place in a
//                        list that a lock guards, until the operation ends
//   none_awaited         the post alone, awaited by a coroutine
//   cancel_after_awaited asio_wheel's, awaited
//   awaitable_or         the post || a steady_timer, by Asio's awaitable_operators
//   clock                instead of operations: readings of std::chrono::steady_clock
// work_deadline.hpp describes the workload. --n is how many operations are under way, --steps how
// many are measured.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/version.hpp>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "install_wheel.hpp"
#include "place_in_list.hpp"
#include "work_deadline.hpp"
#include "workloads.hpp"

namespace {

using namespace bench;
namespace asio = boost::asio;
using boost::system::error_code;

// Chains of callbacks. Derived::launch(handler) starts an operation.
template <class Derived, class Work>
class callback_operations {
public:
  callback_operations(const options&, Work& work) : work_{work} {}

  asio::io_context& context() { return context_; }
  void start(std::size_t i) { self().launch(handler{this, i}); }

protected:
  struct handler {
    callback_operations* owner;
    std::size_t index;

    void operator()() const
    {
      if (owner->work_.completed()) owner->start(index);
    }
  };

  asio::io_context context_;

private:
  Derived& self() { return static_cast<Derived&>(*this); }

  Work& work_;
};

// Chains of coroutines. Each awaits Derived::operation() again and again.
template <class Derived, class Work>
class awaited_operations {
public:
  awaited_operations(const options&, Work& work) : work_{work} {}

  asio::io_context& context() { return context_; }
  void start(std::size_t) { asio::co_spawn(context_, serve(), asio::detached); }

protected:
  asio::io_context context_;

private:
  asio::awaitable<void> serve()
  {
    asio::steady_timer timer{context_};
    do co_await static_cast<Derived*>(this)->operation(timer);
    while (work_.completed());
  }

  Work& work_;
};

template <class Work>
struct none : callback_operations<none<Work>, Work> {
  using callback_operations<none, Work>::callback_operations;

  template <class Handler>
  void launch(Handler h)
  {
    asio::post(this->context_, h);
  }
};

template <class Work>
struct cancel_after : callback_operations<cancel_after<Work>, Work> {
  cancel_after(const options& o, Work& work) : callback_operations<cancel_after, Work>(o, work)
  {
    install_wheel(this->context_, o);
  }

  template <class Handler>
  void launch(Handler h)
  {
    asio::post(this->context_, asio_wheel::cancel_after(deadline_delay, h));
  }
};

template <class Work>
class steady_timer : public callback_operations<steady_timer<Work>, Work> {
public:
  steady_timer(const options& o, Work& work) : callback_operations<steady_timer, Work>(o, work)
  {
    timers_.reserve(o.n);
    for (std::size_t i = 0; i < o.n; ++i) timers_.emplace_back(this->context_);
  }

  template <class Handler>
  void launch(Handler h)
  {
    asio::steady_timer& timer = timers_[h.index];
    timer.expires_after(deadline_delay);
    timer.async_wait([](const error_code&) {});
    asio::post(this->context_, [&timer, h] {
      timer.cancel();
      h();
    });
  }

private:
  std::vector<asio::steady_timer> timers_;
};

template <class Work>
class lazy : public callback_operations<lazy<Work>, Work> {
public:
  lazy(const options& o, Work& work) : callback_operations<lazy, Work>(o, work)
  {
    connections_.reserve(o.n);
    for (std::size_t i = 0; i < o.n; ++i) look(connections_.emplace_back(this->context_));
  }

  template <class Handler>
  void launch(Handler h)
  {
    connection& c = connections_[h.index];
    c.deadline = steady_clock::now() + deadline_delay;
    asio::post(this->context_, [&c, h] {
      c.deadline = time_point::max();
      h();
    });
  }

private:
  struct connection {
    explicit connection(asio::io_context& context) : timer(context) {}

    time_point deadline = time_point::max();
    asio::steady_timer timer;
  };

  void look(connection& c)
  {
    c.timer.expires_at(std::min(c.deadline, steady_clock::now() + deadline_delay));
    c.timer.async_wait([this, &c](const error_code& ec) {
      if (ec) return;
      if (steady_clock::now() >= c.deadline) throw std::runtime_error("a deadline came");
      look(c);
    });
  }

  std::vector<connection> connections_;
};

template <class Work>
class least : public callback_operations<least<Work>, Work> {
public:
  least(const options& o, Work& work)
    : callback_operations<least, Work>(o, work),
      deadlines_(o.n),
      clock_{o.clock == "coarse" ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC}
  {}

  template <class Handler>
  void launch(Handler h)
  {
    place_in_list& d = deadlines_[h.index];
    d.when = cpu_clock(clock_) + deadline_delay;
    pending_.take(d);
    asio::post(this->context_, [this, &d, h] {
      pending_.leave(d);
      h();
    });
  }

private:
  std::vector<place_in_list> deadlines_;
  const clockid_t clock_;
  list_of_places pending_;
};

template <class Work>
struct none_awaited : awaited_operations<none_awaited<Work>, Work> {
  using awaited_operations<none_awaited, Work>::awaited_operations;

  auto operation(asio::steady_timer&) { return asio::post(this->context_, asio::use_awaitable); }
};

template <class Work>
struct cancel_after_awaited : awaited_operations<cancel_after_awaited<Work>, Work> {
  cancel_after_awaited(const options& o, Work& work)
    : awaited_operations<cancel_after_awaited, Work>(o, work)
  {
    install_wheel(this->context_, o);
  }

  auto operation(asio::steady_timer&)
  {
    return asio::post(this->context_,
                      asio_wheel::cancel_after(deadline_delay, asio::use_awaitable));
  }
};

template <class Work>
struct awaitable_or : awaited_operations<awaitable_or<Work>, Work> {
  using awaited_operations<awaitable_or, Work>::awaited_operations;

  auto operation(asio::steady_timer& timer)
  {
    using namespace asio::experimental::awaitable_operators;
    timer.expires_after(deadline_delay);
    return asio::post(this->context_, asio::use_awaitable) || timer.async_wait(asio::use_awaitable);
  }
};

metrics read_clock(const options& o)
{
  duration sum{};
  const auto cpu = thread_cpu();
  for (std::uint64_t i = 0; i < o.steps; ++i) sum += steady_clock::now().time_since_epoch();
  const auto spent = thread_cpu() - cpu;
  if (sum == duration{}) throw std::runtime_error("the clock stands still");
  return {{"cpu_ns", ns_per(spent, o.steps)}};
}

template <template <class> class Operations>
entry contender(const char* name)
{
  return {name, {{"post", run_work<deadline_work<Operations>>}}};
}

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv,
                    {contender<none>("none"),
                     contender<::cancel_after>("cancel_after"),
                     contender<::steady_timer>("steady_timer"),
                     contender<::lazy>("lazy"),
                     contender<least>("floor"),
                     contender<none_awaited>("none_awaited"),
                     contender<cancel_after_awaited>("cancel_after_awaited"),
                     contender<awaitable_or>("awaitable_or"),
                     {"clock", {{"post", read_clock}}}},
                    {{"boost", BOOST_LIB_VERSION}});
}
