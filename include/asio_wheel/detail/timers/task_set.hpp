// L3 timers: the set of a keyed_scheduler's tasks.
#pragma once

#include <asio_wheel/asio.hpp>

#if defined(ASIO_WHEEL_STANDALONE)
#include <unordered_set>
#else
#include <boost/unordered/unordered_flat_set.hpp>
#endif

namespace asio_wheel::detail {

/// Boost's set, where there is Boost. With a million tasks every cache line is a miss. A search in
/// the standard's set touches three more lines, and takes twice as long.
#if defined(ASIO_WHEEL_STANDALONE)
template <class Entry, class Hash, class Equal>
using task_set = std::unordered_set<Entry, Hash, Equal>;
#else
template <class Entry, class Hash, class Equal>
using task_set = boost::unordered_flat_set<Entry, Hash, Equal>;
#endif

}  // namespace asio_wheel::detail
