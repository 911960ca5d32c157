// All recipes of doc/recipes.md at once, on one wheel, in a server that then shuts down within its
// grace. Each recipe alone is a snippet; what one does to another shows here.
#include "snippet.hpp"

namespace snippets {
namespace {

#include "all_recipes.hpp"

/// How many coroutines were spawned, and how many have ended.
struct spawned {
  int begun = 0;
  int ended = 0;

  template <class Result>
  void spawn(asio::io_context& context, asio::awaitable<Result> coroutine)
  {
    ++begun;
    asio::co_spawn(context, std::move(coroutine),
                   [this](const std::exception_ptr&, auto&&...) { ++ended; });
  }
};

class together final : public all_recipes {
  asio::awaitable<void> run() override
  {
    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    open_sessions sessions(wheel);
    spawned all;

    // What a server does while it runs; some of it would go on for hours.
    writer out(socket, wheel);
    all.spawn(context, write_session(out, sessions));
    client_state client(wheel);
    all.spawn(context, read_session(client, sessions));
    token_bucket bucket(wheel);
    all.spawn(context, take_for_ever(bucket));
    all.spawn(context, retry_for_ever());
    all.spawn(context, ask_two_servers({"first", 1s}, {"second", 20ms}));
    all.spawn(context, ask_host("127.0.0.1", "1", "hello\n", 5s));
    auto ends = simulated_pair(wheel);
    timed_stream<simulated_stream> framed(std::move(ends.first));
    all.spawn(context, read_frame(framed));
    co_await asio::async_write(ends.second, asio::buffer("\0\0", 2), asio::deferred);
    mailbox<int> box(wheel);
    all.spawn(context, pop_for_ever(box));
    box.push(1);
    twice(wheel);
    cache values(wheel);
    values.put(1, "value", 3s);
    values.put(2, "value", 1h);
    pool connections(wheel, 55s);
    connections.give_back(tcp::socket(context));
    editor e{keyed_scheduler<std::string>(wheel)};
    circuit_breaker breaker(wheel);
    for (int i = 0; i != 3; ++i) breaker.failed();
    keyed_scheduler<int> tasks(wheel);
    tasks.run_every(1, 10ms, [&] { e.edit(); });
    out.send("hello\n");

    co_await wheel.async_wait(20s);
    assert(waited == 2 && !values.get(1) && values.get(2) && e.drawn > 300 && e.saved == 0);
    assert(breaker.allows() && connections.size() == 1 && sessions.count == 2 && popped == 1);

    const auto from = wheel.now();
    co_await shut_down(acceptor, sessions, wheel, 5s);
    const auto took = wheel.now() - from;
    assert(took >= 5s && took < 5s + 100ms);
    assert(sessions.count == 0 && all.begun == 8 && all.ended == all.begun);
    assert(tasks.size() == 0 && wheel.pending() == 0);
  }

  asio::awaitable<void> write_session(writer& out, open_sessions& sessions)
  {
    const open_sessions::entry entry(sessions);
    co_await out.run();
  }

  /// What comes is the echo of what the writer sends.
  asio::awaitable<void> read_session(client_state& client, open_sessions& sessions)
  {
    const open_sessions::entry entry(sessions);
    for (;;) {
      co_await socket.async_read_some(buffer, client.idle.guard());
      client.received("pong\n");
    }
  }

  static asio::awaitable<void> take_for_ever(token_bucket& bucket)
  {
    for (;;) co_await bucket.take();
  }

  asio::awaitable<void> pop_for_ever(mailbox<int>& box)
  {
    for (;;) popped += co_await box.async_pop(asio::use_awaitable);
  }

  asio::awaitable<void> retry_for_ever()
  {
    for (;;) {
      calls = 0;
      co_await asio::co_spawn(context, retry(), timeout_after(5s));
    }
  }

  int popped = 0;
};

const listed_snippet<together> list_together("all recipes");

}  // namespace
}  // namespace snippets
