// What one kind of act costs: run_measured() does it --times times, and costs.py lets callgrind
// count that function. Prints nothing.
//   rearm     --timers timers expire and start themselves again, after --delay ms each; 0: at once
//   churn     1,000 waits are pending; one is cancelled and started again, 64 times a turn
//   deferred  the same where coroutines wait, by asio::deferred
//   awaiter   the same where coroutines wait that are not Asio's, by an awaiter of a few lines
//   start     a wait begins, on the wheel itself; on a steady_timer of its own
//   burst     6,400 waits are due when the loop next looks: their expiry, without their start
//   deadline  an operation completes by one post, under a deadline that never comes
//   cancel_one  --timers waits are on one timer; the oldest is cancelled and another started
//   touch     a sign of life: wheel_watchdog::touch(); a steady_timer cancelled and started again
// By: wheel, steady and, for some, floor. For `deadline`, wheel is cancel_after, steady one
// steady_timer per operation, and none no deadline. For `rearm`, floor is a steady_timer on a
// strand.
#include "../examples/common/command_line.hpp"

#include <asio_wheel.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include <coroutine>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "costs/start.hpp"
#include "measure.hpp"

namespace {

using namespace bench;
namespace asio = boost::asio;
using asio::steady_timer;
using asio_wheel::wheel_timer;
using boost::system::error_code;
namespace po = common::po;

struct settings {
  std::string act = "churn", of = "wheel";
  std::size_t times = 100'000, timers = 1, delay = 1, shards = 0;
};

/// Everything that is counted happens in here.
extern "C" [[gnu::noinline]] void run_measured(asio::io_context& context)
{
  context.run();
}

class run_of_acts {
public:
  explicit run_of_acts(const settings& s) : settings_{s} {}

protected:
  asio_wheel::wheel_timer_service& make_wheel()
  {
    asio_wheel::wheel_options options;
    options.shards = settings_.shards;
    return asio_wheel::make_wheel(context_, options);
  }
  bool is_last() { return ++done_ >= settings_.times; }

  const settings settings_;
  asio::io_context context_;
  std::size_t done_ = 0;
};

using strand_timer = asio::basic_waitable_timer<steady_clock, asio::wait_traits<steady_clock>,
                                                asio::strand<asio::io_context::executor_type>>;

/// The executor of its timers.
template <class Timer>
auto executor_for(asio::io_context& context)
{
  if constexpr (std::is_same_v<Timer, strand_timer>)
    return asio::make_strand(context);
  else
    return context.get_executor();
}

template <class Timer>
class rearm : run_of_acts {
public:
  explicit rearm(const settings& s) : run_of_acts{s}
  {
    make_wheel();
    for (std::size_t i = 0; i < s.timers; ++i)
      start(timers_.emplace_back(executor_for<Timer>(context_)));
    run_measured(context_);
  }

private:
  void start(Timer& timer)
  {
    timer.expires_after(milliseconds{settings_.delay});
    timer.async_wait([this, &timer](const error_code&) {
      if (is_last()) return context_.stop();
      start(timer);
    });
  }

  std::deque<Timer> timers_;
};

/// `Step` does one step with the timer that its number names.
template <class Derived>
class turns : protected run_of_acts {
public:
  explicit turns(const settings& s) : run_of_acts{s} { make_wheel(); }

  void run()
  {
    asio::post(context_, [this] { turn(); });
    run_measured(context_);
  }

private:
  void turn()
  {
    for (int i = 0; i < 64; ++i) {
      static_cast<Derived*>(this)->step(static_cast<std::size_t>(random_.below(1'000)));
      if (is_last()) return context_.stop();
    }
    asio::post(context_, [this] { turn(); });
  }

  random_numbers random_{1};
};

template <class Timer>
class churn : public turns<churn<Timer>> {
public:
  explicit churn(const settings& s) : turns<churn>{s}
  {
    for (std::size_t i = 0; i < 1'000; ++i) {
      timers_.emplace_back(this->context_.get_executor());
      step(i);
    }
    this->run();
  }

  void step(std::size_t i)
  {
    timers_[i].expires_after(seconds{10 + static_cast<int>(i % 50)});
    timers_[i].async_wait([](const error_code&) {});
  }

private:
  std::deque<Timer> timers_;
};

template <class Timer>
class deferred : public turns<deferred<Timer>> {
public:
  explicit deferred(const settings& s) : turns<deferred>{s}
  {
    for (std::size_t i = 0; i < 1'000; ++i) {
      timers_.emplace_back(this->context_.get_executor());
      asio::co_spawn(this->context_, wait_again(timers_.back()), asio::detached);
    }
    this->context_.poll();
    this->run();
  }

  void step(std::size_t i) { timers_[i].cancel(); }

private:
  asio::awaitable<void> wait_again(Timer& timer)
  {
    for (;;) {
      timer.expires_after(seconds{30});
      co_await timer.async_wait(asio::as_tuple(asio::deferred));
    }
  }

  std::deque<Timer> timers_;
};

/// The coroutine of a user's own, which takes any awaiter.
struct own_coroutine {
  struct promise_type {
    own_coroutine get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

/// Awaits an operation that completes with an error_code. As no handler is called inline, the
/// coroutine is suspended when it is resumed.
template <class Operation>
struct awaiter_of {
  explicit awaiter_of(Operation o) : operation(std::move(o)) {}

  Operation operation;
  error_code error;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> coroutine)
  {
    std::move(operation)([this, coroutine](const error_code& ec) {
      error = ec;
      coroutine.resume();
    });
  }
  error_code await_resume() const noexcept { return error; }
};

template <class Timer>
class awaiter : public turns<awaiter<Timer>> {
public:
  explicit awaiter(const settings& s) : turns<awaiter>{s}
  {
    for (std::size_t i = 0; i < 1'000; ++i)
      wait_again(timers_.emplace_back(this->context_.get_executor()));
    this->run();
  }

  void step(std::size_t i) { timers_[i].cancel(); }

private:
  own_coroutine wait_again(Timer& timer)
  {
    for (;;) {
      timer.expires_after(seconds{30});
      co_await awaiter_of{timer.async_wait(asio::deferred)};
    }
  }

  std::deque<Timer> timers_;
};

template <class Timer>
class cancel_one : public turns<cancel_one<Timer>> {
public:
  explicit cancel_one(const settings& s) : turns<cancel_one>{s}, timer_{this->context_, seconds{60}}
  {
    for (std::size_t i = 0; i < s.timers; ++i) start();
    this->run();
  }

  void step(std::size_t)
  {
    timer_.cancel_one();
    start();
  }

private:
  void start()
  {
    timer_.async_wait([](const error_code&) {});
  }

  Timer timer_;
};

template <class Timer>
class start : run_of_acts {
public:
  explicit start(const settings& s) : run_of_acts{s}
  {
    asio::post(context_, [this, &wheel = make_wheel()] {
      if constexpr (std::is_same_v<Timer, wheel_timer>)
        start_waits(wheel, settings_.times);
      else
        start_timers();
      context_.stop();
    });
    run_measured(context_);
  }

private:
  void start_timers()
  {
    for (std::size_t i = 0; i < settings_.times; ++i)
      timers_.emplace_back(context_, seconds{30}).async_wait([](const error_code&) {});
  }

  std::deque<Timer> timers_;
};

template <class Timer>
class burst : run_of_acts {
public:
  explicit burst(const settings& s) : run_of_acts{s}
  {
    make_wheel();
    const auto deadline = steady_clock::now() + milliseconds{10};
    for (std::size_t i = 0; i < s.times; ++i) {
      auto& timer = timers_.emplace_back(context_.get_executor(), deadline);
      timer.async_wait([this](const error_code&) {
        if (is_last()) context_.stop();
      });
    }
    std::this_thread::sleep_until(deadline + milliseconds{5});
    run_measured(context_);
  }

private:
  std::deque<Timer> timers_;
};

/// Operations, one after the other. `start(operation)` initiates one under a deadline of its kind.
template <class Start>
class deadline : run_of_acts {
public:
  explicit deadline(const settings& s) : run_of_acts{s}
  {
    make_wheel();
    next();
    run_measured(context_);
  }

private:
  void next()
  {
    Start{}(context_, [this] {
      if (is_last()) return context_.stop();
      next();
    });
  }
};

struct without {
  template <class Then>
  void operator()(asio::io_context& context, Then then) const
  {
    asio::post(context, asio::bind_executor(context, then));
  }
};

struct by_steady_timer {
  template <class Then>
  void operator()(asio::io_context& context, Then then) const
  {
    auto timer = std::make_shared<steady_timer>(context.get_executor(), seconds{5});
    timer->async_wait([](const error_code&) {});
    asio::post(context, asio::bind_executor(context, [timer, then] {
                 timer->cancel();
                 then();
               }));
  }
};

struct by_cancel_after {
  template <class Then>
  void operator()(asio::io_context& context, Then then) const
  {
    asio::post(context, asio_wheel::cancel_after(seconds{5}, asio::bind_executor(context, then)));
  }
};

template <class Timer>
class touch : public turns<touch<Timer>> {
public:
  explicit touch(const settings& s) : turns<touch>{s}
  {
    for (std::size_t i = 0; i < 1'000; ++i) {
      if constexpr (std::is_same_v<Timer, wheel_timer>) {
        dogs_.emplace_back(this->context_, seconds{60});
        dogs_.back().async_expired([](const error_code&) {});
      } else {
        timers_.emplace_back(this->context_.get_executor());
        step(i);
      }
    }
    this->run();
  }

  void step(std::size_t i)
  {
    if constexpr (std::is_same_v<Timer, wheel_timer>) {
      dogs_[i].touch();
    } else {
      timers_[i].expires_after(seconds{60});
      timers_[i].async_wait([](const error_code&) {});
    }
  }

private:
  std::deque<asio_wheel::wheel_watchdog> dogs_;
  std::deque<steady_timer> timers_;
};

/// Never destroyed: nobody asks what ending costs.
template <class Act>
void run(const settings& s)
{
  new Act(s);
}

const std::map<std::pair<std::string, std::string>, void (*)(const settings&)> acts{
  {{"rearm", "wheel"}, run<rearm<wheel_timer>>},
  {{"rearm", "steady"}, run<rearm<steady_timer>>},
  {{"rearm", "floor"}, run<rearm<strand_timer>>},
  {{"churn", "wheel"}, run<churn<wheel_timer>>},
  {{"churn", "steady"}, run<churn<steady_timer>>},
  {{"deferred", "wheel"}, run<deferred<wheel_timer>>},
  {{"deferred", "steady"}, run<deferred<steady_timer>>},
  {{"awaiter", "wheel"}, run<awaiter<wheel_timer>>},
  {{"awaiter", "steady"}, run<awaiter<steady_timer>>},
  {{"start", "wheel"}, run<start<wheel_timer>>},
  {{"start", "steady"}, run<start<steady_timer>>},
  {{"burst", "wheel"}, run<burst<wheel_timer>>},
  {{"burst", "steady"}, run<burst<steady_timer>>},
  {{"deadline", "none"}, run<deadline<without>>},
  {{"deadline", "wheel"}, run<deadline<by_cancel_after>>},
  {{"deadline", "steady"}, run<deadline<by_steady_timer>>},
  {{"cancel_one", "wheel"}, run<cancel_one<wheel_timer>>},
  {{"cancel_one", "steady"}, run<cancel_one<steady_timer>>},
  {{"touch", "wheel"}, run<touch<wheel_timer>>},
  {{"touch", "steady"}, run<touch<steady_timer>>},
};

/// What the counts depend on, other than the code.
std::string compiled_by()
{
#if defined(__clang__)
  std::string what = fmt::format("clang++ {}", __clang_major__);
#elif defined(__GNUC__)
  std::string what = fmt::format("g++ {}", __GNUC__);
#else
  std::string what = "another compiler";
#endif
#if defined(BOOST_ASIO_VERSION)
  what += fmt::format(", Asio {}.{}.{}", BOOST_ASIO_VERSION / 100'000,
                      BOOST_ASIO_VERSION / 100 % 1'000, BOOST_ASIO_VERSION % 100);
#endif
  return what;
}

}  // namespace

int main(int argc, char** argv)
{
  return common::run_program("costs", [&] {
    settings s;
    po::options_description options("Options");
    const auto add = [&](const char* name, auto* value, const char* text) {
      options.add_options()(name, value, text);
    };
    const auto number = [](std::size_t& value, const char* name, std::size_t lowest) {
      return common::ranged<std::size_t>(value, name, lowest, 1'000'000'000, "N");
    };
    add("act", po::value(&s.act)->value_name("NAME")->default_value(s.act),
        "rearm, churn, deferred, awaiter, start, burst, deadline, cancel_one or touch");
    add("of", po::value(&s.of)->value_name("NAME")->default_value(s.of),
        "wheel, steady, floor or none");
    add("times", number(s.times, "times", 1), "how often");
    add("timers", number(s.timers, "timers", 1), "that re-arm themselves; waits, for cancel_one");
    add("delay", number(s.delay, "delay", 0), "ms, for rearm");
    add("shards", number(s.shards, "shards", 0), "of the wheel; 0: as many as processors");
    bool compiler = false;
    add("compiler", po::bool_switch(&compiler), "says which, and Asio's version; does nothing");
    if (!common::parse_command_line(argc, argv, "What an act costs; costs.py counts.\n", options))
      return EXIT_SUCCESS;
    if (compiler) {
      fmt::print("{}\n", compiled_by());
      return EXIT_SUCCESS;
    }
    const auto found = acts.find({s.act, s.of});
    if (found == acts.end()) throw po::error(fmt::format("there is no act {} of {}", s.act, s.of));
    const idle_thread second;
    found->second(s);
    std::_Exit(EXIT_SUCCESS);
  });
}
