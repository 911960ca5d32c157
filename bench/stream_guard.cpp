// What deadlines cost a socket whose operations a watchdog guards (stream_main.hpp).
#include <asio_wheel.hpp>

#include <optional>

#include "stream_main.hpp"

int main(int argc, char** argv)
{
  std::optional<asio_wheel::wheel_watchdog> dog;
  const auto guarded = [&dog](auto& socket, auto operation, auto handler) {
    if (!dog) dog.emplace(socket.get_executor(), std::chrono::seconds(30));
    operation(dog->guard(handler));
  };
  return bench::stream_main<bench::tcp::socket>(argc, argv, "stream_guard", guarded,
                                                [&](auto& socket, auto operation, auto handler) {
                                                  if (dog) dog->touch();
                                                  guarded(socket, operation, handler);
                                                });
}
