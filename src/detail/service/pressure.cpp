// L2 service: finding those whose deadlines the pressure has brought near.
#include <asio_wheel/detail/service/pressure.hpp>

#include <asio_wheel/detail/ground/prefetch.hpp>

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
    left_ = size_;
    next_near_ = time_point::max();
  }
  for (std::size_t seen = 0, told = 0; left_ != 0 && seen < most_seen && told < most_told;) {
    const std::size_t n = (left_ - 1) % at_a_time + 1;
    left_ -= n;
    seen += n;
    told += look_at({&at(left_), n}, now);
  }
  if (left_ != 0) return true;
  end_look(now);
  return false;
}

/// Tells those of these that are near to follow. Returns how many.
std::size_t pressure::look_at(std::span<const follower> followers, time_point now) noexcept
{
  // What the look comes to next is on its way from memory meanwhile: bases a group ahead, and the
  // followers that lead to them two groups ahead.
  const auto ahead = [&](std::size_t groups) {
    return left_ < groups * at_a_time ? followers.data() : &at(left_ - groups * at_a_time);
  };
  const follower* next = ahead(1);
  const follower* next_but_one = ahead(2);
  const double p = value();
  std::size_t told = 0;
  for (const follower& f : followers) {
    prefetch(next_but_one++);
    prefetch((next++)->base);
    if (!is_near(f, shortened(f.longest, f.shortest, p), now)) continue;
    f.who->follow();
    ++told;
  }
  return told;
}

bool pressure::is_near(const follower& f, duration timeout, time_point now) noexcept
{
  const time_point base = f.base->load(std::memory_order_relaxed);
  const duration idle = now - base;
  if (idle >= timeout - timeout / 32) return true;
  const duration left = timeout - timeout / 64 - idle;
  if (left < next_near_ - now && wheel_clock::add(base, timeout) != time_point::max() &&
      is_affected(f, now))
    next_near_ = now + left;
  return false;
}

/// Whether what is pending may be filed for later than its deadline: not if the pressure does not
/// change it, nor after the longest timeout, in which all comes up that was filed under less
/// pressure.
bool pressure::is_affected(const follower& f, time_point now) const noexcept
{
  return f.longest != f.shortest && now < wheel_clock::add(last_rise_, f.longest);
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

void pressure::add(under_pressure& u, const std::atomic<time_point>& base, duration longest,
                   duration shortest)
{
  const std::lock_guard lock(mutex_);
  if (size_ == pages_.size() * page_length) pages_.push_back(std::make_unique<page>());
  u.place_ = size_++;
  at(u.place_) = {&base, longest, shortest, &u};
}

void pressure::remove(under_pressure& u) noexcept
{
  const std::lock_guard lock(mutex_);
  // A look comes from behind, so that whoever takes the place has been seen, or will be.
  follower& last = at(--size_);
  last.who->place_ = u.place_;
  at(u.place_) = last;
  left_ = std::min(left_, size_);
  // One page is kept to spare.
  if (pages_.size() > size_ / page_length + 2) pages_.pop_back();
}

void pressure::change(under_pressure& u, duration longest, duration shortest) noexcept
{
  const std::lock_guard lock(mutex_);
  at(u.place_).longest = longest;
  at(u.place_).shortest = shortest;
}

}  // namespace asio_wheel::detail
