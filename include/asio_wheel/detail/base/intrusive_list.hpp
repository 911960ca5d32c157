// L0 base: a doubly linked list of objects that carry their own links.
#pragma once

namespace asio_wheel::detail {

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

  void push_back(Node& node) noexcept { insert_before(end_, Node::link_of(node)); }
  void push_front(Node& node) noexcept { insert_before(*end_.next, Node::link_of(node)); }

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
  static void insert_before(list_link& place, list_link& link) noexcept
  {
    link = {&place, place.prev};
    place.prev->next = &link;
    place.prev = &link;
  }

  list_link end_{&end_, &end_};
};

}  // namespace asio_wheel::detail
