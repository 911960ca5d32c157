// L2 service: the gate of a context, as a service of it.
#include <asio_wheel/detail/service/context_gate.hpp>

#include "../ground/locks.hpp"

namespace asio_wheel::detail {

class context_gate : public gate, public intrusive_ref_counter<context_gate> {};

namespace {

class gate_service final : public asio::execution_context::service {
public:
  static asio::execution_context::id id;

  explicit gate_service(asio::execution_context& c) : service(c), of_context(new context_gate) {}

  ~gate_service() override { of_context->close(); }  // asked for while its context was shut down

  void shutdown() noexcept override { of_context->close(); }

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

bool kept_context::enter() noexcept
{
  return gate_->try_lock_shared();
}

void kept_context::leave() noexcept
{
  gate_->unlock_shared();
}

}  // namespace asio_wheel::detail
