// Pages for a timing_wheel that is tested by itself.
#pragma once

#include <asio_wheel/detail/ground/memory.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

/// Allocates pages when they are promised, so that what a wheel takes without a promise is missed.
class counted_pages final : public asio_wheel::detail::page_source {
public:
  /// How often pages were promised.
  [[nodiscard]] std::size_t promises() const noexcept { return promises_; }

  /// Pages that the wheel has.
  [[nodiscard]] std::size_t taken() const noexcept { return all_.size() - free_.size(); }

  /// Free pages that nobody counts on.
  [[nodiscard]] std::size_t spare() const noexcept { return free_.size() - promised_; }

  void promise(std::size_t n) override
  {
    ++promises_;
    while (spare() < n) {
      all_.push_back(std::make_unique<page>());
      free_.reserve(all_.size());
      free_.push_back(all_.back().get());
    }
    promised_ += n;
  }
  void forgo(std::size_t n) noexcept override { promised_ -= n; }
  [[nodiscard]] void* take_promised() noexcept override
  {
    --promised_;
    void* const p = free_.back();
    free_.pop_back();
    return p;
  }
  /// Overwrites the page: nobody may look at it any more.
  void give_back(void* p) noexcept override
  {
    std::memset(p, 0xee, asio_wheel::detail::page_size);
    free_.push_back(p);
  }

private:
  struct alignas(asio_wheel::detail::page_size) page {
    std::byte bytes[asio_wheel::detail::page_size];
  };

  std::vector<std::unique_ptr<page>> all_;
  std::vector<void*> free_;
  std::size_t promised_ = 0;
  std::size_t promises_ = 0;
};
