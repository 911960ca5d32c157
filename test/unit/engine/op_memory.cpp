// Memory for waits has every alignment, and none is lost when a thread ends.
#include <array>
#include <boost/asio/cancellation_type.hpp>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <asio_wheel/detail/engine/embedded_signal.hpp>
#include <asio_wheel/detail/engine/op_memory.hpp>

#include "support/run.hpp"
#include "support/scale.hpp"
#include "support/wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace asio_wheel::detail;
using namespace std::chrono_literals;

namespace {

// With AddressSanitizer nothing is recycled, and LeakSanitizer reports what is lost.
constexpr bool recycles = !support::under_address_sanitizer;

/// What memory is allocated for.
template <std::size_t Size, std::size_t Alignment>
struct alignas(Alignment) block {
  std::byte bytes[Size];
};

// The largest recycled blocks, which few others take.
constexpr std::size_t size = most_recycled_lines * op_line;
op_allocator<block<size, alignof(std::max_align_t)>> memory;

#if !defined(__MINGW32__) || defined(__clang__)
/// Does something after the thread_local objects that the thread constructed later are destroyed.
struct last_act {
  std::function<void()> act;
  ~last_act()
  {
    if (act) act();
  }
};
thread_local last_act last;

/// Runs `early` in a new thread, and `late` after the thread_local objects of `early` are
/// destroyed.
void in_ending_thread(const std::function<void()>& early, std::function<void()> late)
{
  std::thread([&] {
    last.act = std::move(late);
    early();
  }).join();
}

#endif

bool is_aligned(const void* p, std::size_t to)
{
  return reinterpret_cast<std::uintptr_t>(p) % to == 0;
}

/// A callable of any size and alignment, which records whether its address is aligned.
template <std::size_t Alignment, std::size_t Size>
class alignas(Alignment) picky {
public:
  explicit picky(std::vector<bool>& right) : right_(&right) { bytes_.fill(std::byte{7}); }

  template <class Argument>
  void operator()(Argument) const
  {
    const bool whole = bytes_.front() == std::byte{7} && bytes_.back() == std::byte{7};
    right_->push_back(whole && is_aligned(this, Alignment));
  }

  /// Checks both places: a handler moves into the wait, and out of it for the call.
  picky(picky&& other) noexcept : right_(other.right_), bytes_(other.bytes_)
  {
    right_->push_back(is_aligned(&other, Alignment) && is_aligned(this, Alignment));
  }

private:
  std::vector<bool>* right_;
  std::array<std::byte, Size> bytes_;
};

/// Whether all answers are yes, and there is at least one.
bool all_right(const std::vector<bool>& right)
{
  for (const bool r : right) {
    if (!r) return false;
  }
  return !right.empty();
}

template <std::size_t Alignment, std::size_t Size>
void check_wait()
{
  support::context_with_wheel c;
  std::vector<bool> right;
  for (int i = 0; i < 8; ++i) c.wheel.async_wait(1ms, picky<Alignment, Size>(right));
  support::run_to_end(c.context);
  BOOST_TEST(all_right(right), "alignment " << Alignment << ", size " << Size);
}

template <std::size_t Alignment, std::size_t Size>
void check_signal()
{
  std::array<detail::embedded_signal, 8> signals;
  std::vector<bool> right;
  for (auto& s : signals) s.emplace<picky<Alignment, Size>>(right);
  for (auto& s : signals) s.emit(asio::cancellation_type::terminal);
  BOOST_TEST(right.size() == signals.size());
  BOOST_TEST(all_right(right), "alignment " << Alignment << ", size " << Size);
}

template <std::size_t Size, std::size_t Alignment>
void check_memory()
{
  using object = block<Size, Alignment>;
  op_allocator<object> allocator;
  std::array<object*, 8> places{};
  std::size_t right = 0;
  for (auto& p : places) {
    p = allocator.allocate(1);
    std::memset(static_cast<void*>(p), 0xff, sizeof(object));
    if (is_aligned(p, Alignment)) ++right;
  }
  for (object* p : places) allocator.deallocate(p, 1);
  BOOST_TEST(right == places.size(), Size << " bytes, alignment " << Alignment);
}

template <std::size_t Size>
void check_alignments()
{
  check_memory<Size, 1>();
  check_memory<Size, 16>();
  check_memory<Size, 32>();
  check_memory<Size, 64>();
  check_memory<Size, 128>();
  check_memory<Size, 4096>();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(op_memory)

BOOST_AUTO_TEST_CASE(what_a_thread_keeps_goes_to_others_when_it_ends)
{
  std::set<void*> seen;
  for (int round = 0; round < 200; ++round) {
    std::thread([&] {
      std::array<void*, 50> blocks{};
      for (auto& p : blocks) p = memory.allocate();
      for (void* p : blocks) memory.deallocate(p);
      seen.insert(blocks.begin(), blocks.end());
    }).join();
  }
  if (recycles) BOOST_TEST(seen.size() <= 256U);
}

// GCC's MinGW frees thread_local memory before the destructors of what is in it run.
#if !defined(__MINGW32__) || defined(__clang__)
BOOST_AUTO_TEST_CASE(what_a_thread_frees_after_its_end_is_not_lost)
{
  std::set<void*> seen;
  for (int round = 0; round < 200; ++round) {
    std::vector<void*> blocks;
    in_ending_thread(
      [&] {
        for (int i = 0; i < 50; ++i) blocks.push_back(memory.allocate());
      },
      [&] {
        for (void* p : blocks) memory.deallocate(p);
      });
    seen.insert(blocks.begin(), blocks.end());
  }
  if (recycles) BOOST_TEST(seen.size() <= 256U);
}

BOOST_AUTO_TEST_CASE(what_a_thread_takes_after_its_end_costs_one_block)
{
  std::set<void*> seen;
  for (int round = 0; round < 200; ++round) {
    std::array<void*, 3> blocks{};
    in_ending_thread([] { memory.deallocate(memory.allocate()); },
                     [&] {
                       for (auto& p : blocks) p = memory.allocate();
                       for (void* p : blocks) memory.deallocate(p);
                     });
    seen.insert(blocks.begin(), blocks.end());
  }
  if (recycles) BOOST_TEST(seen.size() <= 256U);
}

BOOST_AUTO_TEST_CASE(many_blocks_that_are_freed_and_taken_after_the_end_are_apart)
{
  constexpr std::size_t n = 1000;  // several batches, and a part of one
  std::vector<void*> freed;
  in_ending_thread(
    [&] {
      for (std::size_t i = 0; i < n; ++i) freed.push_back(memory.allocate());
    },
    [&] {
      for (void* p : freed) memory.deallocate(p);
    });

  std::set<void*> taken;
  in_ending_thread(
    [&] {
      for (std::size_t i = 0; i < n; ++i) {
        void* const p = memory.allocate();
        std::memset(p, 0xff, size);
        taken.insert(p);
      }
    },
    [&] {
      for (int i = 0; i < 100; ++i) {
        void* const p = memory.allocate();
        std::memset(p, 0xff, size);
        taken.insert(p);
      }
      for (void* p : taken) memory.deallocate(p);
    });
  BOOST_TEST(taken.size() == n + 100);
}

#endif

BOOST_AUTO_TEST_CASE(every_size_has_every_alignment)
{
  check_alignments<1>();
  check_alignments<64>();
  check_alignments<100>();
  check_alignments<512>();
  check_alignments<513>();
  check_alignments<2000>();
}

BOOST_AUTO_TEST_CASE(embedded_signal_places_every_handler_right)
{
  check_signal<8, 8>();
  check_signal<8, 100>();
  check_signal<8, 2000>();
  check_signal<32, 16>();
  check_signal<64, 600>();
  check_signal<128, 16>();
}

BOOST_AUTO_TEST_CASE(wait_places_every_handler_right)
{
  check_wait<8, 8>();
  check_wait<8, 2000>();
  check_wait<32, 16>();
  check_wait<64, 16>();
  check_wait<64, 600>();
  check_wait<128, 16>();
  check_wait<256, 2000>();
}

BOOST_AUTO_TEST_SUITE_END()
