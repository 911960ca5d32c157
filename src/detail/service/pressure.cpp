// L2 service: finding those whose deadlines the pressure has brought near.
#include <asio_wheel/detail/service/pressure.hpp>

#include <bit>
#include <cstdint>
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
  next_look_.store(std::min(when, next_look_.load()), std::memory_order_seq_cst);
  return when;
}

time_point pressure::look() noexcept
{
  const time_point next = next_look_;
  if (next == time_point::max() || clock_.now() < next) return next;
  const std::lock_guard lock(mutex_);
  const time_point now = clock_.now();
  if (left_ == 0) {
    left_ = pages_.size();
    next_near_ = time_point::max();
  }
  for (std::size_t seen = 0, told = 0; left_ != 0 && seen < most_seen && told < most_told;) {
    --left_;
    seen += page_length;
    told += look_at(*pages_[left_], now);
  }
  if (left_ != 0) return at_once;
  end_look(now);
  return next_look_;
}

/// Tells those of a page that are near to follow. Returns how many.
std::size_t pressure::look_at(const page& p, time_point now) noexcept
{
  std::size_t told = 0;
  for (std::size_t w = 0; w != p.used.size(); ++w) {
    for (std::uint64_t bits = p.used[w]; bits != 0; bits &= bits - 1) {
      const follower& f = p.followers[w * word + static_cast<std::size_t>(std::countr_zero(bits))];
      if (!is_near(f, now)) continue;
      f.owner->follow_pressure();
      ++told;
    }
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
  if (clock_.is_stopped()) return ended_;  // a pause would not end
  return ended_ + pause * static_cast<duration::rep>(size_);
}

bool pressure::page::is_full() const noexcept
{
  constexpr std::uint64_t all = (std::uint64_t{1} << word) - 1;
  return used[0] == all && used[1] == all;
}

follower& pressure::add(moving_deadline& owner, time_point touched, duration longest,
                        duration shortest)
{
  const std::lock_guard lock(mutex_);
  if (with_room_.empty()) add_page();
  page& p = *with_room_.front();
  auto at = static_cast<std::size_t>(std::countr_one(p.used[0]));
  if (at == word) at += static_cast<std::size_t>(std::countr_one(p.used[1]));
  p.used[at / word] |= std::uint64_t{1} << at % word;
  if (p.is_full()) with_room_.erase(p);
  ++size_;
  follower& f = p.followers[at];
  f.touched.store(touched, std::memory_order_relaxed);
  f.longest.store(longest, std::memory_order_relaxed);
  f.shortest.store(shortest, std::memory_order_relaxed);
  f.owner = &owner;
  return f;
}

void pressure::remove(follower& f) noexcept
{
  const std::lock_guard lock(mutex_);
  page& p = *reinterpret_cast<page*>(reinterpret_cast<std::uintptr_t>(&f) / page_size * page_size);
  const auto at = static_cast<std::size_t>(&f - p.followers.data());
  if (p.is_full()) with_room_.push_front(p);
  p.used[at / word] &= ~(std::uint64_t{1} << at % word);
  --size_;
  if (p.is_empty() && !with_room_.only()) remove_page(p);  // one page is kept to spare
}

void pressure::add_page()
{
  pages_.push_back(std::make_unique<page>());
  pages_.back()->place = pages_.size() - 1;
  with_room_.push_front(*pages_.back());
}

void pressure::remove_page(page& p) noexcept
{
  with_room_.erase(p);
  // A look comes from behind, so that whichever takes the place has been seen, or will be.
  std::unique_ptr<page>& place = pages_[p.place];
  pages_.back()->place = p.place;
  std::swap(place, pages_.back());
  pages_.pop_back();
  left_ = std::min(left_, pages_.size());
}

}  // namespace asio_wheel::detail
