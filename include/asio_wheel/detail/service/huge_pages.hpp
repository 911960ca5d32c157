// L2 service: memory in huge pages.
#pragma once

#include <cstddef>
#include <memory_resource>

namespace asio_wheel::detail {

/// Memory from operator new; large blocks are in huge pages if the system has them. Without these,
/// a million pending waits spend a fifth of their time on address translation.
[[nodiscard]] std::pmr::memory_resource& huge_page_resource() noexcept;

}  // namespace asio_wheel::detail
