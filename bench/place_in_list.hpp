// The least a deadline consists of, besides a reading of the clock: a place in a list that a lock
// guards.
#pragma once

#include <asio_wheel/detail/wheel/wheel_entry.hpp>
#include <detail/base/locks.hpp>

#include <chrono>
#include <mutex>

namespace bench {

struct place_in_list : asio_wheel::detail::list_link {
  static list_link& link_of(place_in_list& p) noexcept { return p; }
  static place_in_list& of_link(list_link& l) noexcept { return static_cast<place_in_list&>(l); }

  std::chrono::nanoseconds when{};
};

class list_of_places {
public:
  void take(place_in_list& p)
  {
    const std::lock_guard lock{mutex_};
    places_.push_back(p);
  }
  void leave(place_in_list& p)
  {
    const std::lock_guard lock{mutex_};
    list::erase(p);
  }

private:
  using list = asio_wheel::detail::intrusive_list<place_in_list>;

  asio_wheel::detail::spin_lock mutex_;
  list places_;
};

}  // namespace bench
