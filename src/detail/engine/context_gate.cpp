// L2 engine: the gate of a context, as a service.
#include <asio_wheel/detail/engine/context_gate.hpp>

#include "../base/locks.hpp"

#include <utility>

namespace asio_wheel::detail {

class context_gate : public gate, public intrusive_ref_counter<context_gate> {
public:
  void add(std::unique_ptr<gated_work> w)
  {
    gated_work::list one;
    one.push_back(std::move(w));
    one.front()->place = one.begin();
    const locked lock(mutex_);
    works_.splice(works_.end(), one);
  }

  void remove(gated_work& w) noexcept
  {
    gated_work::list one;  // destroyed without the lock
    const locked lock(mutex_);
    one.splice(one.end(), works_, w.place);
  }

  /// Closes the gate, and destroys the context's work.
  void close_context() noexcept
  {
    close();
    gated_work::list all;
    const locked lock(mutex_);
    all.swap(works_);
  }

private:
  spin_lock mutex_;
  gated_work::list works_ ASIO_WHEEL_GUARDED_BY(mutex_);
};

namespace {

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

intrusive_ptr<context_gate> gate_of(asio::execution_context& c)
{
  return asio::use_service<gate_service>(c).of_context;
}

void leave_work(context_gate& g, std::unique_ptr<gated_work> w)
{
  g.add(std::move(w));
}

void finish_work(context_gate& g, gated_work& w) noexcept
{
  g.remove(w);
}

bool kept_context::enter() noexcept
{
  return gate_->try_lock_shared();
}

void kept_context::leave() noexcept
{
  gate_->unlock_shared();
}

}  // namespace asio_wheel::detail
