// L2 service: which shard a thread's waits go to, and whose wait is due next.
#include "home.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace asio_wheel::detail {
namespace {

constinit std::atomic<std::ptrdiff_t> numbered_threads{0};

/// This thread's number among those that start waits; negative until it starts the first.
constinit thread_local std::ptrdiff_t this_number = -1;

std::ptrdiff_t this_thread_number() noexcept
{
  if (this_number < 0) this_number = numbered_threads++;
  return this_number;
}

wheel_geometry geometry_of(const wheel_options& options)
{
  const auto slot_bits = static_cast<unsigned>(std::countr_zero(options.slots));
  // A quarter of a level's slots make one slot of the next: its cascades stay small, and a level
  // has room to spare for what it cannot hand down yet.
  return {.slot_bits = slot_bits, .fan_bits = slot_bits > 2 ? slot_bits - 2 : 1};
}

}  // namespace

homes::homes(wheel_core& c, const wheel_options& options, const wheel_clock& clock)
  : core_(c),
    geometry_(geometry_of(options)),
    clock_(clock),
    mask_(std::numeric_limits<std::ptrdiff_t>::min() |
          static_cast<std::ptrdiff_t>(options.shards - 1))
{
  make(static_cast<std::size_t>(this_thread_number() & mask_));
}

homes::~homes()
{
  for (home* h = latest(); h;) delete std::exchange(h, h->older);
}

home& homes::local() noexcept
{
  const auto number = static_cast<std::size_t>(this_thread_number() & mask_);
  home* const h = of_number_[number].load(std::memory_order_acquire);
  return h ? *h : make_or_share(number);
}

home& homes::make_or_share(std::size_t number) noexcept
{
  try {
    return make(number);
  } catch (const std::bad_alloc&) {
    has_strays_ = true;
    return *latest();
  }
}

void homes::note_start(const home& h) noexcept
{
  if (static_cast<std::size_t>(this_number & mask_) != h.number && !has_strays())
    has_strays_ = true;
}

home& homes::make(std::size_t number)
{
  auto made = std::make_unique<home>(core_, number, geometry_, clock_);
  const std::lock_guard lock(making_);
  if (home* const other = of_number_[number]) return *other;
  if (closed_) made->close();
  made->older = latest_;
  home* const h = made.release();
  latest_ = h;  // before any thread can start a wait there
  of_number_[number].store(h, std::memory_order_release);
  return *h;
}

home* homes::latest() const noexcept
{
  return latest_.load(std::memory_order_seq_cst);
}

home& homes::operator[](std::size_t number) const noexcept
{
  return *of_number_[number].load(std::memory_order_acquire);
}

void homes::close() noexcept
{
  const std::lock_guard lock(making_);
  closed_ = true;
}

void homes::lock() noexcept
{
  making_.lock();
  for (home* h = latest(); h; h = h->older) h->lock();
}

void homes::unlock() noexcept
{
  for (home* h = latest(); h; h = h->older) h->unlock();
  making_.unlock();
}

bool due_shards::empty() const noexcept
{
  return size_ == 0;
}

void due_shards::add(home& h) noexcept
{
  const std::uint64_t bit = std::uint64_t{1} << h.number;
  if ((is_here_ & bit) != 0) return;
  is_here_ |= bit;
  heap_[size_++] = {{}, &h};
  if (size_ > 1) std::push_heap(heap_.data(), heap_.data() + size_, comes_later);
}

home* due_shards::lock_first() noexcept
{
  while (size_ != 0) {
    home& h = *heap_[0].at;
    h.lock();
    h.settle();  // what is cancelled does not take its shard ahead of others
    if (!h.has_due()) {
      drop_first();
    } else {
      if (size_ == 1) return &h;
      source now{h.first_due(), &h};
      if (!homes_.has_strays()) now.first.stamp = 0;  // by tick alone; not after its first wait
      if (!comes_later(now, heap_[1]) && (size_ == 2 || !comes_later(now, heap_[2]))) return &h;
      std::pop_heap(heap_.data(), heap_.data() + size_, comes_later);
      heap_[size_ - 1] = now;
      std::push_heap(heap_.data(), heap_.data() + size_, comes_later);
    }
    h.unlock();
  }
  return nullptr;
}

void due_shards::drop_first() noexcept
{
  if (size_ > 1) std::pop_heap(heap_.data(), heap_.data() + size_, comes_later);
  is_here_ &= ~(std::uint64_t{1} << heap_[--size_].at->number);
}

void due_shards::rewound() noexcept
{
  for (std::size_t i = 0; i < size_; ++i) heap_[i].first = {};
}

}  // namespace asio_wheel::detail
