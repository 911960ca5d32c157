// L1 wheel: what is filed in a timing_wheel.
#pragma once

#include <asio_wheel/detail/base/intrusive_list.hpp>
#include <asio_wheel/detail/base/tick.hpp>

#include <type_traits>

namespace asio_wheel::detail {

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
  [[nodiscard]] tick due() const noexcept;

  /// The cell of a filed entry, for prefetching.
  [[nodiscard]] const void* cell() const noexcept;

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
