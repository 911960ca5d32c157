// What the process takes of the machine's memory.
#pragma once

#include <cstddef>
#include <fstream>

#if defined(__linux__)
#include <unistd.h>
#endif

namespace support {

/// In bytes; 0 where the system does not say.
inline std::size_t resident_memory()
{
#if defined(__linux__)
  std::size_t total = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
#else
  return 0;
#endif
}

}  // namespace support
