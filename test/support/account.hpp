// What becomes of handlers: each is to be called once, or destroyed.
#pragma once

#include <atomic>
#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <utility>

namespace support {

/// What became of the handlers of a case. Any thread may write.
struct account {
  std::atomic<std::size_t> made{0};

  /// Of those destroyed, by an exception: the start threw, or the call.
  std::atomic<std::size_t> told{0};

  std::atomic<std::size_t> called{0};
  std::atomic<std::size_t> aborted{0};  ///< of these
  std::atomic<std::size_t> twice{0};
  std::atomic<std::size_t> destroyed{0};  ///< uncalled
  std::atomic<std::size_t> cancelled{0};  ///< what functions that cancel returned

  [[nodiscard]] std::size_t ended() const { return called + destroyed; }

  /// Returns true if each was called once, or destroyed.
  [[nodiscard]] bool is_balanced() const { return ended() == made && twice == 0; }
};

/// A handler of any signature, whose end is entered in an account.
class accounted {
public:
  explicit accounted(account& a) : account_(&a) { ++a.made; }
  accounted(accounted&& other) noexcept
    : account_(other.account_),
      open_(std::exchange(other.open_, false))
  {}
  accounted& operator=(accounted&&) = delete;
  ~accounted()
  {
    if (open_) ++account_->destroyed;
  }

  void operator()()
  {
    if (!std::exchange(open_, false)) ++account_->twice;
    ++account_->called;
  }
  void operator()(const boost::system::error_code& ec, const auto&...)
  {
    if (ec == boost::asio::error::operation_aborted) ++account_->aborted;
    (*this)();
  }

private:
  account* account_;
  bool open_ = true;
};

}  // namespace support
