// L2 engine: recycled memory for waits: a magazine and a heap for each thread.
#include <asio_wheel/detail/engine/op_memory.hpp>

#include "../base/slab_heap.hpp"

#include <algorithm>
#include <array>
#include <new>

namespace asio_wheel::detail {
namespace {

static_assert(op_line == block_unit && most_recycled_lines == most_block_units);

/// A thread's free blocks of one size. Most allocations take from it.
struct magazine {
  free_block* first;
  std::size_t room;  ///< for more blocks; 0 before the first use and after the last

  static constexpr std::size_t batch = 64;  ///< blocks that move to or from the heap at once
  static constexpr std::size_t capacity = 2 * batch;
};
constinit thread_local std::array<magazine, most_recycled_lines> magazines{};

/// True once the thread has emptied its magazines for good. Objects that are destroyed later, such
/// as a thread_local context, do without. Not a member of thread_heap, because it outlives the
/// heap.
constinit thread_local bool has_ended = false;

/// Where the magazines get their blocks from. Blocks that are out when their thread ends find their
/// way back themselves.
struct thread_heap {
  slab_heap slabs;

  ~thread_heap()
  {
    has_ended = true;
    for (magazine& m : magazines) {
      if (m.first) slabs.give_back_to_owners(m.first, magazine::capacity - m.room);
      m = {};
    }
  }
};
constinit thread_local thread_heap this_thread_heap;

/// Fills the empty magazine and takes a block from it.
[[gnu::noinline, gnu::cold]] void* allocate_from_heap(std::size_t lines)
{
  if (has_ended) return slab_heap().take(lines);
  constexpr std::size_t page = 4096;
  const free_blocks some =
    this_thread_heap.slabs.take(lines, std::min(magazine::batch, page / (lines * op_line)));
  magazines[lines - 1] = {some.first->next, magazine::capacity - some.size + 1};
  return some.first;
}

/// Makes room in a magazine that has none, and puts a block into it.
[[gnu::noinline, gnu::cold]] void deallocate_to_full(void* p, std::size_t lines) noexcept
{
  if (has_ended) return slab_heap::return_block(p);
  slab_heap& slabs = this_thread_heap.slabs;  // from here on its destructor will run
  magazine& m = magazines[lines - 1];
  if (m.first)
    m = {slabs.give_back_to_owners(m.first, magazine::batch), magazine::batch};
  else
    m.room = magazine::capacity;
  m = {::new (p) free_block{m.first}, m.room - 1};
}

// Without recycling AddressSanitizer sees each wait come and go. GCC's MinGW frees a thread's
// thread_local memory before it calls the destructors of its objects.
#if defined(__SANITIZE_ADDRESS__) || (defined(__MINGW32__) && !defined(__clang__))
constexpr bool recycle = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool recycle = false;
#else
constexpr bool recycle = true;
#endif
#else
constexpr bool recycle = true;
#endif

}  // namespace

void* allocate_recycled_op(std::size_t lines)
{
  if (!recycle) return ::operator new (lines* op_line, std::align_val_t{op_line});
  magazine& m = magazines[lines - 1];
  free_block* const b = m.first;
  if (!b) return allocate_from_heap(lines);
  m = {b->next, m.room + 1};
  return b;
}

void deallocate_recycled_op(void* p, std::size_t lines) noexcept
{
  if (!recycle) return ::operator delete (p, std::align_val_t{op_line});
  magazine& m = magazines[lines - 1];
  if (m.room == 0) return deallocate_to_full(p, lines);
  m = {::new (p) free_block{m.first}, m.room - 1};
}

}  // namespace asio_wheel::detail
