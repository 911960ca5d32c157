// L3 roof: the hash set, Boost's or the standard library's.
#pragma once

#include <asio_wheel/asio.hpp>

#if defined(ASIO_WHEEL_STANDALONE)
#include <unordered_set>
#else
#include <boost/unordered/unordered_flat_set.hpp>
#endif

namespace asio_wheel::detail {

// Boost's allocates no node for each element. The standard library has no such set.
#if defined(ASIO_WHEEL_STANDALONE)
template <class T, class Hash, class Equal>
using hash_set = std::unordered_set<T, Hash, Equal>;
#else
template <class T, class Hash, class Equal>
using hash_set = boost::unordered_flat_set<T, Hash, Equal>;
#endif

}  // namespace asio_wheel::detail
