// Event-loop timers: this library.
//   wheel             wheel_timer (any_io_executor, as asio::steady_timer has), a callback per wait
//   wheel_typed       basic_wheel_timer<io_context::executor_type>
//   wheel_coroutine   wheel_timer, a coroutine per timer, by use_awaitable
//   wheel_deferred    the same by deferred, which spares a coroutine frame per wait
//   wheel_wait        wheel_timer_service::async_wait with a 24-byte callback: no timer object, and
//                     no way to cancel it
//   wheel_slot        the same, each wait bound to the slot of an asio::cancellation_signal, which
//                     cancels it
// work_*.hpp describe the workloads, contender.hpp the rules; compared with timers_steady,
// timers_libuv, timers_libevent and timers_libev.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/version.hpp>

#include "asio_timers.hpp"
#include "install_wheel.hpp"
#include "workloads.hpp"

namespace {

using namespace bench;

struct wheel_service {
  static void install(asio::io_context& context, const options& o) { install_wheel(context, o); }
};

template <class Work, bool Slots>
class service_waits : public asio_loop {
public:
  service_waits(const options& o, Work& work)
    : work_{work},
      wheel_{install_wheel(context(), o)},
      signals_(Slots ? o.n : 0),
      next_(Slots ? o.n : 0)
  {}

  void start_after(std::size_t i, nanoseconds delay) { wait(i, delay, {}); }
  void start_at(std::size_t i, time_point deadline, time_point) { wait(i, deadline, deadline); }

  // A slot serves one wait at a time, so the aborted handler starts the next one. A second restart
  // before that finds nothing to cancel, and churn, which counts aborted waits, does not count it.
  void restart_after(std::size_t i, nanoseconds delay)
  {
    next_[i] = delay;
    signals_[i].emit(asio::cancellation_type::terminal);
  }

  void end_all() requires(!Slots)
  {
    wheel_.cancel_all();
    context().restart();
    context().poll();
  }

private:
  struct wait_handler {
    service_waits* owner;
    std::size_t index;
    time_point deadline;

    void operator()(const error_code& ec) const
    {
      const bool aborted = ec == asio::error::operation_aborted;
      owner->work_.completed(index, deadline, aborted);
      if constexpr (Slots)
        if (aborted) owner->start_after(index, owner->next_[index]);
    }
  };
  static_assert(sizeof(wait_handler) == 24, "the memory workload says so");

  template <class When>
  void wait(std::size_t i, When when, time_point deadline)
  {
    const wait_handler handler{this, i, deadline};
    if constexpr (Slots)
      wheel_.async_wait(when, asio::bind_cancellation_slot(signals_[i].slot(), handler));
    else
      wheel_.async_wait(when, handler);
  }

  Work& work_;
  asio_wheel::wheel_timer_service& wheel_;
  std::vector<asio::cancellation_signal> signals_;
  std::vector<nanoseconds> next_;
};

struct wheel : contender_base {
  static constexpr auto name = "wheel";
  static constexpr bool many_threads = true;
  template <class Work>
  using timers = callback_timers<asio_wheel::wheel_timer, wheel_service, Work>;
};

struct wheel_typed : wheel {
  static constexpr auto name = "wheel_typed";
  template <class Work>
  using timers = callback_timers<asio_wheel::basic_wheel_timer<asio::io_context::executor_type>,
                                 wheel_service, Work>;
};

struct wheel_coroutine : contender_base {
  static constexpr auto name = "wheel_coroutine";
  template <class Work>
  using timers =
    coroutine_timers<asio_wheel::wheel_timer, wheel_service, Work, asio::use_awaitable_t<>>;
};

struct wheel_deferred : contender_base {
  static constexpr auto name = "wheel_deferred";
  template <class Work>
  using timers = coroutine_timers<asio_wheel::wheel_timer, wheel_service, Work, asio::deferred_t>;
};

struct wheel_wait : contender_base {
  static constexpr auto name = "wheel_wait";
  static constexpr bool cancels = false;
  static constexpr bool many_threads = true;
  template <class Work>
  using timers = service_waits<Work, false>;
};

struct wheel_slot : contender_base {
  static constexpr auto name = "wheel_slot";
  template <class Work>
  using timers = service_waits<Work, true>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(
    argc, argv,
    contenders<wheel, wheel_typed, wheel_coroutine, wheel_deferred, wheel_wait, wheel_slot>(),
    {{"boost", BOOST_LIB_VERSION}});
}
