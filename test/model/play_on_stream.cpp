// Plays a script on what shares the wait of a guard, and on a model of it, three deadlines: a read
// and a write of a timed_stream, each with its own, and an operation under a watchdog.
#include <algorithm>
#include <array>
#include <asio_wheel/timed_stream.hpp>
#include <boost/asio/buffer.hpp>
#include <chrono>
#include <vector>

#include "model/script.hpp"
#include "support/manual_operation.hpp"
#include "support/socket_pair.hpp"
#include "support/virtual_wheel.hpp"

namespace model {
namespace {

using namespace asio_wheel;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using boost::system::error_code;
using time_point = wheel_timer_service::time_point;

constexpr auto longest = 50ms;
constexpr auto shortest = 10ms;

class stream_run : support::wheel_in_virtual_time {
public:
  stream_run()
  {
    support::connect_pair(stream_.socket(), peer_);
    peer_.non_blocking(true);
    stream_.socket().non_blocking(true);
    // A write waits until the peer has taken something.
    fill();
  }

  std::string play(script_view words)
  {
    for (; !words.empty() && fault_.empty(); words = words.subspan(1)) {
      perform(operands(words.front()));
      compare();
    }
    ending_ = true;
    cancel();
    end_guarded();
    run_ready();
    for (const operation* op : {&read_, &write_, &guarded_}) expect(!op->pending, "the end of all");
    expect(wheel.pending() == 0, "pending() at the end");
    return fault_;
  }

private:
  struct operation {
    bool pending = false;
    bool may_succeed = false;
    bool may_be_aborted = false;
    bool is_cancelled = false;  ///< by cancel_all(): it ends when handlers run
    time_point started{};
    time_point deadline{};
    std::uint64_t then = 0;  ///< what its handler does
  };

  void perform(operands o)
  {
    switch (o.take(4)) {
      case 0:
      case 1: return set_expiry(o);
      case 2:
      case 3: return start_read(o);
      case 4: return start_write(o);
      case 5: return start_guarded(o);
      case 6: return feed();
      case 7: return drain();
      case 8: return end_guarded();
      case 9:
        tell("touch");
        touched_ = wheel.now();
        return dog_.touch();
      case 10: return set_pressure(o);
      case 11: return cancel();
      case 12: return o.take(1) == 0 ? look() : cancel_all();
      case 13: return run_ready();
      default: return advance(o);
    }
  }

  /// What a handler does.
  void perform_inside(operands o, void (stream_run::*again)(operands))
  {
    if (o.take(1) == 1) look();
    if (o.take(3) == 1) cancel_all();
    if (o.take(1) == 1) set_expiry(o);
    if (o.take(1) == 1) (this->*again)(o);
  }

  void set_expiry(operands& o)
  {
    const std::uint64_t delay = o.take(6);
    tell("expires in {} ms", delay);
    if (delay == 0) {
      expiry_ = time_point::max();
      return stream_.expires_never();
    }
    expiry_ = wheel.now() + std::chrono::milliseconds(delay);
    stream_.expires_after(std::chrono::milliseconds(delay));
  }

  void start_read(operands o)
  {
    if (!begin(read_, "read", expiry_, o)) return;
    stream_.async_read_some(asio::buffer(room_), [this](error_code ec, std::size_t) {
      end(read_, "read", ec, &stream_run::start_read);
    });
  }

  void start_write(operands o)
  {
    if (!begin(write_, "write", expiry_, o)) return;
    stream_.async_write_some(asio::buffer(room_), [this](error_code ec, std::size_t) {
      end(write_, "write", ec, &stream_run::start_write);
    });
  }

  void start_guarded(operands o)
  {
    if (!begin(guarded_, "guarded", time_point::max(), o)) return;
    manual_.async_run(dog_.guard([this](error_code ec, std::size_t) {
      guarded_.deadline = deadline_of_dog();
      end(guarded_, "guarded", ec, &stream_run::start_guarded);
    }));
  }

  /// Whether there is none yet. One operation of a kind is enough: what matters is what they share.
  bool begin(operation& op, const char* name, time_point deadline, operands& o)
  {
    if (op.pending || ending_) return false;
    tell("start {} at {} ms", name, elapsed() / 1ms);
    op = {.pending = true, .started = wheel.now(), .deadline = deadline, .then = o.take(20)};
    op.may_succeed = &op == &read_ ? fed_ > 0 : &op == &write_ && drained_;
    return true;
  }

  void end(operation& op, const char* name, error_code ec, void (stream_run::*again)(operands))
  {
    tell("{{ {} ends at {} ms: {}", name, elapsed() / 1ms, ec.message());
    expect(op.pending, "an end of what was not pending");
    op.pending = false;
    const time_point now = wheel.now();
    if (!ec) {
      expect(op.may_succeed, "a success");
      if (&op == &read_) --fed_;
    } else if (ec == asio::error::timed_out) {
      expect(op.deadline <= now, "a timeout that is early");
      if (&op != &guarded_)
        expect(now == std::max(op.deadline, op.started), "a timeout that is late");
    } else {
      expect(ec == asio::error::operation_aborted && op.may_be_aborted, "an error");
    }
    inside_ = true;
    perform_inside(operands(op.then), again);
    inside_ = false;
    tell("}}");
  }

  void feed()
  {
    tell("feed");
    error_code ec;
    peer_.write_some(asio::buffer("x", 1), ec);
    expect(!ec, "what the peer sends");
    ++fed_;
    read_.may_succeed = true;
  }

  void drain()
  {
    tell("drain");
    std::vector<char> much(1 << 20);
    for (error_code ec; !ec;) peer_.read_some(asio::buffer(much), ec);
    drained_ = write_.may_succeed = true;
  }

  void fill()
  {
    const std::vector<char> much(1 << 20);
    for (error_code ec; !ec;) stream_.socket().write_some(asio::buffer(much), ec);
    drained_ = false;
  }

  void end_guarded()
  {
    if (!manual_.running()) return;
    tell("complete what is guarded");
    guarded_.may_succeed = true;
    manual_.complete({});
  }

  void set_pressure(operands& o)
  {
    pressure_ = std::min(static_cast<double>(o.take(2)) / 2, 1.0);
    tell("pressure {}", pressure_);
    wheel.set_pressure(pressure_);
  }

  void cancel()
  {
    tell("cancel");
    read_.may_be_aborted = write_.may_be_aborted = true;
    stream_.cancel();
  }

  void cancel_all()
  {
    tell("cancel all");
    for (operation* op : {&read_, &write_, &guarded_}) {
      if (op != &guarded_ && op->deadline == time_point::max()) continue;
      op->may_be_aborted = true;
      op->is_cancelled = op->pending;
    }
    wheel.cancel_all();
  }

  void look()
  {
    tell("look");
    std::uint64_t n = 0;
    for (const auto& row : wheel.pending_by_handler().rows) {
      n += row.count;
      expect(row.earliest <= row.latest && row.earliest >= start, "the earliest");
      expect(row.latest <= wheel.now() + 64ms, "the latest");
    }
    // An operation may be due, and its turn behind this handler.
    expect(inside_ ? n <= wheel.pending() : n == wheel.pending(), "who waits");
    static_cast<void>(wheel.next_expiry());
  }

  void run_ready()
  {
    tell("run what is ready");
    context.restart();
    context.poll();
  }

  void advance(operands& o)
  {
    const std::chrono::milliseconds d(o.take(5));
    tell("advance by {} ms", d.count());
    time.advance(d);
    for (const operation* op : {&read_, &write_})
      expect(!op->pending || op->deadline > wheel.now(), "a timeout is overdue");
    expect(!guarded_.pending || deadline_of_dog() > wheel.now(), "the watchdog is overdue");
  }

  time_point deadline_of_dog() const
  {
    const auto range = static_cast<double>((longest - shortest).count());
    return touched_ + longest - std::chrono::milliseconds(static_cast<int>(pressure_ * range));
  }

  /// What must be true between two acts. A handler may have left something to be done.
  void compare()
  {
    run_ready();
    for (const operation* op : {&read_, &write_, &guarded_})
      expect(!op->pending || !op->is_cancelled, "cancel_all()");
    const bool of_stream = (read_.pending && read_.deadline != time_point::max()) ||
                           (write_.pending && write_.deadline != time_point::max());
    expect(wheel.pending() == std::size_t{of_stream} + std::size_t{guarded_.pending}, "pending()");
    if (drained_ && !write_.pending) fill();
  }

  void expect(bool as_it_should_be, const char* what)
  {
    if (!as_it_should_be && fault_.empty()) fault_ = what;
  }

  timed_stream<support::pair_socket> stream_{context};
  support::pair_socket peer_{context};
  wheel_watchdog dog_{context, idle_window{shortest, longest}};
  support::manual_operation manual_{context.get_executor()};
  std::array<char, 1> room_{};

  operation read_, write_, guarded_;
  time_point expiry_ = time_point::max();
  time_point touched_ = start;
  double pressure_ = 0;
  int fed_ = 0;           ///< how much there is to read
  bool drained_ = false;  ///< there is room to write
  bool inside_ = false;   ///< a handler
  bool ending_ = false;   ///< nothing is started any more
  std::string fault_;
};

}  // namespace

std::string play_on_stream(script_view words)
{
  return stream_run().play(words);
}

}  // namespace model
