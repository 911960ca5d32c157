// L2 engine: finds or makes the shard of a thread.
#include "shard_table.hpp"

#include <bit>
#include <limits>
#include <memory>
#include <new>
#include <utility>

namespace asio_wheel::detail {
namespace {

constinit std::atomic<std::ptrdiff_t> numbered_threads{0};

/// This thread's number among threads that start waits; negative until its first start.
constinit thread_local std::ptrdiff_t this_number = -1;

std::ptrdiff_t this_thread_number() noexcept
{
  if (this_number < 0) this_number = numbered_threads++;
  return this_number;
}

wheel_geometry geometry_of(const wheel_options& options)
{
  const auto slot_bits = static_cast<unsigned>(std::countr_zero(options.slots));
  // A quarter of a level's slots make one slot of the next level: cascades stay small, and a level
  // has spare slots for entries that it cannot hand down yet.
  return {.slot_bits = slot_bits, .fan_bits = slot_bits > 2 ? slot_bits - 2 : 1};
}

}  // namespace

shard_table::shard_table(wheel_core& c, const wheel_options& options, const wheel_clock& clock)
  : core_(c),
    geometry_(geometry_of(options)),
    clock_(clock),
    mask_(std::numeric_limits<std::ptrdiff_t>::min() |
          static_cast<std::ptrdiff_t>(options.shards - 1))
{
  make(static_cast<std::size_t>(this_thread_number() & mask_));
}

shard_table::~shard_table()
{
  for (shard* sh = latest_; sh;) delete std::exchange(sh, sh->older);
}

shard& shard_table::local() noexcept
{
  const auto number = static_cast<std::size_t>(this_thread_number() & mask_);
  shard* const sh = of_number_[number].load(std::memory_order_acquire);
  return sh ? *sh : make_or_share(number);
}

shard& shard_table::make_or_share(std::size_t number) noexcept
{
  try {
    return make(number);
  } catch (const std::bad_alloc&) {
    has_strays_ = true;
    return *latest_;
  }
}

void shard_table::note_start(const shard& sh) noexcept
{
  if (static_cast<std::size_t>(this_number & mask_) != sh.number && !has_strays())
    has_strays_ = true;
}

shard& shard_table::make(std::size_t number)
{
  auto made = std::make_unique<shard>(core_, number, geometry_, clock_);
  const locked lock(making_);
  if (shard* const other = of_number_[number]) return *other;
  if (closed_) {
    const locked alone(*made);
    made->close();
  }
  made->older = latest_;
  shard* const sh = made.release();
  latest_ = sh;  // before any thread can start a wait there
  of_number_[number].store(sh, std::memory_order_release);
  return *sh;
}

shard& shard_table::operator[](std::size_t number) const noexcept
{
  return *of_number_[number].load(std::memory_order_acquire);
}

void shard_table::close() noexcept
{
  const locked lock(making_);
  closed_ = true;
}

void shard_table::lock() noexcept
{
  making_.lock();
  for (shard& sh : *this) sh.lock();
}

void shard_table::unlock() noexcept
{
  for (shard& sh : *this) sh.unlock();
  making_.unlock();
}

}  // namespace asio_wheel::detail
