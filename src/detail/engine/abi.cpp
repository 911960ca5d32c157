// L2 engine: defines the symbol that a program with equal Boost and settings of Asio refers to.
#include <asio_wheel/detail/engine/abi.hpp>

namespace asio_wheel::detail::library_and_program_must_use_the_same_boost_and_asio_settings {

void settings::agreed() noexcept {}

}  // namespace asio_wheel::detail::library_and_program_must_use_the_same_boost_and_asio_settings
