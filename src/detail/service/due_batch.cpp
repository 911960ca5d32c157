// L2 service: merging what is due in several shards.
#include <asio_wheel/detail/service/due_batch.hpp>

#include <algorithm>
#include <mutex>

namespace asio_wheel::detail {

void due_batch::add_source(shard& s, std::size_t number) noexcept
{
  const std::uint64_t bit = std::uint64_t{1} << number;
  if ((is_source_ & bit) != 0) return;
  is_source_ |= bit;
  push({{}, &s, number});
}

void due_batch::push(const source& s) noexcept
{
  sources_[sources_size_++] = s;
  std::push_heap(sources_.data(), sources_.data() + sources_size_, comes_later);
}

due_batch::source due_batch::pop() noexcept
{
  std::pop_heap(sources_.data(), sources_.data() + sources_size_, comes_later);
  return sources_[--sources_size_];
}

void due_batch::fill(time_point now, tick& renewed) noexcept
{
  next_ = size_ = 0;
  taken_up_ = now;
  std::size_t room = capacity;
  while (room != 0 && sources_size_ != 0) {
    source s = pop();
    if (take_run(s, room, renewed))
      push(s);
    else
      is_source_ &= ~(std::uint64_t{1} << s.number);
  }
  burst_ += size_;
  largest_burst_ = std::max(largest_burst_, burst_);
  if (sources_size_ == 0) burst_ = 0;
}

/// Takes the waits of a shard that come before those of all others. Whether it has more.
bool due_batch::take_run(source& s, std::size_t& room, tick& renewed) noexcept
{
  shard& at = *s.at;
  const std::size_t begin = size_;
  const std::lock_guard lock(at);
  for (; room != 0 && at.has_due(); --room) {
    if (sources_size_ != 0) {
      s.first = at.first_due();
      if (sources_[0].first < s.first) break;
    }
    if (at.pop_due(cells_[size_], taken_up_, renewed)) shards_[size_++] = &at;
  }
  // Now that the waits are at hand, ask for what they point to.
  for (std::size_t i = begin; i < size_; ++i)
    shard::prefetch_ties(static_cast<const wait_op&>(*cells_[i]));
  return at.has_due();
}

}  // namespace asio_wheel::detail
