// L2 engine: asks strands if they run in this thread.
#include "deadlines_under_way.hpp"

#include <optional>
#include <utility>

namespace asio_wheel::detail {
namespace {

/// Returns true if this thread is inside the strand; nothing if `ex` is not one of these.
template <class... Inner>
std::optional<bool> is_inside(const asio::any_io_executor& ex) noexcept
{
  std::optional<bool> is;
  const auto ask = [&](const auto* strand) {
    if (strand) is = strand->running_in_this_thread();
    return strand != nullptr;
  };
  static_cast<void>((ask(ex.target<asio::strand<Inner>>()) || ...));
  return is;
}

std::optional<bool> is_inside_strand(const asio::any_io_executor& ex) noexcept
{
  return is_inside<asio::any_io_executor, asio::io_context::executor_type,
                   asio::thread_pool::executor_type>(ex);
}

}  // namespace

deadlines_under_way::place deadlines_under_way::add(asio::any_io_executor ex) noexcept
{
  if (size_ == most || !is_inside_strand(ex).has_value()) return 0;
  const locked lock(mutex_);
  for (std::size_t i = 0; i != most; ++i) {
    entry& e = all_[i];
    if (e.strand) continue;
    std::swap(e.strand, ex);
    e.begun = false;
    ++size_;
    return static_cast<place>(i + 1);
  }
  return 0;
}

void deadlines_under_way::remove(place& p) noexcept
{
  if (p == 0) return;
  asio::any_io_executor strand;  // goes without the lock
  const locked lock(mutex_);
  std::swap(all_[p - 1u].strand, strand);
  --size_;
  p = 0;
}

bool deadlines_under_way::take_begun(place p) noexcept
{
  const locked lock(mutex_);
  return std::exchange(all_[p - 1u].begun, false);
}

void deadlines_under_way::note_for_all() noexcept
{
  const locked lock(mutex_);
  for (entry& e : all_)
    if (e.strand && !e.begun) e.begun = is_inside_strand(e.strand).value();
}

}  // namespace asio_wheel::detail
