// Event-loop timers: one that does nothing.
//   nothing             a callback per wait
//   nothing_coroutine   a coroutine per timer, by use_awaitable
//   nothing_deferred    the same by deferred
// It keeps each wait until it is cancelled, and lets the loop run aborted handlers, 64 at a time.
// It knows no time, no order and no other threads, and no wait expires. What is left is the
// workload, Asio, and the memory of timers and handlers: the floor for anything with Asio's
// interface.
#include <asio_wheel/detail/ground/memory.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/version.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "asio_timers.hpp"
#include "timers_main.hpp"

namespace {

using namespace bench;

class wait_base {
public:
  virtual void abort() = 0;

protected:
  ~wait_base() = default;
};

template <class Handler>
class wait final : public wait_base {
public:
  static wait& make(Handler h) { return *std::construct_at(memory{}.allocate(1), std::move(h)); }

  explicit wait(Handler h) : handler_{std::move(h)} {}

  void abort() override
  {
    Handler h{std::move(handler_)};
    std::destroy_at(this);
    memory{}.deallocate(this, 1);
    std::move(h)(error_code{asio::error::operation_aborted});
  }

private:
  using memory = asio::recycling_allocator<wait>;

  Handler handler_;
};

// Waits that this thread cancelled. They go to the loop in batches as large as a turn.
class aborted_waits {
public:
  void push(wait_base& w, const asio::io_context::executor_type& ex)
  {
    asio_wheel::detail::prefetch(&w);
    waits_[size_++] = &w;
    if (size_ < waits_.size()) return;
    size_ = 0;
    asio::post(ex, [waits = waits_] {
      for (wait_base* each : waits) each->abort();
    });
  }

private:
  std::array<wait_base*, 64> waits_;
  std::size_t size_ = 0;
};

thread_local aborted_waits aborted;

class timer {
public:
  explicit timer(const asio::io_context::executor_type& ex) : executor_{ex} {}

  void expires_after(nanoseconds) { cancel(); }
  void expires_at(time_point) { cancel(); }
  void cancel()
  {
    if (wait_) aborted.push(*std::exchange(wait_, nullptr), executor_);
  }

  template <class Token>
  auto async_wait(Token&& token)
  {
    return asio::async_initiate<Token, void(error_code)>(
      [this](auto handler) { wait_ = &wait<decltype(handler)>::make(std::move(handler)); }, token);
  }

private:
  asio::io_context::executor_type executor_;
  wait_base* wait_ = nullptr;
};

struct nothing : contender_base {
  static constexpr auto name = "nothing";
  static constexpr bool many_threads = true;
  static constexpr bool expires = false;
  template <class Work>
  using timers = callback_timers<timer, no_service, Work>;
};

struct nothing_coroutine : contender_base {
  static constexpr auto name = "nothing_coroutine";
  static constexpr bool expires = false;
  template <class Work>
  using timers = coroutine_timers<timer, no_service, Work, asio::use_awaitable_t<>>;
};

struct nothing_deferred : contender_base {
  static constexpr auto name = "nothing_deferred";
  static constexpr bool expires = false;
  template <class Work>
  using timers = coroutine_timers<timer, no_service, Work, asio::deferred_t>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv, contenders<nothing, nothing_coroutine, nothing_deferred>(),
                    {{"boost", BOOST_LIB_VERSION}});
}
