// L2 service: finding those whose deadlines the pressure has brought near.
#include <asio_wheel/detail/service/pressure.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace asio_wheel::detail {

time_point pressure::set(double p) noexcept
{
  const time_point now = clock_.now();
  const std::lock_guard lock(mutex_);
  const double before = value_.exchange(p, std::memory_order_relaxed);
  if (p <= before || size_ == 0) return time_point::max();
  last_rise_ = now;
  risen_again_ = left_ != 0;
  // The latest look may have been made in a virtual time that is over.
  const time_point when = left_ == 0 && ended_ <= now ? std::max(now, end_of_pause()) : now;
  next_look_.store(std::min(when, next_look()), std::memory_order_seq_cst);
  return when;
}

bool pressure::look() noexcept
{
  const time_point next = next_look();
  if (next == time_point::max() || clock_.now() < next) return false;
  const std::lock_guard lock(mutex_);
  const time_point now = clock_.now();
  if (left_ == 0) {
    left_ = pages_.size() * page_length;
    next_near_ = time_point::max();
  }
  for (std::size_t seen = 0, told = 0; left_ != 0 && seen < most_seen && told < most_told;) {
    left_ -= at_a_time;
    seen += at_a_time;
    page& p = *pages_[left_ / page_length];
    told += look_at({&p[left_ % page_length], at_a_time}, now);
  }
  if (left_ != 0) return true;
  end_look(now);
  return false;
}

/// Tells those of these that are near to follow. Returns how many.
std::size_t pressure::look_at(std::span<const follower> followers, time_point now) noexcept
{
  std::size_t told = 0;
  for (const follower& f : followers) {
    if (!f.owner || !is_near(f, now)) continue;
    f.owner->follow_pressure();
    ++told;
  }
  return told;
}

/// Whether it is near. If not, notes when it will be.
bool pressure::is_near(const follower& f, time_point now) noexcept
{
  const time_point touched = f.touched.load(std::memory_order_relaxed);
  const duration longest = f.longest.load(std::memory_order_relaxed);
  const duration shortest = f.shortest.load(std::memory_order_relaxed);
  const duration timeout = shortened(longest, shortest, value());
  const duration idle = now - touched;
  if (idle >= timeout - timeout / 32) return true;
  const duration left = timeout - timeout / 64 - idle;
  // What is pending may be filed for later than its deadline, unless it has none, or the pressure
  // does not change it, or the longest timeout is over, in which all comes up that was filed under
  // less pressure.
  if (left < next_near_ - now && wheel_clock::add(touched, timeout) != time_point::max() &&
      longest != shortest && now < wheel_clock::add(last_rise_, longest))
    next_near_ = now + left;
  return false;
}

void pressure::end_look(time_point now) noexcept
{
  ended_ = now;
  if (std::exchange(risen_again_, false)) next_near_ = std::min(next_near_, end_of_pause());
  next_look_.store(next_near_, std::memory_order_seq_cst);
}

time_point pressure::end_of_pause() const noexcept
{
  return ended_ + pause * static_cast<duration::rep>(size_);
}

follower& pressure::add(moving_deadline& owner, time_point touched, duration longest,
                        duration shortest)
{
  const std::lock_guard lock(mutex_);
  if (free_.empty()) add_page();
  follower& f = *free_.back();
  free_.pop_back();
  ++size_;
  f.touched.store(touched, std::memory_order_relaxed);
  f.longest.store(longest, std::memory_order_relaxed);
  f.shortest.store(shortest, std::memory_order_relaxed);
  f.owner = &owner;
  return f;
}

void pressure::add_page()
{
  free_.reserve((pages_.size() + 1) * page_length);
  pages_.push_back(std::make_unique<page>());
  // From the back, so that the first is the next to be taken.
  page& added = *pages_.back();
  for (std::size_t i = page_length; i-- > 0;) free_.push_back(&added[i]);
}

void pressure::remove(follower& f) noexcept
{
  const std::lock_guard lock(mutex_);
  f.owner = nullptr;
  free_.push_back(&f);  // for which there is room
  if (--size_ != 0 || pages_.size() == 1) return;
  // Nobody is left: one page is kept to spare.
  pages_.resize(1);
  std::erase_if(free_, [&](const follower* each) {
    const follower* const first = pages_[0]->data();
    return std::less<>()(each, first) || !std::less<>()(each, first + page_length);
  });
  free_.shrink_to_fit();
  left_ = std::min(left_, page_length);
}

}  // namespace asio_wheel::detail
