// L2 service: merging what is due in several shards.
#include <asio_wheel/detail/service/due_batch.hpp>

#include <algorithm>
#include <span>

namespace asio_wheel::detail {
namespace {

/// Locks the shards in which something is due.
class due_shards {
public:
  explicit due_shards(const std::vector<shard*>& all) noexcept
  {
    for (shard* const s : all) {
      s->lock();
      if (s->has_due())
        shards_[size_++] = s;
      else
        s->unlock();
    }
  }
  due_shards(const due_shards&) = delete;
  due_shards& operator=(const due_shards&) = delete;
  ~due_shards()
  {
    for (shard* const s : here()) s->unlock();
  }

  /// The one whose next wait comes before those of the others; nullptr if nothing is due.
  [[nodiscard]] shard* first() const noexcept
  {
    if (size_ == 1) return shards_[0]->has_due() ? shards_[0] : nullptr;
    shard* first = nullptr;
    for (shard* const s : here()) {
      const wait_op* const op = s->front_due();
      if (op && (!first || shard::expires_before(*op, *first->front_due()))) first = s;
    }
    return first;
  }

private:
  [[nodiscard]] std::span<shard* const> here() const noexcept { return {shards_.data(), size_}; }

  std::array<shard*, max_shards> shards_;
  std::size_t size_ = 0;
};

}  // namespace

void due_batch::fill(time_point now, tick& renewed) noexcept
{
  next_ = size_ = 0;
  taken_up_ = now;
  const due_shards due(shards_);
  std::size_t popped = 0;
  for (; popped < capacity; ++popped) {
    shard* const first = due.first();
    if (!first) break;
    if (first->pop_due(cells_[size_], now, renewed)) sources_[size_++] = first;
  }
  // Now that the waits are at hand, ask for what they point to.
  for (std::size_t i = 0; i < size_; ++i)
    shard::prefetch_ties(static_cast<const wait_op&>(*cells_[i]));

  was_full_ = popped == capacity;
  burst_ += size_;
  largest_burst_ = std::max(largest_burst_, burst_);
  if (!was_full_) burst_ = 0;
}

}  // namespace asio_wheel::detail
