// L2 service: merging what is due in several shards.
#include <asio_wheel/detail/service/due_batch.hpp>

#include <algorithm>
#include <bit>

namespace asio_wheel::detail {
namespace {

/// The shards in which something is due; the one whose wait comes first is at the front of a heap.
/// All of them are locked until this goes.
class due_shards {
public:
  due_shards(const std::vector<shard*>& all, std::uint64_t bits) noexcept : all_(all), locked_(bits)
  {
    for (; bits != 0; bits &= bits - 1) {
      shard& s = first_of(bits);
      s.lock();
      push({s.front_due(), &s, bits & (~bits + 1)});
    }
  }
  due_shards(const due_shards&) = delete;
  due_shards& operator=(const due_shards&) = delete;
  ~due_shards()
  {
    for (; locked_ != 0; locked_ &= locked_ - 1) first_of(locked_).unlock();
  }

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] shard& first() const noexcept { return *heap_[0].at; }

  /// The first one's next wait has been taken.
  void update_first() noexcept
  {
    if (size_ == 1 && first().has_due()) return;  // the only one
    source s = heap_[0];
    std::pop_heap(heap_.data(), end(), comes_later);
    --size_;
    s.front = s.at->front_due();
    push(s);
  }

  /// The bits of those in which something is still due.
  [[nodiscard]] std::uint64_t bits() const noexcept
  {
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < size_; ++i) all |= heap_[i].bit;
    return all;
  }

private:
  struct source {
    const wait_op* front;
    shard* at;
    std::uint64_t bit;
  };

  static bool comes_later(const source& a, const source& b) noexcept
  {
    return shard::expires_before(*b.front, *a.front);
  }

  [[nodiscard]] shard& first_of(std::uint64_t bits) const noexcept
  {
    return *all_[static_cast<std::size_t>(std::countr_zero(bits))];
  }

  [[nodiscard]] source* end() noexcept { return heap_.data() + size_; }

  void push(const source& s) noexcept
  {
    if (!s.front) return;
    heap_[size_++] = s;
    if (size_ > 1) std::push_heap(heap_.data(), end(), comes_later);
  }

  const std::vector<shard*>& all_;
  std::uint64_t locked_;
  std::array<source, max_shards> heap_;
  std::size_t size_ = 0;
};

}  // namespace

void due_batch::fill(time_point now, tick& renewed) noexcept
{
  next_ = size_ = 0;
  taken_up_ = now;
  due_shards due(shards_, sources_left_);
  for (std::size_t popped = 0; popped < capacity && !due.empty(); ++popped) {
    shard& first = due.first();
    if (first.pop_due(cells_[size_], now, renewed)) sources_[size_++] = &first;
    due.update_first();
  }
  sources_left_ = due.bits();
  // Now that the waits are at hand, ask for what they point to.
  for (std::size_t i = 0; i < size_; ++i)
    shard::prefetch_ties(static_cast<const wait_op&>(*cells_[i]));

  burst_ += size_;
  largest_burst_ = std::max(largest_burst_, burst_);
  if (sources_left_ == 0) burst_ = 0;
}

}  // namespace asio_wheel::detail
