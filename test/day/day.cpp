// A day of examples/http_server over simulated streams: many honest clients, and some that drip,
// vanish, never read or reset, by a seed. Honest clients lose nothing. Each hostile one is dropped
// by the rule that fits: the counters say exactly so. Nothing is left at the end.
//
// day [seeds [first seed [clients [hours]]]]: prints the first seed that fails, and stops there.
#include "examples/http_server/server.hpp"

#include <asio_wheel/simulated_stream.hpp>
#include <asio_wheel/timed_stream.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/heap.hpp"

// GCC 12 takes the two halves of a coroutine's frame allocation for a mismatch.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace {

namespace asio = boost::asio;
using namespace asio_wheel;
using namespace std::chrono_literals;
using boost::system::error_code;
using nanoseconds = std::chrono::nanoseconds;

/// All that a seed decides, and what came of it.
class day {
public:
  day(std::uint32_t seed, int clients, std::chrono::hours length) : random_(seed)
  {
    time_.align();
    start_ = wheel_.now();
    end_ = start_ + length;
    for (int i = 0; i < clients; ++i)
      spawn(i % 5 == 0 ? hostile(seed_of_one()) : honest(seed_of_one()));
  }

  /// Returns true if all was as it should be, and prints what was not.
  bool run(std::chrono::hours length)
  {
    const auto passage = time_.advance_until_idle(length + 2h);
    const web::counters& c = server_.counted();
    expect(passage.idle, "the day ends");
    expect(!passage.blocked, "nothing waits at the end");
    expect(wheel_.pending() == 0, "no wait is pending at the end");
    expect(server_.connections() == 0, "no connection is left");
    expect(lost_ == 0, "honest clients lost nothing");
    expect(c.requests == answered_ + expected_requests_, "each request was read once");
    expect(c.evicted == 0 && c.refused == 0, "nobody was turned away");
    for (std::size_t p = 0; p != web::phases; ++p)
      if (c.timed_out.at(p) != expected_.at(p)) {
        std::printf("wrong: %llu timed out in %s, of %llu\n",
                    static_cast<unsigned long long>(c.timed_out.at(p)), web::phase_names.at(p),
                    static_cast<unsigned long long>(expected_.at(p)));
        ++wrong_;
      }
    return wrong_ == 0;
  }

  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  void print() const
  {
    const web::counters& c = server_.counted();
    std::printf("%llu connections, %llu requests, %llu answers to honest clients; timed out:",
                static_cast<unsigned long long>(c.accepted),
                static_cast<unsigned long long>(c.requests),
                static_cast<unsigned long long>(answered_));
    for (std::size_t p = 0; p != web::phases; ++p)
      std::printf(" %llu in %s", static_cast<unsigned long long>(c.timed_out.at(p)),
                  web::phase_names.at(p));
    std::printf("; hash %016llx\n", static_cast<unsigned long long>(hash_));
  }

private:
  using random = std::mt19937;
  using awaitable = asio::awaitable<void>;

  void expect(bool ok, const char* claim)
  {
    if (ok) return;
    std::printf("wrong: %s\n", claim);
    ++wrong_;
  }

  void spawn(awaitable client)
  {
    asio::co_spawn(context_, std::move(client), [](std::exception_ptr thrown) {
      if (thrown) std::rethrow_exception(thrown);
    });
  }

  std::uint32_t seed_of_one() { return static_cast<std::uint32_t>(random_()); }

  static std::uint32_t below(random& r, std::uint32_t n)
  {
    return static_cast<std::uint32_t>(r()) % n;
  }

  /// FNV-1a of what happened, and when.
  void note(std::uint64_t what)
  {
    for (const std::uint64_t n :
         {what, static_cast<std::uint64_t>((wheel_.now() - start_).count())})
      hash_ = (hash_ ^ n) * 0x100000001b3U;
  }

  simulated_stream connect(const simulated_link& link)
  {
    auto [client, server] = simulated_pair(wheel_, link);
    server_.take_in(std::move(server));
    return std::move(client);
  }

  static simulated_link line(random& r)
  {
    return {.latency = std::chrono::milliseconds{5 + below(r, 200)},
            .jitter = std::chrono::milliseconds{below(r, 20)},
            .bytes_per_second = 20'000 + below(r, 1'000'000),
            .seed = r(),
            .loss = 0.01};
  }

  static std::string request(std::size_t body)
  {
    return "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body) +
           "\r\n\r\n" + std::string(body, 'b');
  }

  /// Writes a request and reads its answer. Returns true if that is what it should be.
  static asio::awaitable<bool> ask(simulated_stream& stream, std::size_t body)
  {
    const std::string question = request(body);
    error_code ec;
    const auto token = [&ec] {
      return timeout_after(1min, asio::redirect_error(asio::use_awaitable, ec));
    };
    co_await asio::async_write(stream, asio::buffer(question), token());
    std::string answer;
    std::array<char, 4096> some{};
    while (!ec) {
      const std::size_t n = co_await stream.async_read_some(asio::buffer(some), token());
      answer.append(some.data(), n);
      const std::size_t head = answer.find("\r\n\r\n");
      if (head != answer.npos && answer.size() >= head + 4 + body)
        co_return answer.starts_with("HTTP/1.1 200") &&
          answer.substr(head + 4) == std::string(body, 'b');
    }
    co_return false;
  }

  /// Comes a few times an hour, and asks a few times.
  awaitable honest(std::uint32_t seed)
  {
    random r(seed);
    for (;;) {
      co_await wheel_.async_wait(std::chrono::seconds{below(r, 3600)}, asio::use_awaitable);
      if (wheel_.now() >= end_) co_return;
      simulated_stream stream = connect(line(r));
      for (std::uint32_t left = 1 + below(r, 8); left != 0; --left) {
        const bool ok = co_await ask(stream, below(r, 2000));
        ++(ok ? answered_ : lost_);
        note(ok);
        if (!ok) break;
        co_await wheel_.async_wait(std::chrono::milliseconds{below(r, 5000)}, asio::use_awaitable);
      }
    }
  }

  awaitable hostile(std::uint32_t seed)
  {
    random r(seed);
    for (;;) {
      co_await wheel_.async_wait(std::chrono::seconds{below(r, 3600)}, asio::use_awaitable);
      if (wheel_.now() >= end_) co_return;
      simulated_link link = line(r);
      link.loss = 0;
      std::string text = request(4000);
      const std::size_t head = text.size() - 4000;
      std::size_t chunk = 0;
      auto fault = simulated_fault::resume;  // which is none
      std::size_t behind = 0;
      const std::uint32_t kind = below(r, 6);
      switch (kind) {
        case 0:  // drips
          chunk = 1;
          link.bytes_per_second = 2;
          link.send_buffer = 10;  // or it has said it all at once, to its own side
          ++expected_[web::phase::header];
          break;
        case 1:  // vanishes in the header
          fault = simulated_fault::drop;
          behind = below(r, static_cast<std::uint32_t>(head));
          ++expected_[web::phase::header];
          break;
        case 2:  // vanishes in the body
          fault = simulated_fault::drop;
          behind = head + below(r, 4000);
          ++expected_[web::phase::body];
          break;
        case 3:  // never reads
          link.send_buffer = 1000;
          ++expected_[web::phase::write];
          ++expected_requests_;
          break;
        case 4:  // resets
          fault = simulated_fault::reset;
          behind = below(r, static_cast<std::uint32_t>(text.size()));
          break;
        default:  // asks once, and vanishes
          ++expected_[web::phase::idle];
      }
      simulated_stream stream = connect(link);
      stream.chunk(chunk);
      stream.inject_after_bytes(behind, fault);
      error_code ec;
      if (kind == 5) {
        ++(co_await ask(stream, 100) ? answered_ : lost_);
        stream.inject(simulated_fault::drop);
      } else {
        co_await asio::async_write(
          stream, asio::buffer(text),
          timeout_after(5min, asio::redirect_error(asio::use_awaitable, ec)));
      }
      note(kind);
      co_await wheel_.async_wait(1min, asio::use_awaitable);
    }
  }

  asio::io_context context_;
  wheel_timer_service& wheel_ = make_wheel(context_);
  virtual_time time_{wheel_};
  web::server<timed_stream<simulated_stream>> server_{context_, web::settings{}};
  random random_;
  wheel_timer_service::time_point start_;
  wheel_timer_service::time_point end_;
  std::uint64_t answered_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t expected_requests_ = 0;  ///< of hostile clients
  web::by_phase<std::uint64_t> expected_{};
  std::uint64_t hash_ = 0xcbf29ce484222325U;
  int wrong_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
  const auto argument = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  const int seeds = argument(1, 2);
  const int first = argument(2, 1);
  const int clients = argument(3, 100);
  const std::chrono::hours length{argument(4, 3)};
  std::uint64_t hash_of_first = 0;
  std::size_t heap = 0;
  // The first one comes twice: it warms memory up, and must give the same events again.
  for (int i = -1; i < seeds; ++i) {
    const int seed = first + std::max(i, 0);
    const auto begin = std::chrono::steady_clock::now();
    bool ok = false;
    {
      day d(static_cast<std::uint32_t>(seed), clients, length);
      ok = d.run(length);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      std::printf("seed %d, %.2f s: ", seed, took.count());
      d.print();
      if (i == -1) hash_of_first = d.hash();
      if (i == 0 && d.hash() != hash_of_first) {
        std::printf("wrong: the same seed gave other events\n");
        ok = false;
      }
    }
    if (i == -1) heap = support::heap_in_use();
    if (support::heap_in_use() > heap + 65536) {
      std::printf("wrong: memory grew from %zu to %zu bytes\n", heap, support::heap_in_use());
      ok = false;
    }
    if (!ok) {
      std::printf("the first seed that fails: %d\n", seed);
      return 1;
    }
  }
  return 0;
}
