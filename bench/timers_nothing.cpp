// Event-loop timers: one that does next to nothing, the floor for anything with Asio's interface.
//   clocked   reads the clock for each start, keeps the wait until it is cancelled, and lets the
//             loop run aborted handlers, 64 at a time. It knows no order and no other threads, and
//             no wait expires. What is left is the workload, Asio, and the memory of timers and
//             handlers.
#include <boost/asio/async_result.hpp>
#include <boost/asio/recycling_allocator.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "workloads.hpp"

namespace {

using namespace bench;

// A wait, whatever its handler is.
class wait_base {
public:
  // Frees the wait and calls its handler.
  virtual void complete(const error_code& ec) = 0;

protected:
  ~wait_base() = default;
};

template <class Handler>
class wait final : public wait_base {
public:
  static wait& make(Handler h) { return *std::construct_at(memory{}.allocate(1), std::move(h)); }

  explicit wait(Handler h) : handler_{std::move(h)} {}

  void complete(const error_code& ec) override
  {
    Handler h{std::move(handler_)};
    std::destroy_at(this);
    memory{}.deallocate(this, 1);
    std::move(h)(ec);
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
    __builtin_prefetch(&w, 1);
    waits_[size_++] = &w;
    if (size_ < waits_.size()) return;
    size_ = 0;
    asio::post(ex, [waits = waits_] {
      for (wait_base* each : waits) each->complete(asio::error::operation_aborted);
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

  void expires_after(nanoseconds delay)
  {
    deadline_ = steady_clock::now() + delay;
    if (wait_) aborted.push(*std::exchange(wait_, nullptr), executor_);
  }

  template <class Token>
  auto async_wait(Token&& token)
  {
    return asio::async_initiate<Token, void(error_code)>(
      [this](auto handler) { wait_ = &wait<decltype(handler)>::make(std::move(handler)); }, token);
  }

private:
  time_point deadline_;
  asio::io_context::executor_type executor_;
  wait_base* wait_ = nullptr;
};

struct clocked : contender_base {
  static constexpr auto name = "clocked";
  static constexpr bool many_threads = true;
  static constexpr bool expires = false;
  template <class Work>
  using timers = callback_timers<timer, no_service, Work>;
};

}  // namespace

int main(int argc, char** argv)
{
  return bench_main(argc, argv, contenders<clocked>());
}
