// L2 service: memory for waits.
#include <asio_wheel/service/op_memory.hpp>

#include <new>

namespace asio_wheel {

void* allocate_op(std::size_t size)
{
  return ::operator new(size);
}
void deallocate_op(void* p, std::size_t) noexcept
{
  ::operator delete(p);
}

}  // namespace asio_wheel
