// L2 engine: the gate of a context, as a service.
#include <asio_wheel/detail/engine/context_gate.hpp>

#include "../base/locks.hpp"

#include <cstdint>
#include <utility>

namespace asio_wheel::detail {

class context_gate : public gate, public intrusive_ref_counter<context_gate> {
public:
  void add(gated_work::ptr w)
  {
    gated_work::list one;
    one.push_back(std::move(w));
    one.front()->place = one.begin();
    const locked lock(mutex_);
    works_.splice(works_.end(), one);
  }

  [[nodiscard]] gated_work::ptr take(gated_work& w) noexcept
  {
    gated_work::list one;
    {
      const locked lock(mutex_);
      one.splice(one.end(), works_, w.place);
    }
    return std::move(one.front());
  }

  /// Closes the gate, and destroys the context's work, with what its destructors leave.
  [[gnu::noinline, gnu::cold]] void close_context() noexcept
  {
    close(held_by_this_thread());
    while (!take_all().empty()) continue;
  }

private:
  [[nodiscard]] gated_work::list take_all() noexcept
  {
    gated_work::list all;
    const locked lock(mutex_);
    all.swap(works_);
    return all;
  }
  [[nodiscard]] std::uint32_t held_by_this_thread() const noexcept;

  spin_lock mutex_;
  gated_work::list works_ ASIO_WHEEL_GUARDED_BY(mutex_);
};

namespace {

constinit thread_local kept_context* innermost_kept = nullptr;

class gate_service final : public asio::execution_context::service {
public:
  static asio::execution_context::id id;

  explicit gate_service(asio::execution_context& c) : service(c), of_context(new context_gate) {}

  // A service made while its context shuts down gets no shutdown().
  ~gate_service() override { of_context->close_context(); }

  void shutdown() noexcept override { of_context->close_context(); }

  const intrusive_ptr<context_gate> of_context;
};
asio::execution_context::id gate_service::id;

}  // namespace

void intrusive_ptr_add_ref(const context_gate* g) noexcept
{
  intrusive_ptr_add_ref(static_cast<const intrusive_ref_counter<context_gate>*>(g));
}

void intrusive_ptr_release(const context_gate* g) noexcept
{
  intrusive_ptr_release(static_cast<const intrusive_ref_counter<context_gate>*>(g));
}

// Cold: small rather than fast, as every program with a timer has them.

[[gnu::cold]] intrusive_ptr<context_gate> gate_of(asio::execution_context& c)
{
  return asio::use_service<gate_service>(c).of_context;
}

[[gnu::cold]] void leave_work(context_gate& g, gated_work::ptr w)
{
  g.add(std::move(w));
}

[[gnu::cold]] void finish_work(context_gate& g, gated_work& w) noexcept
{
  if (const kept_context kept(&g); kept) g.take(w).reset();
}

[[gnu::cold]] bool take_work(context_gate& g, gated_work& w) noexcept
{
  const kept_context kept(&g);
  if (kept) static_cast<void>(g.take(w).release());
  return bool(kept);
}

std::uint32_t context_gate::held_by_this_thread() const noexcept
{
  std::uint32_t n = 0;
  for (const kept_context* k = innermost_kept; k; k = k->outer_) n += k->gate_ == this;
  return n;
}

bool kept_context::enter() noexcept
{
  if (!gate_->try_lock_shared()) return false;
  intrusive_ptr_add_ref(gate_);
  outer_ = std::exchange(innermost_kept, this);
  return true;
}

void kept_context::leave() noexcept
{
  innermost_kept = outer_;
  gate_->unlock_shared();
  intrusive_ptr_release(gate_);
}

}  // namespace asio_wheel::detail
