// Fault: handlers re-enter the library when they are called, moved and destroyed. They start and
// cancel waits, set and destroy timers, and destroy their own objects and even their context.
//
// All of this is allowed, because no lock is held while a handler is moved, called or destroyed.
// Only the object whose member function moves the handler must live as long as that function.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "faults/every_operation.hpp"
#include "support/run.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using time_point = wheel_timer_service::time_point;
using namespace faults;
using namespace std::chrono_literals;

namespace {

/// Does everything that can be done with a wheel.
class meddler {
public:
  explicit meddler(wheel_timer_service& w) : wheel_(w) { set_timer(); }

  void meddle()
  {
    if (std::exchange(meddling_, true)) return;
    ++times_;
    wheel_.async_wait(0ns, asio::detached);
    wheel_.async_wait(time_point::max(), asio::bind_cancellation_slot(signal_.slot(), [](auto) {}));
    signal_.emit(asio::cancellation_type::terminal);
    static_cast<void>(wheel_.pending() + wheel_.stats().started);
    timer_->async_wait(asio::detached);
    timer_->cancel_one();
    timer_->async_wait(asio::detached);
    timer_->expires_after(1h);
    timer_->async_wait(asio::detached);
    wheel_timer moved(std::move(*timer_));
    timer_.reset();
    if (cancels_all) wheel_.cancel_all();
    moved.cancel();
    set_timer();
    meddling_ = false;
  }
  [[nodiscard]] int times() const { return times_; }

  bool cancels_all = false;

private:
  void set_timer() { timer_.emplace(wheel_).expires_after(1h); }

  wheel_timer_service& wheel_;
  asio::cancellation_signal signal_;
  std::optional<wheel_timer> timer_;
  bool meddling_ = false;
  int times_ = 0;
};

struct meddling_handler : counted<> {
  meddling_handler(tally& t, meddler& m) : counted<>(t), with(&m) {}
  meddling_handler(meddling_handler&& other) : counted<>(std::move(other)), with(other.with)
  {
    with->meddle();
  }
  ~meddling_handler() { with->meddle(); }

  template <class... Args>
  void operator()(const Args&... args)
  {
    with->meddle();
    counted<>::operator()(args...);
  }

  meddler* with;
};

/// Starts some operations, ends them with `end(scene)`, and expects them to end.
template <class Operation, class End>
void meddle_until(End end, bool cancels_all = false)
{
  std::optional<scene<Operation>> s(std::in_place);
  meddler m(s->wheel);
  m.cancels_all = cancels_all;
  const auto life = s->life;
  s->make();
  for (int i = 0; i < 5; ++i) s->start(meddling_handler(*s, m));
  end(s);
  if (s) {
    support::run_to_end(s->context);
    BOOST_TEST(s->wheel.pending() == 0U);
  }
  BOOST_TEST(m.times() >= 5);
  const auto ours = s ? 2 : 1;
  BOOST_TEST(life.use_count() == ours);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(meddling_handler_of)

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_that_expires, Operation, every_operation)
{
  meddle_until<Operation>([](auto& s) {
    support::run_to_end(s->context);
    BOOST_TEST(s->called == s->started);
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_that_it_cancels, Operation, every_operation)
{
  meddle_until<Operation>([](auto&) {}, true);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_that_is_cancelled_by_the_wheel, Operation,
                              every_operation)
{
  meddle_until<Operation>([](auto& s) { s->wheel.cancel_all(); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_whose_object_is_destroyed, Operation, every_operation)
{
  meddle_until<Operation>([](auto& s) { s->operation.reset(); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_operation_whose_context_goes, Operation, every_operation)
{
  // The meddler's timer may outlive the context, and is used while the context is destroyed.
  meddle_until<Operation>([](auto& s) { s.reset(); });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(handler_destroys)

BOOST_AUTO_TEST_CASE_TEMPLATE(its_own_operation, Operation, every_operation)
{
  scene<Operation> s;
  s.make();
  for (int i = 0; i < 3; ++i) {
    s.start([&s, c = counted<>(s)](const auto&...) mutable {
      c();
      s.operation.reset();
    });
  }
  support::run_to_end(s.context);
  BOOST_TEST(s.called >= 1U);
  BOOST_TEST(s.living() == 0U);
  BOOST_TEST(s.wheel.pending() == 0U);
}

// Legal if the handler runs in another context, because nobody is inside the destroyed one.
using every_operation_of_one_part =
  std::tuple<plain_wait, wait_of_a_timer, wait_with_an_executor, operation_that_is_cancelled,
             operation_that_times_out, tick_of_an_interval, expiry_of_a_watchdog,
             event_of_a_heartbeat>;

BOOST_AUTO_TEST_CASE_TEMPLATE(its_wheels_context, Operation, every_operation_of_one_part)
{
  for (const bool cancelled : {false, true}) {
    asio::io_context outer;
    auto s = std::make_shared<scene<Operation>>();
    auto& wheels = s->context;
    const auto life = s->life;
    s->make();
    for (int i = 0; i < 2; ++i) s->start(counted<>(*s));
    s->start(asio::bind_executor(outer, [owned = s, c = counted<>(*s)](const auto&...) mutable {
      BOOST_TEST(owned.use_count() == 1);
      c();
      owned.reset();
    }));
    if (cancelled) s->wheel.cancel_all();
    s.reset();
    // Each context has work only until the other has done its part.
    for (int i = 0; life.use_count() > 1 && i < 1000; ++i) {
      if (outer.poll() == 0) wheels.run_for(1ms);
      outer.restart();
      if (life.use_count() > 1) wheels.restart();
    }
    BOOST_TEST(life.use_count() == 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
