// Deadlines on operations: what a deadline of 5 s, which never comes, adds to an operation that
// completes by one post. --n operations are under way; the handler of each starts the next. CPU ns
// per operation, after a tenth as many to warm up; --steps are measured.
//   none                 the post alone, with a 16-byte handler
//   cancel_after         asio_wheel's, with the same handler
//   steady_timer         a steady_timer per operation: expires_after, async_wait, cancel
//   cancel_after_awaited asio_wheel's, awaited by a coroutine
//   awaitable_or         the post || a steady_timer, by Asio's awaitable_operators
//   clock                instead of operations: readings of std::chrono::steady_clock
#include <asio_wheel.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "command_line.hpp"
#include "measure.hpp"

namespace {

using namespace bench;
namespace asio = boost::asio;
using boost::system::error_code;

constexpr seconds deadline_delay{5};

// An Operations(const options&, Work&) has start(i), which starts chain i, whose operations call
// work.completed() until that is false, and context().
//
// A steady_timer of an hour is pending in every context. So the loop has a reactor to look at, as
// in any server, whichever the contender.
template <template <class> class Operations>
class deadline_work {
public:
  explicit deadline_work(const options& o)
    : n_{o.n},
      warm_{std::max<std::uint64_t>(o.steps / 10, 2 * o.n)},
      last_{warm_ + o.steps},
      operations_{o, *this}
  {}

  metrics run()
  {
    asio::steady_timer idle{operations_.context(), std::chrono::hours{1}};
    idle.async_wait([](const error_code&) {});
    for (std::size_t i = 0; i < n_; ++i) operations_.start(i);
    operations_.context().run();
    return {{"cpu_ns", ns_per(cpu_, last_ - warm_)}};
  }

  // Whether the chain goes on.
  bool completed()
  {
    ++done_;
    if (done_ == warm_) cpu_ = thread_cpu();
    if (done_ == last_) {
      cpu_ = thread_cpu() - cpu_;
      operations_.context().stop();
    }
    return done_ < last_;
  }

private:
  std::size_t n_;
  std::uint64_t warm_, last_, done_ = 0;
  nanoseconds cpu_{};
  Operations<deadline_work> operations_;
};

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
                     contender<cancel_after_awaited>("cancel_after_awaited"),
                     contender<awaitable_or>("awaitable_or"),
                     {"clock", {{"post", read_clock}}}});
}
