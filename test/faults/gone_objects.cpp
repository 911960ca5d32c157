// Fault: a handler destroys the session that it belongs to, with the sockets of operations whose
// deadlines come in the same tick. In every order of these, whatever ends them, and whichever
// handler does it. A deadline that follows must not touch a socket that is gone.
//
// Of an operation that its slot and its deadline cancel in one tick, the first one says how it
// ends.
#include <algorithm>
#include <array>
#include <asio_wheel.hpp>
#include <asio_wheel/timed_stream.hpp>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <numeric>
#include <ostream>
#include <thread>
#include <vector>

#include "support/manual_operation.hpp"
#include "support/run.hpp"
#include "support/scale.hpp"
#include "support/socket_pair.hpp"
#include "support/threads.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

/// What goes on in a session.
enum part : std::size_t {
  idle_timer,
  read_with_deadline,
  guarded_read,
  read_of_a_stream,
  emission,  ///< a wait that cancels the read with a deadline by its slot
  parts,
};
using order = std::array<std::size_t, parts>;

/// What ends all parts in one delivery.
enum class ended_by { expiry, cancel_all, refusal };

constexpr std::array all_ends{ended_by::expiry, ended_by::cancel_all, ended_by::refusal};

std::ostream& operator<<(std::ostream& out, ended_by e)
{
  constexpr std::array names{"expiry", "cancel_all()", "refusal"};
  return out << names[static_cast<std::size_t>(e)];
}

struct session {
  session(wheel_timer_service& wheel, const asio::any_io_executor& ex, std::chrono::nanoseconds d)
    : idle({wheel, ex}, d),
      emitter({wheel, ex}, d),
      watchdog({wheel, ex}, d),
      guarded(ex),
      timed(ex),
      stream(ex)
  {
    support::connect_pair(guarded, peers[0]);
    support::connect_pair(timed, peers[1]);
    support::connect_pair(stream.socket(), peers[2]);
    stream.expires_after(d);
  }

  wheel_timer idle, emitter;
  wheel_watchdog watchdog;
  support::pair_socket guarded, timed;
  timed_stream<support::pair_socket> stream;
  std::vector<support::pair_socket> peers = make_peers(timed.get_executor());
  std::array<char, 8> bytes{};

private:
  static std::vector<support::pair_socket> make_peers(const asio::any_io_executor& ex)
  {
    std::vector<support::pair_socket> all;
    for (int i = 0; i < 3; ++i) all.emplace_back(ex);
    return all;
  }
};

/// A session on an executor. The handler of `destroyer` ends its life; nobody's, if there is none.
class story {
public:
  story(wheel_timer_service& wheel, asio::any_io_executor ex, std::chrono::nanoseconds delay,
        std::size_t destroyer)
    : wheel_(wheel),
      executor_(std::move(ex)),
      delay_(delay),
      destroyer_(destroyer),
      session_(std::make_unique<session>(wheel, executor_, delay))
  {}

  void start(const order& parts_in_order)
  {
    for (const std::size_t p : parts_in_order) start(static_cast<part>(p));
  }

  [[nodiscard]] int calls(std::size_t p) const { return calls_[p]; }
  [[nodiscard]] error_code error(std::size_t p) const { return errors_[p]; }

  /// How many handlers were called. Any thread may ask.
  [[nodiscard]] std::size_t ended() const { return ended_; }

  void destroy_session() { session_.reset(); }

private:
  void start(part p)
  {
    session& s = *session_;
    const auto handler = [this, p](error_code ec, std::size_t = 0) { end(p, ec); };
    const auto buffer = asio::buffer(s.bytes);
    switch (p) {
      case idle_timer: return s.idle.async_wait(handler);
      case read_with_deadline:
        return s.timed.async_read_some(
          buffer,
          timeout_after(wheel_, delay_, asio::bind_cancellation_slot(signal_.slot(), handler)));
      case guarded_read: return s.guarded.async_read_some(buffer, s.watchdog.guard(handler));
      case read_of_a_stream: return s.stream.async_read_some(buffer, handler);
      default: return s.emitter.async_wait(handler);
    }
  }

  void end(part p, error_code ec)
  {
    ++calls_[p];
    errors_[p] = ec;
    // Not if the socket is gone: that would be the user's fault, as without a wheel.
    if (p == emission && session_ && calls_[read_with_deadline] == 0)
      signal_.emit(asio::cancellation_type::terminal);
    if (p == destroyer_) destroy_session();
    ++ended_;
  }

  wheel_timer_service& wheel_;
  const asio::any_io_executor executor_;
  const std::chrono::nanoseconds delay_;
  const std::size_t destroyer_;
  asio::cancellation_signal signal_;
  std::unique_ptr<session> session_;
  std::array<int, parts> calls_{};
  std::array<error_code, parts> errors_{};
  std::atomic<std::size_t> ended_{0};
};

constexpr std::size_t nobody = parts;

/// Plays a session to its end. The wheel's wait comes first that makes the others be refused.
template <class Check>
void play(ended_by how, bool on_strand, const order& o, std::size_t destroyer, Check check)
{
  wheel_options options;
  options.shards = 1;
  options.max_pending = how == ended_by::refusal ? 1 : 0;
  support::wheel_in_virtual_time c(options);
  if (how == ended_by::refusal) c.wheel.async_wait(1h, [](error_code) {});
  asio::any_io_executor ex = c.context.get_executor();
  if (on_strand) ex = asio::make_strand(c.context);
  story s(c.wheel, ex, how == ended_by::cancel_all ? 1h : 5ms, destroyer);
  asio::post(ex, [&] { s.start(o); });
  c.context.poll();
  if (how == ended_by::cancel_all) asio::post(ex, [&c] { c.wheel.cancel_all(); });
  c.time.advance(10ms);
  c.context.restart();
  c.context.poll();
  for (std::size_t p = 0; p < parts; ++p) {
    BOOST_TEST_CONTEXT("part " << p)
    {
      check(s, static_cast<part>(p));
    }
  }
  s.destroy_session();
  c.wheel.cancel_all();
  c.time.advance(10ms);
  support::run_to_end(c.context);
  for (std::size_t p = 0; p < parts; ++p) BOOST_TEST(s.calls(p) == 1, "calls of part " << p);
  BOOST_TEST(c.wheel.pending() == 0U);
}

template <class Check>
void in_every_order(std::size_t destroyer, Check check)
{
  for (const bool on_strand : {false, true}) {
    for (const ended_by how : all_ends) {
      order o;
      std::iota(o.begin(), o.end(), std::size_t{0});
      do {
        BOOST_TEST_CONTEXT("ended by " << how << (on_strand ? " on a strand" : "") << ", order "
                                       << o[0] << o[1] << o[2] << o[3] << o[4])
        {
          play(how, on_strand, o, destroyer, [&](const story& s, part p) { check(s, p, how, o); });
        }
      } while (std::next_permutation(o.begin(), o.end()));
    }
  }
}

bool comes_before(part a, part b, const order& o)
{
  return std::find(o.begin(), o.end(), a) < std::find(o.begin(), o.end(), b);
}

void destroyed_by(std::size_t destroyer)
{
  in_every_order(
    destroyer, [](const story& s, part p, ended_by, const order&) { BOOST_TEST(s.calls(p) <= 1); });
}

/// What a thread does that has taken an aborted operation from the context, and loses its
/// processor: it gives the operation's memory back late.
struct slow_thread {
  std::atomic<bool> is_armed{false};
  std::atomic<bool> has_slept{false};

  void sleep_once()
  {
    if (is_armed && !has_slept.exchange(true)) std::this_thread::sleep_for(1ms);
  }
};

template <class T>
struct slow_allocator {
  using value_type = T;

  explicit slow_allocator(slow_thread& t) : thread(&t) {}
  template <class U>
  slow_allocator(const slow_allocator<U>& other) : thread(other.thread)
  {}

  T* allocate(std::size_t n) { return std::allocator<T>().allocate(n); }
  void deallocate(T* p, std::size_t n)
  {
    thread->sleep_once();
    std::allocator<T>().deallocate(p, n);
  }
  bool operator==(const slow_allocator&) const = default;

  slow_thread* thread;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(gone_objects)

BOOST_AUTO_TEST_CASE(by_the_handler_of_a_timer)
{
  destroyed_by(idle_timer);
}
BOOST_AUTO_TEST_CASE(by_the_handler_of_a_read_with_a_deadline)
{
  destroyed_by(read_with_deadline);
}
BOOST_AUTO_TEST_CASE(by_the_handler_of_a_guarded_read)
{
  destroyed_by(guarded_read);
}
BOOST_AUTO_TEST_CASE(by_the_handler_of_a_read_of_a_stream)
{
  destroyed_by(read_of_a_stream);
}
BOOST_AUTO_TEST_CASE(by_the_handler_that_emits)
{
  destroyed_by(emission);
}

// On a strand, the deadline takes a way on which a signal that is emitted later may overtake it.
BOOST_AUTO_TEST_CASE(none_and_the_first_cancellation_is_told)
{
  in_every_order(nobody, [](const story& s, part p, ended_by how, const order& o) {
    BOOST_TEST(s.calls(p) == 1);
    if (how != ended_by::expiry) return;
    const bool times_out = p == guarded_read || p == read_of_a_stream;
    const error_code ec = s.error(p);
    if (p == read_with_deadline && ec != asio::error::timed_out)
      BOOST_TEST(ec == asio::error::operation_aborted);
    else if (p == read_with_deadline)
      BOOST_TEST(!comes_before(emission, read_with_deadline, o));
    else
      BOOST_TEST(ec == (times_out ? error_code(asio::error::timed_out) : error_code()));
  });
}

// It has not ended when its deadline comes, and ends with that.
BOOST_AUTO_TEST_CASE(none_and_a_cancellation_that_was_ignored_is_not_told)
{
  for (const bool on_strand : {false, true}) {
    support::wheel_in_virtual_time c;
    asio::any_io_executor ex = c.context.get_executor();
    if (on_strand) ex = asio::make_strand(c.context);
    support::manual_operation operation(ex);
    operation.obeys = false;
    support::result result;
    asio::cancellation_signal signal;
    wheel_timer emitter({c.wheel, ex}, 5ms);
    emitter.async_wait([&](error_code) { signal.emit(asio::cancellation_type::terminal); });
    operation.async_run(
      timeout_after(c.wheel, 5ms, asio::bind_cancellation_slot(signal.slot(), result.recorder())));
    c.time.advance(5ms);
    BOOST_TEST(operation.seen.size() == 2U);
    asio::post(ex, [&] { operation.complete(asio::error::operation_aborted); });
    c.context.restart();
    c.context.poll();
    BOOST_TEST(result.failed(asio::error::timed_out));
  }
}

// As threads.md recommends: a strand for each connection.
BOOST_AUTO_TEST_CASE(in_three_threads_with_a_strand_for_each)
{
  constexpr std::size_t sessions = support::under_sanitizer ? 100 : 200;
  order o;
  std::iota(o.begin(), o.end(), std::size_t{0});
  for (const ended_by how : {ended_by::expiry, ended_by::cancel_all}) {
    support::context_with_wheel c;
    std::vector<std::unique_ptr<story>> all;
    support::running_threads threads(c.context, 3);
    for (std::size_t i = 0; i < sessions; ++i) {
      std::next_permutation(o.begin(), o.end());
      const auto strand = asio::make_strand(c.context);
      const std::chrono::nanoseconds delay = how == ended_by::expiry ? 20ms : 1h;
      auto& s = *all.emplace_back(std::make_unique<story>(c.wheel, strand, delay, i % parts));
      asio::post(strand, [&s, o] { s.start(o); });
    }
    const auto all_ended = [&] {
      if (how == ended_by::cancel_all) c.wheel.cancel_all();
      return std::ranges::all_of(all, [](const auto& s) { return s->ended() == parts; });
    };
    BOOST_TEST(support::eventually(all_ended));
    threads.finish();
    BOOST_TEST(c.wheel.pending() == 0U);
  }
}

// The deadline is on its way to the strand before the operation, which was aborted before it.
BOOST_AUTO_TEST_CASE(while_a_thread_has_the_aborted_operation_in_hand)
{
  for (int i = 0; i < 4; ++i) {
    slow_thread slow;
    support::context_with_wheel c(support::with_tick(4ms));
    const auto strand = asio::make_strand(c.context);
    auto socket = std::make_unique<support::pair_socket>(c.context);
    support::pair_socket peer(c.context);
    support::connect_pair(*socket, peer);
    std::array<char, 8> bytes{};
    std::atomic<bool> has_ended{false};
    support::running_threads threads(c.context, 2);
    // Each thread calls a handler: the first is not free until the second one does.
    std::atomic<bool> is_called{false};
    c.wheel.async_wait(1ms, asio::bind_executor(strand, [&](error_code) {
                         while (!is_called) std::this_thread::yield();
                       }));
    c.wheel.async_wait(9ms, asio::bind_executor(asio::make_strand(c.context),
                                                [&](error_code) { is_called = true; }));
    BOOST_TEST(support::eventually([&] { return is_called.load(); }));
    const auto at = c.wheel.now() + 20ms;
    wheel_timer destroyer(strand);
    destroyer.expires_at(at - i % 2 * 4ms);  // in the deadline's tick, or the one before
    // By one thread, so that the timer's handler is called before the deadline comes.
    asio::post(strand, [&] {
      destroyer.async_wait([&](error_code) {
        slow.is_armed = true;
        socket.reset();
        const auto latest = std::chrono::steady_clock::now() + 2s;
        // The other thread takes the read.
        while (!slow.has_slept && std::chrono::steady_clock::now() < latest)
          std::this_thread::yield();
      });
      socket->async_read_some(
        asio::buffer(bytes),
        timeout_at(
          at, asio::bind_allocator(
                slow_allocator<char>(slow),
                asio::bind_executor(strand, [&](error_code, std::size_t) { has_ended = true; }))));
    });
    BOOST_TEST(support::eventually([&] { return has_ended.load(); }));
    threads.finish();
  }
}

BOOST_AUTO_TEST_SUITE_END()
