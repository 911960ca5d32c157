// Race: a thread emits cancellation signals at the moment at which the loop finds waits expired.
//
// The signals stay with their thread, as Asio demands: slots are assigned and emitted there, and
// the loop only completes.
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <chrono>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

int main()
{
  support::context_with_wheel c(support::with_tick(10us));
  support::balance balance;
  std::array<asio::cancellation_signal, 16> signals;
  {
    support::running_threads loop(c.context, 1);
    asio_wheel::wheel_timer timer(c.wheel);
    support::delays delays(0us, 30us);
    for (const support::race_time on; on;) {
      timer.expires_after(delays.next());
      for (std::size_t i = 0; i < signals.size(); ++i) {
        auto handler = asio::bind_cancellation_slot(signals[i].slot(), balance.wait());
        if (i % 2 == 0) {
          c.wheel.async_wait(delays.next(), std::move(handler));
        } else {
          timer.async_wait(std::move(handler));
        }
      }
      for (auto& signal : signals) signal.emit(asio::cancellation_type::terminal);
    }
  }
  return balance.check(false);
}
