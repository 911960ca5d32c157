// L3 roof: the buckets of a table of tasks.
#include <asio_wheel/detail/roof/task_table.hpp>

#include <algorithm>
#include <utility>

namespace asio_wheel::detail {

task_table::task_table(task_table&& other) noexcept
  : buckets_(other.buckets_.exchange(nullptr)),
    count_(other.count_.exchange(0)),
    size_(std::exchange(other.size_, 0))
{}

task_table::~task_table()
{
  delete[] buckets_.load();
}

void task_table::insert(key_hash hash, scheduled_task& t) noexcept
{
  put(hash, t);
  ++size_;
}

void task_table::put(key_hash hash, scheduled_task& t) noexcept
{
  for (std::size_t i = index(hash, count());; i = after(i)) {
    bucket& b = at(i);
    const auto place = std::ranges::find(b.tasks, nullptr);
    if (place != b.tasks.end()) {
      *place = &t;
      b.hashes[static_cast<std::size_t>(place - b.tasks.begin())] = hash;
      return;
    }
    ++b.passed;
  }
}

void task_table::erase(key_hash hash, scheduled_task& t) noexcept
{
  for (std::size_t i = index(hash, count());; i = after(i)) {
    bucket& b = at(i);
    const auto place = std::ranges::find(b.tasks, &t);
    if (place != b.tasks.end()) {
      *place = nullptr;
      break;
    }
    --b.passed;
  }
  --size_;
}

void task_table::grow()
{
  task_table larger;
  larger.count_ = std::max<std::size_t>(2 * count(), 1);
  larger.buckets_ = new bucket[larger.count()]();
  for (std::size_t i = 0; i != count(); ++i) {
    const bucket& b = at(i);
    for (std::size_t k = 0; k != b.tasks.size(); ++k)
      if (b.tasks[k]) larger.put(b.hashes[k], *b.tasks[k]);
  }
  // The old buckets go with `larger`.
  larger.buckets_ = buckets_.exchange(larger.buckets_);
  count_.store(larger.count());
}

}  // namespace asio_wheel::detail
