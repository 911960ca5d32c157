// Race: several threads run one context whose handlers start, cancel and replace waits.
#include <boost/asio/post.hpp>
#include <chrono>
#include <deque>

#include "support/balance.hpp"
#include "support/threads.hpp"
#include "support/wheel.hpp"

using namespace std::chrono_literals;

namespace {

/// A session in which each timeout that ends starts the next.
class session {
public:
  session(support::context_with_wheel& c, support::balance& balance, const support::race_time& on)
    : c_(c),
      timer_(c.wheel),
      balance_(balance),
      on_(on)
  {}

  void next()
  {
    if (!on_) return;
    const int round = ++round_;
    c_.wheel.async_wait(round % 3 * 20us, balance_.wait());
    timer_.expires_after(round % 4 * 15us);
    if (round % 3 == 0) {
      boost::asio::post(c_.context, [this] { balance_.cancelled(timer_.cancel()); });
    }
    // Must come last: the next round may begin in another thread before this function ends.
    timer_.async_wait([this, entry = balance_.wait()](asio_wheel::error_code ec) {
      entry(ec);
      next();
    });
  }

private:
  support::context_with_wheel& c_;
  asio_wheel::wheel_timer timer_;
  support::balance& balance_;
  const support::race_time& on_;
  int round_ = 0;
};

}  // namespace

int main()
{
  support::context_with_wheel c(support::with_tick(10us));
  support::balance balance;
  const support::race_time on;
  std::deque<session> sessions;
  for (int i = 0; i < 20; ++i) sessions.emplace_back(c, balance, on);
  for (auto& s : sessions) boost::asio::post(c.context, [&s] { s.next(); });
  support::running_threads(c.context, 4).finish();
  return balance.check();
}
