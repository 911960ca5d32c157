// A chat server (chat.hpp) with deadlines that never come: a silent client, a client that takes
// nothing, a login and a request that take too long; and with heartbeats. By:
//   wheel  as this library's users write it: two watchdogs guard reads and writes, cancel_after, a
//          heartbeat
//   lazy   in plain Asio by an expert's hand: handlers store time points, and one steady_timer per
//          connection, set again each time that it fires, looks at them
//   slot   the floor: by hand, where each operation can be cancelled by itself, by a signal that
//          nobody emits
// The clients are another process. Prints the server's time in user mode and in the kernel for each
// message that it sends, as a line of JSON. programs.py compares.
#include "chat.hpp"

#include "../examples/common/command_line.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <asio_wheel.hpp>

#include <algorithm>
#include <thread>

#include "measure.hpp"

namespace {

using namespace chat;
using clock = std::chrono::steady_clock;
namespace po = common::po;

class by_wheel {
public:
  explicit by_wheel(session<by_wheel>& s)
    : session_(s),
      idle_(s.executor(), idle_limit),
      stall_(s.executor(), stall_limit),
      beat_(s.executor(), {ping_interval, 3})
  {}

  void start() {}
  void logged_in() { next_beat(); }
  void stop() { beat_.cancel(); }

  template <class Operation, class Handler>
  void login(Operation operation, Handler handler)
  {
    operation(asio_wheel::cancel_after(login_limit, std::move(handler)));
  }
  template <class Operation, class Handler>
  void read(Operation operation, Handler handler)
  {
    operation(idle_.guard(std::move(handler)));
  }
  template <class Operation, class Handler>
  void request(Operation operation, Handler handler)
  {
    operation(asio_wheel::cancel_after(request_limit,
                                       [h = std::move(handler)]() mutable { h(error_code()); }));
  }
  template <class Operation, class Handler>
  void write(Operation operation, Handler handler)
  {
    stall_.touch();
    operation(stall_.guard(std::move(handler)));
  }
  void received()
  {
    idle_.touch();
    beat_.received();
  }
  void sent() { beat_.sent(); }

private:
  void next_beat()
  {
    beat_.async_next(
      [this, self = session_.shared_from_this()](error_code ec, asio_wheel::heartbeat_event event) {
        if (ec) return;
        if (event == asio_wheel::heartbeat_event::peer_lost) return session_.close();
        session_.send(std::make_shared<const std::string>("ping\n"));
        next_beat();
      });
  }

  session<by_wheel>& session_;
  asio_wheel::basic_wheel_watchdog<strand> idle_, stall_;
  asio_wheel::basic_heartbeat<strand> beat_;
};

template <bool HasSlots>
class by_hand {
public:
  explicit by_hand(session<by_hand>& s) : session_(s), timer_(s.executor()) {}

  void start() { look(); }
  void logged_in() { logged_in_ = true; }
  void stop() { timer_.cancel(); }

  template <class Operation, class Handler>
  void login(Operation operation, Handler handler)
  {
    deadline_ = clock::now() + login_limit;
    operation(with_slot(reads_, clearing(deadline_, std::move(handler))));
  }
  template <class Operation, class Handler>
  void read(Operation operation, Handler handler)
  {
    operation(with_slot(reads_, std::move(handler)));
  }
  template <class Operation, class Handler>
  void request(Operation operation, Handler handler)
  {
    deadline_ = received_ + request_limit;
    operation(with_slot(requests_, [this, h = std::move(handler)]() mutable {
      deadline_ = never;
      h(error_code());
    }));
  }
  template <class Operation, class Handler>
  void write(Operation operation, Handler handler)
  {
    written_by_ = clock::now() + stall_limit;
    operation(with_slot(writes_, clearing(written_by_, std::move(handler))));
  }
  void received() { received_ = clock::now(); }
  void sent() { sent_ = clock::now(); }

private:
  static constexpr auto never = clock::time_point::max();

  template <class Handler>
  static auto with_slot(asio::cancellation_signal& s, Handler handler)
  {
    if constexpr (HasSlots)
      return asio::bind_cancellation_slot(s.slot(), std::move(handler));
    else
      return handler;
  }

  template <class Handler>
  static auto clearing(clock::time_point& what, Handler handler)
  {
    return [&what, h = std::move(handler)](error_code ec, std::size_t n) mutable {
      what = never;
      h(ec, n);
    };
  }

  void look()
  {
    timer_.expires_after(1s);
    timer_.async_wait([this, self = session_.shared_from_this()](error_code ec) {
      if (ec) return;
      const auto now = clock::now();
      if (now >= std::min({deadline_, written_by_, received_ + 3 * ping_interval}))
        return session_.close();
      if (logged_in_ && now >= std::max(std::min(received_, sent_), pinged_) + ping_interval) {
        pinged_ = now;
        session_.send(std::make_shared<const std::string>("ping\n"));
      }
      look();
    });
  }

  session<by_hand>& session_;
  asio::basic_waitable_timer<clock, asio::wait_traits<clock>, strand> timer_;
  bool logged_in_ = false;
  clock::time_point deadline_ = never, written_by_ = never, received_ = clock::now(),
                    sent_ = received_, pinged_ = received_;
  asio::cancellation_signal reads_, writes_, requests_;
};

struct settings {
  std::string of = "wheel";
  std::size_t clients = 200, rate = 2'800, seconds = 5;
};

/// In a process of their own, which goes with this one.
void start_clients(const settings& s, unsigned short port)
{
  const auto process = ::fork();
  if (process < 0) throw std::runtime_error("cannot start a process");
  if (process > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::_Exit(common::run_program("chat", [&] {
    load(port, s.clients, s.rate).run();
    return EXIT_SUCCESS;
  }));
}

template <class Limits>
void run(const settings& s)
{
  auto& context = *new asio::io_context(2);
  auto& serving = *new server<Limits>(context, s.clients);
  context.notify_fork(asio::io_context::fork_prepare);
  start_clients(s, serving.port());
  context.notify_fork(asio::io_context::fork_parent);
  for (int i = 0; i < 2; ++i) std::thread([&] { context.run(); }).detach();

  std::this_thread::sleep_for(1s);  // warms up
  auto sent = serving.sent();
  auto spent = bench::spent::so_far();
  std::this_thread::sleep_for(std::chrono::seconds(s.seconds));
  spent = bench::spent::so_far() - spent;
  sent = serving.sent() - sent;
  if (sent == 0) throw std::runtime_error("no message was sent");
  const auto each = [&](bench::nanoseconds t) {
    return static_cast<double>(t.count()) / static_cast<double>(sent);
  };
  fmt::print("{{\"of\": \"{}\", \"messages\": {}, \"user_ns\": {:.0f}, \"system_ns\": {:.0f}}}\n",
             s.of, sent, each(spent.user), each(spent.system));
}

}  // namespace

int main(int argc, char** argv)
{
  return common::run_program("chat", [&] {
    settings s;
    po::options_description options("Options");
    const auto number = [&](const char* name, std::size_t& value, std::size_t highest,
                            const char* text) {
      options.add_options()(name, common::ranged<std::size_t>(value, name, 1, highest, "N"), text);
    };
    options.add_options()("of", po::value(&s.of)->value_name("NAME")->default_value(s.of),
                          "wheel, lazy or slot");
    number("clients", s.clients, 10'000, "how many");
    number("rate", s.rate, 10'000'000, "lines a second of all clients; 10 clients get each line");
    number("seconds", s.seconds, 3'600, "that are measured");
    if (!common::parse_command_line(argc, argv, "A chat server under load.\n", options))
      return EXIT_SUCCESS;
    if (s.of == "wheel")
      run<by_wheel>(s);
    else if (s.of == "lazy")
      run<by_hand<false>>(s);
    else if (s.of == "slot")
      run<by_hand<true>>(s);
    else
      throw po::error(fmt::format("--of must be wheel, lazy or slot, not '{}'", s.of));
    std::fflush(stdout);
    std::_Exit(EXIT_SUCCESS);
  });
}
