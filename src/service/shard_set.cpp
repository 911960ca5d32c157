// L2 service: starting, expiring and ending waits across shards.
#include <asio_wheel/service/shard_set.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/container/static_vector.hpp>

#include <algorithm>
#include <bit>
#include <mutex>

namespace asio_wheel {
namespace {

struct thread_state {
  std::size_t number = 0;  ///< counts the threads that ever started a wait, from 1
  std::uint64_t stamp = 0;
};

constinit thread_local thread_state this_thread;

std::size_t this_thread_number() noexcept
{
  static constinit std::atomic<std::size_t> threads{0};
  if (this_thread.number == 0) this_thread.number = ++threads;
  return this_thread.number;
}

/// Counts in how many threads there is one.
class completion_in_progress {
public:
  explicit completion_in_progress(std::atomic<int>& count) noexcept : count_(count) { ++count_; }
  completion_in_progress(const completion_in_progress&) = delete;
  completion_in_progress& operator=(const completion_in_progress&) = delete;
  ~completion_in_progress() { --count_; }

private:
  std::atomic<int>& count_;
};

wheel_geometry geometry_of(const wheel_options& options)
{
  const auto slot_bits = static_cast<unsigned>(std::countr_zero(options.slots));
  // A quarter of a level's slots make one slot of the next: its cascades stay small, and a level
  // has room to spare for what it cannot hand down yet.
  return {.slot_bits = slot_bits, .fan_bits = slot_bits > 2 ? slot_bits - 2 : 1};
}

}  // namespace

std::uint64_t& this_thread_stamp() noexcept
{
  return this_thread.stamp;
}

shard_set::shard_set(const asio::any_io_executor& ex, const wheel_options& options)
  : options_(resolve(options)),
    executor_(ex),
    native_(ex),
    clock_(options_.clock, options_.tick)
{
  shards_.reserve(options_.shards);
  for (std::size_t i = 0; i < options_.shards; ++i)
    shards_.push_back(std::make_unique<shard>(*this, geometry_of(options_)));
}

shard_set::~shard_set() = default;

shard& shard_set::local() noexcept
{
  return *shards_[this_thread_number() & (shards_.size() - 1)];
}

void shard_set::start(wait_op& op, duration delay)
{
  start(op, clock_.tick_for(clock_.deadline_after(delay), delay));
}

void shard_set::start(wait_op& op, time_point deadline)
{
  start(op, clock_.tick_for(deadline));
}

void shard_set::start(wait_op& op, tick when)
{
  prepare(when);
  {
    shard& s = local();
    shard_section section(s);
    if (!file(s, section, op, when)) return;
  }
  confirm(when);
}

bool shard_set::file(shard& s, shard_section& section, wait_op& op, tick when)
{
  if (s.is_closed()) {
    section.destroy(op);
    return false;
  }
  if (options_.max_pending != 0) {
    if (pending_.fetch_add(1, std::memory_order_relaxed) >= options_.max_pending) {
      pending_.fetch_sub(1, std::memory_order_relaxed);
      section.reject(op);
      return false;
    }
  }
  try {
    s.file(op, when);
  } catch (...) {
    count_ended(1);
    throw;
  }
  return true;
}

void shard_set::outlook::add(const shard& s) noexcept
{
  expired |= s.has_expired();
  idle &= s.idle();
  ending |= s.is_ending_waits();
  next = std::min(next, s.next_tick());
}

shard_set::outlook shard_set::advance_shards(tick now) noexcept
{
  outlook all;
  for (const auto& s : shards_) {
    const std::lock_guard lock(*s);
    s->advance(now);
    all.add(*s);
  }
  return all;
}

shard_set::outlook shard_set::look_ahead() noexcept
{
  outlook all;
  for (const auto& s : shards_) {
    const std::lock_guard lock(*s);
    s->settle();
    all.add(*s);
  }
  return all;
}

std::optional<tick> shard_set::advance()
{
  outlook all;
  {
    const std::lock_guard lock(advance_mutex_);
    all = advance_shards(clock_.tick_floor(clock_.now()));
  }
  if (all.expired) post_expired();
  if (!all.idle) return all.next;
  // A thread that the context does not run may have cancelled a wait and not have posted its
  // completion yet. Until it has, passes are what keeps the context from running out of work.
  if (driver* d = driver_; d && all.ending) d->insist();
  return std::nullopt;
}

bool shard_set::stop_clock() noexcept
{
  {
    const std::lock_guard lock(advance_mutex_);
    if (clock_.is_stopped()) return false;
    clock_.stop_at(clock_.now());
  }
  rest_clock();
  return true;
}

bool shard_set::step_clock(time_point limit) noexcept
{
  // What has expired comes first, and what its handlers start may be due next.
  if (expired_posted_ || completions_ != 0) return true;
  {
    const std::lock_guard lock(advance_mutex_);
    // More than once if a slot is to be cascaded.
    for (outlook all = look_ahead(); !all.expired; all = advance_shards(all.next)) {
      const time_point next = clock_.time_of(all.next);
      if (next > limit || next == time_point::max()) return false;
      clock_.stop_at(std::max(clock_.now(), next));
    }
  }
  post_expired();
  return true;
}

void shard_set::rest_clock() noexcept
{
  if (driver* d = driver_) d->insist();
}

void shard_set::start_clock() noexcept
{
  {
    const std::lock_guard lock(advance_mutex_);
    // The wheels first: a wait that another thread starts meanwhile may be late, but not early.
    const tick present = clock_.tick_floor(wheel_clock::running_now());
    for (const auto& s : shards_) {
      const std::lock_guard shard_lock(*s);
      s->rewind(present);
    }
    clock_.run();
  }
  rest_clock();
}

void shard_set::post_expired() noexcept
{
  if (expired_posted_.exchange(true)) return;
  try {
    native_.post(asio::bind_allocator(task_allocator<std::byte>(expired_memory_),
                                      [this] { complete_expired(); }));
  } catch (...) {
    // As in shard::post_ready. The next pass tries again.
    expired_posted_ = false;
  }
}

void shard_set::complete_expired()
{
  const completion_in_progress here(completions_);
  expired_posted_ = false;
  batch waits;
  tick renewed = no_tick;
  // Ahead of the handlers, so that another thread can take its share.
  if (take_expired(waits, renewed)) post_expired();
  if (renewed != no_tick) confirm(renewed);

  waits.complete([this](wait_queue& rest) {
    {
      const std::lock_guard lock(expired_mutex_);
      unfinished_.splice_front(rest);
    }
    post_expired();
  });
}

/// Fills `waits` with the first that expired, across all shards. Whether there are more.
/// `renewed`: the earliest tick of those that were filed again instead.
bool shard_set::take_expired(batch& waits, tick& renewed)
{
  const time_point now = clock_.now();
  const std::lock_guard lock(expired_mutex_);
  while (!waits.full() && !unfinished_.empty())
    waits.push(static_cast<wait_op&>(*unfinished_.pop_front()));

  const std::size_t unfinished = waits.size();
  boost::container::static_vector<std::unique_lock<shard>, max_shards> sources;
  for (const auto& s : shards_) {
    std::unique_lock source(*s);
    if (s->has_expired()) sources.push_back(std::move(source));
  }
  std::size_t popped = unfinished;
  for (; popped < batch::capacity; ++popped) {
    shard* first = nullptr;
    for (const auto& source : sources) {
      shard& s = *source.mutex();
      wait_op* op = s.front_expired();
      if (op && (!first || shard::expires_before(*op, *first->front_expired()))) first = &s;
    }
    if (!first) break;
    if (wait_op* op = first->pop_expired(now, renewed)) waits.push(*op);
  }
  // In a second round, so that the timers they belong to can be prefetched.
  constexpr std::size_t ahead = 8;
  for (std::size_t i = unfinished; i < waits.size(); ++i) {
    if (i + ahead < waits.size()) shard::prefetch_ties(waits[i + ahead]);
    shard::expire(waits[i]);
  }
  count_ended(waits.size() - unfinished);

  burst_ += waits.size() - unfinished;
  largest_burst_ = std::max(largest_burst_, burst_);
  const bool more = popped == batch::capacity;
  if (!more) burst_ = 0;
  return more;
}

std::size_t shard_set::cancel_all()
{
  // In pieces, so that no lock is held for long.
  constexpr int piece = 256;
  std::size_t n = 0;
  for (const auto& s : shards_) {
    for (bool more = true; more;) {
      shard_section section(*s);
      for (int i = 0; i < piece && more; ++i) {
        wait_op* op = s->front();
        more = op != nullptr;
        if (more) {
          section.cancel(*op);
          ++n;
        }
      }
      if (!more) s->end_renewals();
    }
  }
  return n;
}

std::size_t shard_set::pending() const noexcept
{
  std::uint64_t n = 0;
  for (const auto& s : shards_) {
    const std::lock_guard lock(*s);
    n += s->pending();
  }
  return n;
}

wheel_stats shard_set::stats() const noexcept
{
  wheel_stats stats;
  for (const auto& s : shards_) {
    const std::lock_guard lock(*s);
    s->add_to(stats);
  }
  if (driver* d = driver_) stats.wakeups = d->wakeups();
  const std::lock_guard lock(expired_mutex_);
  stats.largest_batch = largest_burst_;
  return stats;
}

void shard_set::close() noexcept
{
  driver_ = nullptr;
  wait_queue all;
  for (const auto& s : shards_) {
    const std::lock_guard lock(*s);
    s->close(all);
  }
  {
    const std::lock_guard lock(expired_mutex_);
    all.splice_front(unfinished_);
  }
  // Handlers may own timers and start waits as they go; they find the shards closed.
  while (wheel_entry* e = all.pop_front())
    static_cast<wait_op&>(*e).complete(wait_outcome::destroyed);
}

}  // namespace asio_wheel
