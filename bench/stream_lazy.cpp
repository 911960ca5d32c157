// What deadlines cost a socket whose handlers store them, by an expert's hand (stream_main.hpp).
#include <algorithm>
#include <optional>

#include "stream_main.hpp"

namespace {

using std::chrono::steady_clock;
constexpr std::chrono::seconds limit{30};

/// Of one connection. Set again when it fires.
class stored_deadline {
public:
  explicit stored_deadline(bench::tcp::socket& socket)
    : socket_(socket),
      timer_(socket.get_executor())
  {
    look();
  }

  void set() { deadline_ = steady_clock::now() + limit; }
  void clear() { deadline_ = steady_clock::time_point::max(); }

private:
  void look()
  {
    timer_.expires_at(std::min(deadline_, steady_clock::now() + limit));
    timer_.async_wait([this](bench::error_code ec) {
      if (ec) return;
      if (steady_clock::now() >= deadline_) socket_.cancel(ec);
      look();
    });
  }

  bench::tcp::socket& socket_;
  bench::asio::steady_timer timer_;
  steady_clock::time_point deadline_ = steady_clock::time_point::max();
};

}  // namespace

int main(int argc, char** argv)
{
  std::optional<stored_deadline> deadline;
  return bench::stream_main<bench::tcp::socket>(
    argc, argv, "stream_lazy", bench::as_it_is, [&](auto& socket, auto operation, auto handler) {
      if (!deadline) deadline.emplace(socket);
      deadline->set();
      operation([&deadline, handler](bench::error_code ec, std::size_t n) {
        deadline->clear();
        handler(ec, n);
      });
    });
}
