// L0 ground: a first-in, first-out queue of objects that carry their own link.
#pragma once

#include <utility>

namespace asio_wheel {

/// A singly linked queue. `Link` is a policy with `static Node*& next(Node&)`.
///
/// It owns nothing: whoever empties it decides what becomes of the nodes. push, pop and splice
/// are O(1) and never throw.
template <class Node, class Link>
class intrusive_queue {
public:
  intrusive_queue() = default;
  intrusive_queue(intrusive_queue&& other) noexcept
    : head_(std::exchange(other.head_, nullptr)),
      tail_(std::exchange(other.tail_, nullptr))
  {}
  intrusive_queue& operator=(intrusive_queue&&) = delete;

  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }

  void push_back(Node& node) noexcept
  {
    Link::next(node) = nullptr;
    (tail_ ? Link::next(*tail_) : head_) = &node;
    tail_ = &node;
  }

  /// The oldest node, now out of the queue; nullptr if there is none.
  [[nodiscard]] Node* pop_front() noexcept
  {
    Node* node = head_;
    if (node) {
      head_ = Link::next(*node);
      if (!head_) tail_ = nullptr;
    }
    return node;
  }

  /// Takes over everything in `other`, ahead of what is here.
  void splice_front(intrusive_queue& other) noexcept
  {
    if (other.empty()) return;
    Link::next(*other.tail_) = head_;
    if (!tail_) tail_ = other.tail_;
    head_ = std::exchange(other.head_, nullptr);
    other.tail_ = nullptr;
  }

private:
  Node* head_ = nullptr;
  Node* tail_ = nullptr;
};

}  // namespace asio_wheel
