// L2 engine: recycled memory for waits: a magazine and a heap for each thread.
#include <asio_wheel/detail/engine/op_memory.hpp>

#include "../base/slab_heap.hpp"

#include <array>

namespace asio_wheel::detail {
namespace {

static_assert(op_line == block_unit && most_recycled_lines == most_block_units);

/// A thread's free blocks of one size. Most allocations take from it.
struct magazine {
  static constexpr std::size_t batch = 64;  ///< blocks that move to or from the heap at once

  void push(void* p) noexcept { *this = {::new (p) free_block{first}, room - 1}; }
  [[nodiscard]] void* pop() noexcept
  {
    void* const p = first;
    *this = {first->next, room + 1};
    return p;
  }

  free_block* first;
  std::size_t room;  ///< for more blocks; 0 before the first use and after the last
};
constinit thread_local std::array<magazine, most_recycled_lines> magazines{};

/// True once the thread's magazines are gone. A thread_local context may go later, without them.
constinit thread_local bool has_ended = false;

/// Where the magazines get their blocks from.
struct thread_heap : slab_heap {
  ~thread_heap()
  {
    has_ended = true;
    for (magazine& m : magazines) {
      if (m.first) give_back(m.first, 2 * magazine::batch - m.room);
      m = {};
    }
  }
};
constinit thread_local thread_heap this_thread_heap;

/// Fills the empty magazine and takes a block from it.
[[gnu::noinline, gnu::cold]] void* allocate_from_heap(std::size_t lines)
{
  if (has_ended) return slab_heap().take(lines);
  slab_heap& heap = this_thread_heap;
  magazine& m = magazines[lines - 1];
  m.room = 2 * magazine::batch;
  for (std::size_t i = 0; i < magazine::batch; i += lines) m.push(heap.take(lines));
  return m.pop();
}

/// Makes room in a magazine that has none, and puts a block into it.
[[gnu::noinline, gnu::cold]] void deallocate_to_full(void* p, std::size_t lines) noexcept
{
  if (has_ended) return slab_heap::return_block(p);
  slab_heap& heap = this_thread_heap;  // from here on its destructor will run
  magazine& m = magazines[lines - 1];
  if (m.first)
    m = {heap.give_back(m.first, magazine::batch), magazine::batch};
  else
    m.room = 2 * magazine::batch;
  m.push(p);
}

// Without recycling AddressSanitizer sees each wait come and go. GCC's MinGW frees a thread's
// thread_local memory before it calls the destructors of its objects.
constexpr bool recycle =
#if defined(__SANITIZE_ADDRESS__) || (defined(__MINGW32__) && !defined(__clang__))
  false;
#elif defined(__clang__)
  !__has_feature(address_sanitizer);
#else
  true;
#endif

}  // namespace

void* allocate_recycled_op(std::size_t lines)
{
  if (!recycle) return ::operator new (lines* op_line, std::align_val_t{op_line});
  magazine& m = magazines[lines - 1];
  return m.first ? m.pop() : allocate_from_heap(lines);
}

void deallocate_recycled_op(void* p, std::size_t lines) noexcept
{
  if (!recycle) return ::operator delete (p, std::align_val_t{op_line});
  magazine& m = magazines[lines - 1];
  return m.room != 0 ? m.push(p) : deallocate_to_full(p, lines);
}

}  // namespace asio_wheel::detail
