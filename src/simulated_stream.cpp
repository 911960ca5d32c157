// L3 timers: simulated connections: bytes on the way, arrived bytes, and the operations that wait
// for them.
#include <asio_wheel/simulated_stream.hpp>

#include <asio_wheel/detail/base/intrusive_ptr.hpp>

#include "detail/engine/core.hpp"
#include "detail/engine/fail_invalid.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

namespace asio_wheel {
namespace detail {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

/// The connection's mutex guards all except the timer. It guards the bytes and their number only
/// while the operation runs.
struct pending_operation : simulated_operation, std::enable_shared_from_this<pending_operation> {
  pending_operation(const asio::any_io_executor& ex, std::shared_ptr<simulated_connection> c,
                    std::size_t of_side, bool is_write, std::size_t most)
    : simulated_operation{wheel_timer(wheel_place<>(ex), any_deadline(time_point::max())),
                          std::make_unique_for_overwrite<char[]>(most), most, simulated_end()},
      connection(std::move(c)),
      side(of_side),
      writes(is_write)
  {}
  ~pending_operation();

  void end(const error_code& ec, std::size_t n = 0) noexcept
  {
    is_done = true;
    error = ec;
    size = n;
  }

  const std::shared_ptr<simulated_connection> connection;
  const std::size_t side;
  const bool writes;
  std::list<pending_operation*> node{this};  ///< empty while the operation is in a queue
  const std::list<pending_operation*>::iterator place = node.begin();
  bool is_woken = false;  ///< it can complete: its wait was cancelled
  bool is_done = false;   ///< it ends with `error` and `size`, whatever its wait says
  error_code error = asio::error::bad_descriptor;
};

/// One end of a connection, and what it sends: bytes that have arrived, and bytes on the way behind
/// them.
struct simulated_side {
  /// Bytes; without bytes, the end of the stream or the answer of a closed end.
  struct segment {
    time_point arrives;
    std::size_t size;
    bool refuses;
  };

  /// The event that the timer waits for.
  struct alarm {
    std::optional<time_point> at;
    std::uint64_t number = 0;  ///< grows each time
  };

  simulated_side(wheel_timer_service& wheel, std::uint64_t seed)
    : chance(seed),
      timer(wheel_place<>(wheel))
  {}

  /// When the next fault or segment comes; nothing if none ever will.
  [[nodiscard]] std::optional<time_point> next_event() const noexcept
  {
    std::optional<time_point> next;
    if (!timed_faults.empty()) next = timed_faults.begin()->first;
    if (on_the_way.empty() || is_stalled || is_dropped) return next;
    return std::min(next.value_or(time_point::max()), on_the_way.front().arrives);
  }

  /// Returns true if the caller is to arm the timer: the next event is another, and no thread is
  /// about to find out.
  [[nodiscard]] bool rearm() noexcept
  {
    const auto next = next_event();
    if (next == armed.at) return false;
    armed = alarm{next, armed.number + 1};
    return !std::exchange(is_arming, true);
  }

  void take(std::size_t n) noexcept
  {
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    arrived -= n;
  }

  /// Ends the stream behind what has arrived.
  void end_stream() noexcept
  {
    on_the_way.clear();
    bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(arrived), bytes.end());
    is_ended = true;
  }

  /// A random number by splitmix64 (Steele, Lea and Flood): alike everywhere, unlike the standard's
  /// distributions.
  [[nodiscard]] std::uint64_t draw() noexcept
  {
    std::uint64_t z = chance += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  void send(const simulated_link& link, time_point now, std::size_t n, bool refuses = false)
  {
    line_free = std::max(line_free, now);
    if (link.bytes_per_second != 0) {
      const double ns = 1e9 * static_cast<double>(n) / static_cast<double>(link.bytes_per_second);
      line_free = sum(line_free, duration{static_cast<duration::rep>(ns)});
    }
    time_point at = sum(line_free, link.latency);
    if (link.jitter > duration::zero()) {
      const auto steps = static_cast<std::uint64_t>(link.jitter.count()) + 1;
      at = sum(at, duration{static_cast<duration::rep>(draw() % steps)});
    }
    if (link.loss > 0 && static_cast<double>(draw() >> 11U) * 0x1p-53 < link.loss)
      at = sum(sum(sum(at, std::chrono::milliseconds{200}), link.latency), link.latency);
    latest = std::max(latest, at);
    on_the_way.push_back({latest, n, refuses});
  }

  // The end's own state.
  bool is_open = true;
  bool is_deaf = false;  ///< reads end with eof when nothing is there
  std::size_t chunk = unlimited;
  std::array<std::list<pending_operation*>, 2> pending;  ///< reads, and writes

  // What the end sends.
  std::deque<char> bytes;   ///< unread
  std::size_t arrived = 0;  ///< of `bytes`
  std::deque<segment> on_the_way;
  std::list<simulated_end> ends;  ///< sent with bytes, to an acceptor
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::multimap<std::uint64_t, simulated_fault> faults;  ///< by received bytes before them
  std::multimap<time_point, simulated_fault> timed_faults;
  time_point line_free{};  ///< when the next byte can leave
  time_point latest{};     ///< arrival so far
  bool is_stalled = false;
  bool is_dropped = false;
  bool is_shut = false;   ///< the end of the stream was sent
  bool is_ended = false;  ///< the end of the stream has arrived
  std::uint64_t chance;
  alarm armed;
  bool is_arming = false;  ///< by the thread that may use the timer
  wheel_timer timer;
};

/// The two ends of a connection. The first operation in a queue is woken when it can complete; the
/// next operation is woken after the first has begun. So what an operation was woken for is still
/// there when it begins. All except now() and arm() requires the lock.
struct simulated_connection : std::enable_shared_from_this<simulated_connection> {
  simulated_connection(wheel_timer_service& wheel, const simulated_link& l)
    : link(l),
      core(&core_of(wheel)),
      sides{simulated_side(wheel, 2 * l.seed), simulated_side(wheel, 2 * l.seed + 1)}
  {}

  [[nodiscard]] time_point now() const noexcept { return core->clock.now(); }
  [[nodiscard]] simulated_side& peer(std::size_t side) noexcept { return sides[1 - side]; }

  [[nodiscard]] bool can_go_on(std::size_t side, bool writes) noexcept
  {
    const simulated_side& self = sides[side];
    if (writes) return self.bytes.size() < link.send_buffer || self.is_shut;
    return peer(side).arrived != 0 || peer(side).is_ended || self.is_deaf;
  }

  /// As a socket, takes at once as much of a write as there is room for.
  void begin(pending_operation& op) noexcept
  {
    auto& queue = sides[op.side].pending[op.writes];
    const bool is_first = queue.empty();
    queue.splice(queue.end(), op.node);
    if (!sides[op.side].is_open) return op.end(asio::error::bad_descriptor);
    if (broken) return op.end(broken);
    if (op.writes && is_first && can_go_on(op.side, true)) transfer(op);
  }

  void unlist(pending_operation& op) noexcept
  {
    if (op.node.empty()) op.node.splice(op.node.end(), sides[op.side].pending[op.writes], op.place);
  }

  /// Reads or writes.
  void transfer(pending_operation& op) noexcept
  try {
    constexpr std::size_t segment_size = 1460;
    simulated_side& self = sides[op.side];
    std::size_t n = std::min(op.size, self.chunk);
    if (op.writes) {
      if (self.is_shut) return op.end(asio::error::broken_pipe);
      n = std::min(n, link.send_buffer - self.bytes.size());
      self.bytes.insert(self.bytes.end(), op.bytes.get(), op.bytes.get() + n);
      for (std::size_t done = 0; done < n; done += segment_size)
        self.send(link, now(), std::min(n - done, segment_size));
      self.sent += n;
    } else {
      simulated_side& in = peer(op.side);
      n = std::min(n, in.arrived);
      if (n == 0) return op.end(asio::error::eof);
      std::copy_n(in.bytes.begin(), n, op.bytes.get());
      in.take(n);
      if (!in.ends.empty()) {
        op.accepted = std::move(in.ends.front());
        in.ends.pop_front();
      }
    }
    op.end(error_code(), n);
  } catch (const std::bad_alloc&) {
    fail(asio::error::no_memory);
    op.end(asio::error::no_memory);
  }

  /// Ends pending operations that have not ended yet.
  void cancel(std::size_t side, const error_code& ec) noexcept
  {
    for (const auto& queue : sides[side].pending)
      for (pending_operation* op : queue)
        if (!op->is_done) op->end(ec);
  }

  void shut(std::size_t side) noexcept
  try {
    if (!std::exchange(sides[side].is_shut, true)) sides[side].send(link, now(), 0);
  } catch (const std::bad_alloc&) {
    fail(asio::error::no_memory);
  }

  void close(std::size_t side) noexcept
  {
    sides[side].is_open = false;
    cancel(side, asio::error::operation_aborted);
    shut(side);
    peer(side).take(peer(side).arrived);
    if (!peer(side).is_open) fail(asio::error::connection_reset);
  }

  /// From here on every operation fails, and nothing is on the way.
  void fail(const error_code& ec) noexcept
  {
    broken = ec;
    for (const std::size_t side : {0U, 1U}) {
      cancel(side, ec);
      sides[side].take(sides[side].arrived);
      sides[side].end_stream();
      sides[side].faults.clear();
      sides[side].timed_faults.clear();
    }
  }

  void inject(std::size_t side, simulated_fault fault, bool behind_bytes = false) noexcept
  {
    simulated_side& self = sides[side];
    switch (fault.kind) {
      case simulated_fault::stall: self.is_stalled = true; break;
      case simulated_fault::resume: self.is_stalled = false; break;
      case simulated_fault::reset: fail(asio::error::connection_reset); break;
      case simulated_fault::drop: self.is_dropped = peer(side).is_dropped = true; break;
      case simulated_fault::chunk: self.chunk = fault.bytes ? fault.bytes : unlimited; break;
      case simulated_fault::half_close:
        shut(side);
        if (behind_bytes) self.end_stream();
    }
  }

  /// Lets arrive what is due of this side by now: segments, and the faults in between.
  void deliver(std::size_t side) noexcept
  try {
    simulated_side& self = sides[side];
    const time_point present = now();
    for (;;) {
      while (!self.faults.empty() && self.faults.begin()->first <= self.received)
        inject(side, self.faults.extract(self.faults.begin()).mapped(), true);
      const auto next = self.next_event();
      if (!next || *next > present) return;
      if (auto& timed = self.timed_faults; !timed.empty() && timed.begin()->first == *next)
        inject(side, timed.extract(timed.begin()).mapped());
      else
        arrive(side);
    }
  } catch (const std::bad_alloc&) {
    fail(asio::error::no_memory);
  }

  /// The next segment, or as much of it as comes before the next fault.
  void arrive(std::size_t side)
  {
    simulated_side& self = sides[side];
    simulated_side::segment part = self.on_the_way.front();
    if (!self.faults.empty())
      part.size = static_cast<std::size_t>(
        std::min<std::uint64_t>(part.size, self.faults.begin()->first - self.received));
    self.on_the_way.front().size -= part.size;
    if (self.on_the_way.front().size == 0) self.on_the_way.pop_front();
    if (part.refuses) return fail(asio::error::connection_reset);
    if (part.size == 0) self.is_ended = true;
    self.received += part.size;
    self.arrived += part.size;
    if (part.size == 0 || peer(side).is_open) return;
    self.take(part.size);
    peer(side).send(link, now(), 0, true);
  }

  /// Returns the operations whose waits are to be cancelled, null for an operation about to be
  /// destroyed: its destructor unlists it, and wakes the next.
  [[nodiscard]] std::array<std::shared_ptr<pending_operation>, 4> wake() noexcept
  {
    std::array<std::shared_ptr<pending_operation>, 4> woken;
    for (const std::size_t i : {0U, 1U, 2U, 3U}) {
      const auto& queue = sides[i / 2].pending[i % 2];
      if (queue.empty()) continue;
      pending_operation& op = *queue.front();
      if (op.is_woken || !(op.is_done || can_go_on(op.side, op.writes))) continue;
      op.is_woken = true;
      woken[i] = op.weak_from_this().lock();
    }
    return woken;
  }

  void arm(std::size_t side) noexcept;
  void wait_for(std::size_t side, const simulated_side::alarm& a) noexcept;

  const simulated_link link;
  const intrusive_ptr<wheel_core> core;  ///< of the wheel, which it may outlive
  std::mutex mutex;
  std::array<simulated_side, 2> sides;
  error_code broken;
};

/// Locks a connection, if there is one. After unlocking, wakes the operations that can go on, since
/// the wheel may post then.
class [[nodiscard]] locked_connection {
public:
  explicit locked_connection(std::shared_ptr<simulated_connection> c) noexcept : c_(std::move(c))
  {
    if (c_) c_->mutex.lock();
  }
  locked_connection(const locked_connection&) = delete;
  locked_connection& operator=(const locked_connection&) = delete;
  ~locked_connection()
  {
    if (!c_) return;
    const auto woken = c_->wake();
    const std::array to_arm{c_->sides[0].rearm(), c_->sides[1].rearm()};
    c_->mutex.unlock();
    for (const std::size_t side : {0U, 1U})
      if (to_arm[side]) c_->arm(side);
    for (const auto& op : woken)
      if (op) op->timer.cancel();
  }

  explicit operator bool() const noexcept { return c_ != nullptr; }
  simulated_connection* operator->() const noexcept { return c_.get(); }

private:
  const std::shared_ptr<simulated_connection> c_;
};

/// Lets the timer wait for the next event. Called without the lock, as the wheel may post. So the
/// next event may be another by then: looks until it is not.
void simulated_connection::arm(std::size_t side) noexcept
{
  simulated_side::alarm a;
  for (;;) {
    {
      const std::lock_guard lock(mutex);
      if (a.number == sides[side].armed.number) {
        sides[side].is_arming = false;
        return;
      }
      a = sides[side].armed;
    }
    wait_for(side, a);
  }
}

void simulated_connection::wait_for(std::size_t side, const simulated_side::alarm& a) noexcept
try {
  wheel_timer& timer = sides[side].timer;
  if (!a.at) return static_cast<void>(timer.cancel());
  timer.expires_at(*a.at);
  timer.async_wait([keep = shared_from_this(), side, number = a.number](error_code ec) {
    const locked_connection c(keep);
    if (number == c->sides[side].armed.number) c->sides[side].armed.at.reset();
    if (ec && ec != asio::error::operation_aborted) return c->fail(ec);
    c->deliver(side);
  });
} catch (const std::bad_alloc&) {
  const locked_connection c(shared_from_this());
  sides[side].armed.at.reset();
  fail(asio::error::no_memory);
}

pending_operation::~pending_operation()
{
  if (!node.empty()) return;
  const locked_connection c(connection);
  c->unlist(*this);
}

}  // namespace detail

using detail::locked_connection;
using detail::pending_operation;
using detail::simulated_connection;

std::pair<simulated_end, simulated_end> simulated_end::connect(wheel_timer_service& wheel,
                                                               const simulated_link& link)
{
  using namespace detail;
  if (link.latency < duration::zero())
    fail_invalid("simulated_link::latency is %lldns; it must be 0ns or more", in_ns(link.latency));
  if (link.jitter < duration::zero())
    fail_invalid("simulated_link::jitter is %lldns; it must be 0ns or more", in_ns(link.jitter));
  if (link.send_buffer == 0) fail_invalid("simulated_link::send_buffer is 0; it must be 1 or more");
  if (!(link.loss >= 0 && link.loss <= 1))
    fail_invalid("simulated_link::loss is %.12g; it must be from 0 to 1", link.loss);
  const auto both = std::make_shared<simulated_connection>(wheel, link);
  return {simulated_end(both, 0), simulated_end(both, 1)};
}

bool simulated_end::is_open() const noexcept
{
  if (!connection_) return false;
  const std::lock_guard lock(connection_->mutex);
  return connection_->sides[side_].is_open;
}

std::size_t simulated_end::available() const noexcept
{
  if (!is_open()) return 0;
  const std::lock_guard lock(connection_->mutex);
  return connection_->peer(side_).arrived;
}

void simulated_end::cancel() noexcept
{
  const locked_connection c(connection_);
  if (c) c->cancel(side_, asio::error::operation_aborted);
}

void simulated_end::close() noexcept
{
  std::list<simulated_end> left;
  {
    const locked_connection c(connection_);
    if (!c || !c->sides[side_].is_open) return;
    c->close(side_);
    left.swap(c->peer(side_).ends);
  }
  for (simulated_end& each : left) each.reset();
}

void simulated_end::shutdown(shutdown_type what, error_code& ec) noexcept
{
  const locked_connection c(connection_);
  ec.clear();
  if (!c || !c->sides[side_].is_open)
    ec = asio::error::bad_descriptor;
  else if (c->broken)
    ec = asio::error::not_connected;
  if (ec) return;
  if (what != shutdown_send) c->sides[side_].is_deaf = true;
  if (what != shutdown_receive) c->shut(side_);
}

void simulated_end::inject(simulated_fault fault) noexcept
{
  const locked_connection c(connection_);
  if (c) c->inject(side_, fault);
}

void simulated_end::inject_after(detail::any_delay delay, simulated_fault fault)
{
  const locked_connection c(connection_);
  if (!c || !c->sides[side_].is_open || c->broken) return;
  c->sides[side_].timed_faults.emplace(detail::sum(c->now(), delay), fault);
}

void simulated_end::inject_after_bytes(std::size_t n, simulated_fault fault)
{
  const locked_connection c(connection_);
  if (!c) return;
  const std::uint64_t sent = c->sides[side_].sent;
  c->sides[side_].faults.emplace(sent + std::min<std::uint64_t>(n, ~sent), fault);
  c->deliver(side_);
}

simulated_end::operation simulated_end::prepare(const asio::any_io_executor& ex, bool writes,
                                                std::size_t size) const
{
  std::size_t most = 0;
  if (const locked_connection c(connection_); c)
    most = std::min({size, c->link.send_buffer, c->sides[side_].chunk});
  const auto op = std::make_shared<pending_operation>(ex, connection_, side_, writes, most);
  op->is_done = most == 0;
  if (op->is_done && is_open()) op->error.clear();
  return op;
}

void simulated_end::begin(detail::simulated_operation& prepared) noexcept
{
  auto& op = static_cast<pending_operation&>(prepared);
  const locked_connection c(op.connection);
  if (!op.is_done) c->begin(op);  // else its wait has ended already
}

error_code simulated_end::finish(detail::simulated_operation& begun, error_code ec) noexcept
{
  auto& op = static_cast<pending_operation&>(begun);
  const locked_connection c(op.connection);
  if (c) c->unlist(op);
  if (!op.is_done && op.is_woken) c->transfer(op);
  if (!op.is_done) op.end(ec);
  return op.error;
}

bool simulated_end::send(simulated_end&& end)
{
  const locked_connection c(connection_);
  if (!c || !c->peer(side_).is_open) return false;
  detail::simulated_side& self = c->sides[side_];
  self.bytes.push_back('\0');
  self.ends.push_back(std::move(end));
  ++self.arrived;
  return true;
}

}  // namespace asio_wheel
