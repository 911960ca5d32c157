// L3 timers: simulated connections: what is on the way, what has arrived, and who waits for it.
#include <asio_wheel/detail/timers/simulated_end.hpp>

#include <asio_wheel/detail/base/intrusive_ptr.hpp>

#include "../engine/core.hpp"

#include "../engine/reject.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace asio_wheel::detail {

/// One end of a connection, and what it sends: bytes that have arrived and, behind them, those that
/// are on the way.
struct simulated_side {
  simulated_side(wheel_timer_service& wheel, std::uint64_t seed)
    : chance(seed),
      arrival(wheel_place<>(wheel))
  {}

  enum class kind { data, end, refusal };
  struct segment {
    time_point arrives;
    kind what;
    std::size_t size;
  };

  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

  /// How many bytes were sent and not read.
  [[nodiscard]] std::size_t unread() const noexcept { return bytes.size() - taken; }

  /// When the next segment arrives; nothing if none ever will.
  [[nodiscard]] std::optional<time_point> next_arrival() const noexcept
  {
    if (on_the_way.empty() || is_stalled || is_dropped) return std::nullopt;
    return on_the_way.front().arrives;
  }

  void take(std::size_t n) noexcept
  {
    taken += n;
    arrived -= n;
    if (taken < bytes.size() / 2) return;
    bytes.erase(0, taken);
    taken = 0;
  }

  /// Ends the stream behind what has arrived.
  void cut() noexcept
  {
    on_the_way.clear();
    bytes.resize(taken + arrived);
    is_ended = true;
  }

  void send(const simulated_link& link, time_point now, kind what, std::size_t n = 0);

  // Of the end.
  bool is_open = true;
  bool is_deaf = false;  ///< reads find the end of stream when nothing is there
  std::size_t chunk = unlimited;
  intrusive_list<simulated_operation> reads;
  intrusive_list<simulated_operation> writes;

  // Of what it sends.
  std::string bytes;
  std::size_t taken = 0;    ///< of these, and not there any more
  std::size_t arrived = 0;  ///< behind those
  std::deque<segment> on_the_way;
  std::list<simulated_end> ends;  ///< that are sent in place of bytes
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::deque<std::pair<std::uint64_t, simulated_fault>> faults;  ///< behind so many received bytes
  time_point line_free{};  ///< from when on the next byte can leave
  time_point latest{};     ///< arrival so far
  bool is_stalled = false;
  bool is_dropped = false;
  bool is_shut = false;   ///< the end of the stream was sent
  bool is_ended = false;  ///< and has arrived
  bool is_armed = false;  ///< the timer waits for an arrival
  std::uint64_t chance;   ///< the state of the splitmix64 of Steele, Lea and Flood
  wheel_timer arrival;
};

namespace {

[[nodiscard]] time_point sum(time_point t, duration d) noexcept
{
  return d > time_point::max() - t ? time_point::max() : t + d;
}

/// The same numbers everywhere, unlike the standard's distributions.
[[nodiscard]] std::uint64_t next_chance(std::uint64_t& state) noexcept
{
  std::uint64_t z = state += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

void end(simulated_operation& op, const error_code& ec, std::size_t n = 0) noexcept
{
  op.is_done = true;
  op.error = ec;
  op.size = n;
}

void unlist(simulated_operation& op) noexcept
{
  if (std::exchange(op.is_listed, false)) intrusive_list<simulated_operation>::erase(op);
}

}  // namespace

void simulated_side::send(const simulated_link& link, time_point now, kind what, std::size_t n)
{
  line_free = std::max(line_free, now);
  if (link.bytes_per_second != 0) {
    const double ns = 1e9 * static_cast<double>(n) / static_cast<double>(link.bytes_per_second);
    line_free = sum(line_free, duration{static_cast<duration::rep>(ns)});
  }
  time_point at = sum(line_free, link.latency);
  if (link.jitter > duration::zero()) {
    const auto steps = static_cast<std::uint64_t>(link.jitter.count()) + 1;
    at = sum(at, duration{static_cast<duration::rep>(next_chance(chance) % steps)});
  }
  if (link.loss > 0 && static_cast<double>(next_chance(chance) >> 11U) * 0x1p-53 < link.loss)
    at = sum(sum(sum(at, std::chrono::milliseconds{200}), link.latency), link.latency);
  latest = std::max(latest, at);
  on_the_way.push_back({latest, what, n});
}

/// The two ends of a connection. The first operation in a list is woken when it can complete; the
/// next one's turn comes when that has begun. So what it was woken for is still there when it
/// begins.
class simulated_connection : public std::enable_shared_from_this<simulated_connection> {
public:
  simulated_connection(wheel_timer_service& w, const simulated_link& l)
    : link(l),
      wheel(w),
      core(&core_of(w)),
      sides{simulated_side(w, 2 * l.seed), simulated_side(w, 2 * l.seed + 1)}
  {}

  /// Locks the connection. After unlocking it wakes who can go on, since the wheel may post then.
  class [[nodiscard]] section {
  public:
    explicit section(simulated_connection& c) noexcept
      : connection_(c.shared_from_this()),
        lock_(c.mutex)
    {}
    ~section()
    {
      const auto woken = connection_->wake();
      lock_.unlock();
      for (const auto& op : woken)
        if (op) op->timer.cancel();
      for (std::size_t side : {0U, 1U}) connection_->see_to_arrivals(side);
    }

  private:
    const std::shared_ptr<simulated_connection> connection_;
    std::unique_lock<std::mutex> lock_;
  };

  [[nodiscard]] time_point now() const noexcept { return core->clock.now(); }
  [[nodiscard]] simulated_side& peer(std::size_t side) noexcept { return sides[1 - side]; }
  [[nodiscard]] bool is_over() const noexcept { return !sides[0].is_open && !sides[1].is_open; }

  // Of a side; these require the lock.
  [[nodiscard]] bool can_read(std::size_t side) noexcept;
  [[nodiscard]] bool can_write(std::size_t side) noexcept;
  [[nodiscard]] simulated_end::result read(std::size_t side, simulated_end::read_buffers) noexcept;
  [[nodiscard]] simulated_end::result write(std::size_t side,
                                            simulated_end::write_buffers) noexcept;
  void start(simulated_operation& op, std::size_t side, bool is_read, bool is_empty) noexcept;
  void cancel(std::size_t side, const error_code& ec) noexcept;
  void shut(std::size_t side) noexcept;
  void close(std::size_t side) noexcept;
  void fail(const error_code& ec) noexcept;
  void inject(std::size_t side, simulated_fault fault, bool behind_bytes = false) noexcept;
  void deliver(std::size_t side) noexcept;

  const simulated_link link;
  wheel_timer_service& wheel;
  const intrusive_ptr<wheel_core> core;  ///< of the wheel, which it may outlive
  std::mutex mutex;
  std::array<simulated_side, 2> sides;
  error_code broken;
  std::list<wheel_timer> timed_faults;

private:
  [[nodiscard]] std::array<simulated_end::operation_ptr, 4> wake() noexcept;
  void arrive(std::size_t side, simulated_side::kind what, std::size_t n);
  void see_to_arrivals(std::size_t side) noexcept;
};

bool simulated_connection::can_read(std::size_t side) noexcept
{
  return peer(side).arrived != 0 || peer(side).is_ended || sides[side].is_deaf;
}

bool simulated_connection::can_write(std::size_t side) noexcept
{
  return sides[side].unread() < link.send_buffer || sides[side].is_shut;
}

simulated_end::result simulated_connection::read(std::size_t side,
                                                 simulated_end::read_buffers buffers) noexcept
{
  simulated_side& in = peer(side);
  if (in.arrived == 0) return {asio::error::eof, 0};
  const std::size_t most = std::min(in.arrived, sides[side].chunk);
  std::size_t n = 0;
  for (const asio::mutable_buffer& b : buffers)
    n += asio::buffer_copy(b, asio::buffer(in.bytes) + (in.taken + n), most - n);
  in.take(n);
  return {error_code(), n};
}

simulated_end::result simulated_connection::write(std::size_t side,
                                                  simulated_end::write_buffers buffers) noexcept
try {
  constexpr std::size_t segment_size = 1460;
  simulated_side& out = sides[side];
  if (out.is_shut) return {asio::error::broken_pipe, 0};
  const std::size_t most = std::min(link.send_buffer - out.unread(), out.chunk);
  std::size_t size = 0;
  for (const asio::const_buffer& b : buffers) {
    const std::size_t n = std::min(b.size(), most - size);
    out.bytes.append(static_cast<const char*>(b.data()), n);
    size += n;
  }
  for (std::size_t done = 0; done < size; done += segment_size)
    out.send(link, now(), simulated_side::kind::data, std::min(size - done, segment_size));
  out.sent += size;
  return {error_code(), size};
} catch (const std::bad_alloc&) {
  fail(asio::error::no_memory);
  return {asio::error::no_memory, 0};
}

void simulated_connection::start(simulated_operation& op, std::size_t side, bool is_read,
                                 bool is_empty) noexcept
{
  simulated_side& self = sides[side];
  (is_read ? self.reads : self.writes).push_back(op);
  op.is_listed = true;
  if (!self.is_open)
    end(op, asio::error::bad_descriptor);
  else if (is_empty || broken)
    end(op, is_empty ? error_code() : broken);
}

/// Ends what is pending, other than what has an end.
void simulated_connection::cancel(std::size_t side, const error_code& ec) noexcept
{
  const auto cancel_one = [&](simulated_operation& op) {
    if (!op.is_done) end(op, ec);
  };
  sides[side].reads.for_each(cancel_one);
  sides[side].writes.for_each(cancel_one);
}

void simulated_connection::shut(std::size_t side) noexcept
try {
  if (!std::exchange(sides[side].is_shut, true))
    sides[side].send(link, now(), simulated_side::kind::end);
} catch (const std::bad_alloc&) {
  fail(asio::error::no_memory);
}

void simulated_connection::close(std::size_t side) noexcept
{
  sides[side].is_open = false;
  cancel(side, asio::error::operation_aborted);
  shut(side);
  peer(side).take(peer(side).arrived);
  if (is_over()) fail(asio::error::connection_reset);
}

/// From here on every operation fails, and nothing is on the way.
void simulated_connection::fail(const error_code& ec) noexcept
{
  broken = ec;
  for (const std::size_t side : {0U, 1U}) {
    cancel(side, ec);
    sides[side].take(sides[side].arrived);
    sides[side].cut();
    sides[side].faults.clear();
  }
}

void simulated_connection::inject(std::size_t side, simulated_fault fault,
                                  bool behind_bytes) noexcept
{
  simulated_side& self = sides[side];
  switch (fault.kind) {
    case simulated_fault::stall: self.is_stalled = true; break;
    case simulated_fault::resume: self.is_stalled = false; break;
    case simulated_fault::reset: fail(asio::error::connection_reset); break;
    case simulated_fault::drop: self.is_dropped = peer(side).is_dropped = true; break;
    case simulated_fault::chunk: self.chunk = fault.bytes ? fault.bytes : self.unlimited; break;
    case simulated_fault::half_close:
      shut(side);
      if (behind_bytes) self.cut();
  }
}

/// Lets arrive what this side has sent and does by now, with the faults in between.
void simulated_connection::deliver(std::size_t side) noexcept
try {
  simulated_side& self = sides[side];
  const time_point present = now();
  for (;;) {
    while (!self.faults.empty() && self.faults.front().first <= self.received) {
      const simulated_fault fault = self.faults.front().second;
      self.faults.pop_front();
      inject(side, fault, true);
    }
    const auto next = self.next_arrival();
    if (!next || *next > present) return;
    simulated_side::segment& first = self.on_the_way.front();
    const auto what = first.what;
    std::size_t n = first.size;
    if (!self.faults.empty())
      n = static_cast<std::size_t>(
        std::min<std::uint64_t>(n, self.faults.front().first - self.received));
    first.size -= n;
    if (first.size == 0) self.on_the_way.pop_front();
    arrive(side, what, n);
  }
} catch (const std::bad_alloc&) {
  fail(asio::error::no_memory);
}

void simulated_connection::arrive(std::size_t side, simulated_side::kind what, std::size_t n)
{
  simulated_side& self = sides[side];
  switch (what) {
    case simulated_side::kind::refusal: return fail(asio::error::connection_reset);
    case simulated_side::kind::end: self.is_ended = true; return;
    case simulated_side::kind::data:
      self.received += n;
      self.arrived += n;
      if (peer(side).is_open) return;
      self.take(n);
      peer(side).send(link, now(), simulated_side::kind::refusal);
  }
}

/// Returns those whose waits are to be cancelled. One that is about to be destroyed will be
/// unlisted, and wake the next one.
std::array<simulated_end::operation_ptr, 4> simulated_connection::wake() noexcept
{
  std::array<simulated_end::operation_ptr, 4> woken;
  const auto wake_first = [](auto& list, bool can_go_on) -> simulated_end::operation_ptr {
    simulated_operation* const op = list.front();
    if (!op || op->is_woken || !(op->is_done || can_go_on)) return nullptr;
    op->is_woken = true;
    return op->weak_from_this().lock();
  };
  for (const std::size_t side : {0U, 1U}) {
    woken[2 * side] = wake_first(sides[side].reads, can_read(side));
    woken[2 * side + 1] = wake_first(sides[side].writes, can_write(side));
  }
  return woken;
}

/// Lets the timer wait for what arrives next, if it does not. Called without the lock.
void simulated_connection::see_to_arrivals(std::size_t side) noexcept
try {
  std::list<wheel_timer> ended;
  std::unique_lock lock(mutex);
  simulated_side& self = sides[side];
  if (is_over()) ended.swap(timed_faults);
  const auto next = self.next_arrival();
  const bool was_armed = self.is_armed;
  if (next) self.is_armed = true;
  lock.unlock();
  if (was_armed && !next) self.arrival.cancel();
  if (was_armed || !next) return;
  self.arrival.expires_at(*next);
  self.arrival.async_wait([keep = shared_from_this(), this, side](error_code ec) {
    const section s(*this);
    sides[side].is_armed = false;
    if (ec && ec != asio::error::operation_aborted) return fail(ec);
    deliver(side);
  });
} catch (const std::bad_alloc&) {
  const section s(*this);
  sides[side].is_armed = false;
  fail(asio::error::no_memory);
}

simulated_operation::~simulated_operation()
{
  if (!is_listed) return;
  const simulated_connection::section s(*connection);
  unlist(*this);
}

std::pair<simulated_end, simulated_end> simulated_end::connect(wheel_timer_service& wheel,
                                                               const simulated_link& link)
{
  if (link.latency < duration::zero())
    reject("simulated_link::latency is %lldns; it must be 0ns or more", in_ns(link.latency));
  if (link.jitter < duration::zero())
    reject("simulated_link::jitter is %lldns; it must be 0ns or more", in_ns(link.jitter));
  if (link.send_buffer == 0) reject("simulated_link::send_buffer is 0; it must be 1 or more");
  if (!(link.loss >= 0 && link.loss <= 1))
    reject("simulated_link::loss is %.12g; it must be from 0 to 1", link.loss);
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

void simulated_end::cancel() const noexcept
{
  if (!connection_) return;
  const simulated_connection::section s(*connection_);
  connection_->cancel(side_, asio::error::operation_aborted);
}

void simulated_end::close() const noexcept
{
  if (!is_open()) return;
  std::list<simulated_end> left;
  {
    const simulated_connection::section s(*connection_);
    connection_->close(side_);
    left.swap(connection_->peer(side_).ends);
  }
  for (const simulated_end& each : left) {
    each.inject(simulated_fault::reset);
    each.close();
  }
}

void simulated_end::shutdown(asio::socket_base::shutdown_type what, error_code& ec) const noexcept
{
  ec = is_open() ? error_code() : asio::error::bad_descriptor;
  if (ec) return;
  const simulated_connection::section s(*connection_);
  if (connection_->broken) {
    ec = asio::error::not_connected;
    return;
  }
  if (what != asio::socket_base::shutdown_send) connection_->sides[side_].is_deaf = true;
  if (what != asio::socket_base::shutdown_receive) connection_->shut(side_);
}

void simulated_end::inject(simulated_fault fault) const noexcept
{
  if (!connection_) return;
  const simulated_connection::section s(*connection_);
  connection_->inject(side_, fault);
}

void simulated_end::inject_after(any_delay delay, simulated_fault fault) const
{
  if (!is_open()) return;
  const posting_section there(*connection_->core);
  if (!there) return;
  std::unique_lock lock(connection_->mutex);
  std::list<wheel_timer>& all = connection_->timed_faults;
  const auto at = all.emplace(all.end(), wheel_place<>(connection_->wheel), delay);
  lock.unlock();
  at->async_wait([weak = std::weak_ptr(connection_), side = side_, at, fault](error_code ec) {
    const auto self = weak.lock();
    if (!self || ec) return;
    const simulated_connection::section s(*self);
    if (self->is_over()) return;
    self->timed_faults.erase(at);
    self->inject(side, fault);
  });
}

void simulated_end::inject_after_bytes(std::size_t n, simulated_fault fault) const
{
  if (!connection_) return;
  const simulated_connection::section s(*connection_);
  simulated_side& self = connection_->sides[side_];
  n = std::min(n, std::numeric_limits<std::size_t>::max() - self.sent);
  const std::pair planned(self.sent + n, fault);
  const auto is_before = [](const auto& a, const auto& b) { return a.first < b.first; };
  self.faults.insert(std::upper_bound(self.faults.begin(), self.faults.end(), planned, is_before),
                     planned);
  connection_->deliver(side_);
}

void simulated_end::start(simulated_operation& op, read_buffers buffers) noexcept
{
  if (!op.connection) return static_cast<void>(op.timer.cancel());
  const simulated_connection::section s(*op.connection);
  if (op.is_done) return;  // its wait has ended meanwhile, and its buffers may be gone
  op.connection->start(op, op.side, true, buffers.empty());
}

void simulated_end::start(simulated_operation& op, write_buffers buffers) noexcept
{
  if (!op.connection) return static_cast<void>(op.timer.cancel());
  const simulated_connection::section s(*op.connection);
  if (op.is_done) return;  // as above
  op.connection->start(op, op.side, false, buffers.empty());
  // As a socket, takes at once what there is room for.
  const bool is_first = op.connection->sides[op.side].writes.front() == &op;
  if (op.is_done || !is_first || !op.connection->can_write(op.side)) return;
  const auto [ec, n] = op.connection->write(op.side, buffers);
  end(op, ec, n);
}

simulated_end::result simulated_end::finish(simulated_operation& op, error_code ec,
                                            read_buffers buffers) noexcept
{
  if (!op.connection) return {op.error, 0};
  const simulated_connection::section s(*op.connection);
  unlist(op);
  if (std::exchange(op.is_done, true)) return {op.error, op.size};
  if (!op.is_woken) return {ec, 0};
  return op.connection->read(op.side, buffers);
}

simulated_end::result simulated_end::finish(simulated_operation& op, error_code ec,
                                            write_buffers buffers) noexcept
{
  if (!op.connection) return {op.error, 0};
  const simulated_connection::section s(*op.connection);
  unlist(op);
  if (std::exchange(op.is_done, true)) return {op.error, op.size};
  if (!op.is_woken) return {ec, 0};
  return op.connection->write(op.side, buffers);
}

bool simulated_end::bring(const simulated_end& end) const
{
  const simulated_connection::section s(*connection_);
  if (!connection_->sides[side_].is_open) return false;
  connection_->sides[side_].ends.push_back(end);
  const asio::const_buffer byte("", 1);
  return !std::get<0>(connection_->write(side_, {&byte, 1}));
}

error_code simulated_end::accept(simulated_operation& op, error_code ec,
                                 simulated_end& end) noexcept
{
  char byte{};
  const asio::mutable_buffer buffer(&byte, 1);
  const auto [result, n] = finish(op, ec, read_buffers(&buffer, 1));
  if (n == 0) return result;
  const std::lock_guard lock(op.connection->mutex);
  auto& ends = op.connection->peer(op.side).ends;
  end = std::move(ends.front());
  ends.pop_front();
  return result;
}

}  // namespace asio_wheel::detail
