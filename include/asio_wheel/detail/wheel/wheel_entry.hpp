// L1 wheel: what is filed in a timing_wheel: the tick, the entry, and the list for entries that are
// not filed.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace asio_wheel::detail {

/// A point on the wheel's own time line, counted in ticks since the wheel was made.
///
/// A strong type: it only orders and compares. Only `wheel_clock`, one floor up, knows how long a
/// tick lasts.
enum class tick : std::uint64_t {};

[[nodiscard]] constexpr std::uint64_t count(tick t) noexcept
{
  return static_cast<std::uint64_t>(t);
}

/// In place of the present tick, where it is not known.
inline constexpr tick at_once{};

/// The tick of a wait that never expires.
inline constexpr tick never{std::numeric_limits<std::uint64_t>::max() - 1};

/// After all ticks: in place of the tick of an entry that was overdue when it was filed.
inline constexpr tick overdue{count(never) + 1};

/// Adds without wrapping: a sum beyond the last tick is `never`.
[[nodiscard]] constexpr tick operator+(tick t, std::uint64_t n) noexcept
{
  return n < count(never) - count(t) ? tick{count(t) + n} : never;
}

/// A tick or none, as std::optional<tick>, but in one register. None is later than any tick.
class maybe_tick {
public:
  constexpr maybe_tick() noexcept = default;
  constexpr maybe_tick(tick t) noexcept : tick_(t) {}

  [[nodiscard]] explicit constexpr operator bool() const noexcept { return tick_ != none; }
  [[nodiscard]] constexpr tick operator*() const noexcept { return tick_; }

  friend constexpr bool operator==(maybe_tick, maybe_tick) noexcept = default;
  friend constexpr auto operator<=>(maybe_tick, maybe_tick) noexcept = default;

private:
  static constexpr tick none{count(never) + 1};

  tick tick_ = none;
};

/// The two links that an object in an `intrusive_list` carries.
struct list_link {
  list_link* next;
  list_link* prev;
};

/// A circular list. The list itself stands between the last object and the first, so an object can
/// be erased without its list.
///
/// `Node::link_of(node)` and `Node::of_link(link)` convert between an object and its link. The list
/// owns nothing. All functions are O(1) except for_each(), and none throws.
template <class Node>
class intrusive_list {
public:
  intrusive_list() noexcept = default;
  intrusive_list(const intrusive_list&) = delete;
  intrusive_list& operator=(const intrusive_list&) = delete;

  [[nodiscard]] bool empty() const noexcept { return end_.next == &end_; }
  /// The first object; nullptr if the list is empty.
  [[nodiscard]] Node* front() noexcept { return empty() ? nullptr : &Node::of_link(*end_.next); }

  /// The only object; nullptr if there is none, or more than one.
  [[nodiscard]] Node* only() noexcept
  {
    const bool has_one = end_.next == end_.prev && end_.next != &end_;
    return has_one ? &Node::of_link(*end_.next) : nullptr;
  }

  void push_back(Node& node) noexcept
  {
    list_link& link = Node::link_of(node);
    link = {&end_, end_.prev};
    end_.prev->next = &link;
    end_.prev = &link;
  }

  /// Removes an object from its list.
  static void erase(Node& node) noexcept
  {
    list_link& link = Node::link_of(node);
    link.prev->next = link.next;
    link.next->prev = link.prev;
  }

  /// Removes the first object and returns it; nullptr if the list is empty.
  [[nodiscard]] Node* pop_front() noexcept
  {
    if (empty()) return nullptr;
    Node& node = Node::of_link(*end_.next);
    erase(node);
    return &node;
  }

  /// Calls `f(node)` for each object. `f` must not remove any.
  template <class Function>
  void for_each(Function f) const
  {
    for (list_link* link = end_.next; link != &end_; link = link->next) f(Node::of_link(*link));
  }

  /// Empties the list without touching the objects.
  void clear() noexcept { end_ = {&end_, &end_}; }

  /// Appends all objects of `other`, which is then empty.
  void splice_back(intrusive_list& other) noexcept
  {
    if (other.empty()) return;
    other.end_.next->prev = end_.prev;
    other.end_.prev->next = &end_;
    end_.prev->next = other.end_.next;
    end_.prev = other.end_.prev;
    other.clear();
  }

private:
  list_link end_{&end_, &end_};
};

/// Base of whatever is filed in a `timing_wheel`.
///
/// A filed entry knows its cell, and the cell's chunk knows the slot: `erase` needs no more. An
/// entry that is not filed uses the same two words as the links of a list.
class wheel_entry {
public:
  wheel_entry() = default;  // filing sets the place
  wheel_entry(const wheel_entry&) = delete;
  wheel_entry& operator=(const wheel_entry&) = delete;

  /// The tick that the entry was filed under. Linking the entry into a list overwrites it.
  [[nodiscard]] tick due() const noexcept { return at_.due; }

  /// The cell of a filed entry, for prefetching.
  [[nodiscard]] const void* cell() const noexcept { return at_.cell; }

protected:
  friend class timing_wheel;

  struct place {
    wheel_entry** cell;
    tick due;
  };
  union {
    place at_;
    list_link link_;  ///< for an intrusive_list, while the entry is not filed
  };
};
static_assert(std::is_standard_layout_v<wheel_entry>);  // a link is where its entry is

}  // namespace asio_wheel::detail
