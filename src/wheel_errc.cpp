// L2 engine: the error category.
#include <asio_wheel/wheel_errc.hpp>

#include <string>

namespace asio_wheel {
namespace {

class category final : public error_category {
public:
  const char* name() const noexcept override { return "asio_wheel"; }

  std::string message(int value) const override
  {
    switch (static_cast<wheel_errc>(value)) {
      case wheel_errc::too_many_pending: return "Too many waits pending on the timing wheel";
    }
    return "Unknown asio_wheel error";
  }
};

}  // namespace

const error_category& wheel_category() noexcept
{
  static const category instance;
  return instance;
}

}  // namespace asio_wheel
