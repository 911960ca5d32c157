// The timer structures that wheel_alone compares, behind one interface, and the floor below them.
//
// Each structure owns n entries of 64 bytes, the size of a server's wait:
//   insert(i, when)   files entry i under a tick
//   erase(i)          removes it
//   advance(to)       moves to a tick
//   take_due(f)       removes what is due by then, earliest first, and calls f(entry) for each.
//                     Structures without a notion of now do all their work here
//   index_of(entry)
#pragma once

#include <sys/mman.h>
#include <detail/wheel/timing_wheel.hpp>

#include <boost/heap/d_ary_heap.hpp>
#include <boost/heap/pairing_heap.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>

#include "command_line.hpp"

namespace bench {

using ticks = std::uint64_t;

// n objects, on huge pages of two megabytes if asked for. Never freed: the process ends with its
// measurement.
template <class T>
T* make_array(std::size_t n, bool huge_pages)
{
  constexpr std::size_t page = std::size_t{2} << 20;
  const std::size_t bytes = (n * sizeof(T) + page - 1) / page * page;
  void* memory = std::aligned_alloc(huge_pages ? page : alignof(T), bytes);
  if (!memory) throw std::bad_alloc{};
  if (huge_pages) ::madvise(memory, bytes, MADV_HUGEPAGE);
  T* first = static_cast<T*>(memory);
  for (std::size_t i = 0; i < n; ++i) new (first + i) T;
  return first;
}

template <class Entry>
class entries {
public:
  explicit entries(const options& o) : first_{make_array<Entry>(o.n, o.huge_pages)} {}

  Entry& operator[](std::size_t i) { return first_[i]; }
  std::size_t index_of(const Entry& e) const { return static_cast<std::size_t>(&e - first_); }

private:
  Entry* first_;
};

class wheel_structure {
public:
  struct alignas(64) entry : asio_wheel::detail::wheel_entry {
    std::uint64_t payload = 1;
  };

  explicit wheel_structure(const options& o) : entries_{o} {}

  void insert(std::size_t i, ticks when)
  {
    wheel_.insert(entries_[i], asio_wheel::detail::tick{when});
  }
  void erase(std::size_t i) { wheel_.erase(entries_[i]); }

  void advance(ticks to) { wheel_.advance(asio_wheel::detail::tick{to}); }

  template <class F>
  void take_due(F f)
  {
    while (auto* e = wheel_.pop_due()) f(static_cast<entry&>(*e));
  }

  std::size_t index_of(const entry& e) const { return entries_.index_of(e); }

private:
  entries<entry> entries_;
  asio_wheel::detail::timing_wheel wheel_{asio_wheel::detail::wheel_geometry{}};
};

class multimap_structure {
public:
  struct entry;
  using map = std::multimap<ticks, entry*>;
  struct alignas(64) entry {
    map::iterator place;
    std::uint64_t payload = 1;
  };

  explicit multimap_structure(const options& o) : entries_{o} {}

  void insert(std::size_t i, ticks when) { entries_[i].place = map_.emplace(when, &entries_[i]); }
  void erase(std::size_t i) { map_.erase(entries_[i].place); }

  void advance(ticks to) { now_ = to; }

  template <class F>
  void take_due(F f)
  {
    while (!map_.empty() && map_.begin()->first <= now_) {
      entry& e = *map_.begin()->second;
      map_.erase(map_.begin());
      f(e);
    }
  }

  std::size_t index_of(const entry& e) const { return entries_.index_of(e); }

private:
  entries<entry> entries_;
  map map_;
  ticks now_ = 0;
};

struct heap_item {
  ticks when;
  void* entry;
  friend bool operator<(const heap_item& a, const heap_item& b) { return a.when > b.when; }
};

template <class Heap>
class heap_structure {
public:
  struct alignas(64) entry {
    std::optional<typename Heap::handle_type> place;
    std::uint64_t payload = 1;
  };

  explicit heap_structure(const options& o) : entries_{o} {}

  void insert(std::size_t i, ticks when) { entries_[i].place = heap_.push({when, &entries_[i]}); }
  void erase(std::size_t i) { heap_.erase(*entries_[i].place); }

  void advance(ticks to) { now_ = to; }

  template <class F>
  void take_due(F f)
  {
    while (!heap_.empty() && heap_.top().when <= now_) {
      entry& e = *static_cast<entry*>(heap_.top().entry);
      heap_.pop();
      f(e);
    }
  }

  std::size_t index_of(const entry& e) const { return entries_.index_of(e); }

private:
  entries<entry> entries_;
  Heap heap_;
  ticks now_ = 0;
};

using d_ary_structure = heap_structure<
  boost::heap::d_ary_heap<heap_item, boost::heap::arity<4>, boost::heap::mutable_<true>>>;
using pairing_structure = heap_structure<boost::heap::pairing_heap<heap_item>>;

// The floor: the memory accesses that no structure can do without. No ticks and no order.
class list_floor {
public:
  struct alignas(64) entry {
    entry *previous, *next;
    std::uint64_t payload = 1;
  };
  static constexpr std::size_t heads = 1024;

  explicit list_floor(const options& o) : entries_{o}, heads_{make_array<entry>(heads, false)}
  {
    for (std::size_t h = 0; h < heads; ++h) heads_[h].previous = heads_[h].next = &heads_[h];
  }

  void push(std::size_t i, std::size_t head)
  {
    entry& e = entries_[i];
    entry& h = heads_[head];
    e.previous = &h;
    e.next = h.next;
    h.next->previous = &e;
    h.next = &e;
  }

  void unlink(std::size_t i)
  {
    entry& e = entries_[i];
    e.previous->next = e.next;
    e.next->previous = e.previous;
  }

  template <class F>
  void walk(F f)
  {
    for (std::size_t h = 0; h < heads; ++h)
      for (entry* e = heads_[h].next; e != &heads_[h]; e = e->next) f(*e);
  }

  entry& operator[](std::size_t i) { return entries_[i]; }

private:
  entries<entry> entries_;
  entry* heads_;
};

}  // namespace bench
