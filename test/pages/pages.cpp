// A heap whose system has pages of 64 KB, twice as large as its slabs: what goes back to the system
// takes no block along that is in use. This program has the system's functions itself, with the
// rules of such a system: a range begins at a page, and its length is rounded up.
#include <detail/base/slab_heap.hpp>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t page = std::size_t{64} << 10;
std::size_t discarded = 0;

}  // namespace

extern "C" int madvise(void* begin, std::size_t size, int advice) noexcept
{
  if (reinterpret_cast<std::uintptr_t>(begin) % page != 0) {
    errno = EINVAL;
    return -1;
  }
  const std::size_t whole = (size + page - 1) / page * page;
  if (advice == MADV_DONTNEED) discarded += whole;
  return static_cast<int>(syscall(SYS_madvise, begin, whole, advice));
}

extern "C" long sysconf(int name) noexcept
{
  return name == _SC_PAGESIZE ? static_cast<long>(page) : -1;
}

int main()
{
  using namespace asio_wheel::detail;
  slab_heap heap;
  std::vector<unsigned char*> all;
  for (std::size_t i = 0; i != 120 * slab_heap::blocks_of_slab(1); ++i) {
    all.push_back(reinterpret_cast<unsigned char*>(heap.take(1)));
    std::memset(all.back(), 0xee, block_unit);
  }
  // Of three slabs, two become empty. Where these share a page, it goes back.
  const auto stays = [](const unsigned char* block) {
    return reinterpret_cast<std::uintptr_t>(block) / slab_heap::slab_size % 3 == 0;
  };
  const auto gone = std::partition(all.begin(), all.end(), stays);
  for (auto block = gone; block != all.end(); ++block) heap.give_back(*block);
  std::size_t damaged = 0;
  for (auto block = all.begin(); block != gone; ++block)
    damaged += !std::all_of(*block, *block + block_unit, [](unsigned char c) { return c == 0xee; });
  std::printf("%zu bytes went back, %zu of %td blocks in use were damaged\n", discarded, damaged,
              gone - all.begin());
  return discarded == 0 || damaged != 0;
}
