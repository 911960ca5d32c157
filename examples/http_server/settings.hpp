// What the server is told, and what it counts.
#pragma once

#include <asio_wheel/idle_window.hpp>
#include <asio_wheel/timeout_policy.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace web {

/// What a connection is doing, each with a deadline of its own.
enum class phase {
  header,  // waits for the end of a request's header; a new connection starts here
  body,    // waits for the rest of the request
  write,   // sends the answer
  idle     // waits for the next request to begin
};
inline constexpr std::size_t phases = 4;
inline constexpr std::array<const char*, phases> phase_names{"header", "body", "write", "idle"};

/// One for each phase.
template <class T>
struct by_phase : std::array<T, phases> {
  using std::array<T, phases>::operator[];
  T& operator[](phase p) { return (*this)[static_cast<std::size_t>(p)]; }
  const T& operator[](phase p) const { return (*this)[static_cast<std::size_t>(p)]; }
};

struct settings {
  std::string address = "127.0.0.1";
  int port = 8080;
  std::filesystem::path root = ".";
  by_phase<int> timeouts{5000, 10'000, 30'000, 15'000};  // ms
  int full_idle_timeout = 1000;                          // ms
  int max_connections = 4000;
  int max_header = 8192;  // bytes
  int max_body = 65'536;  // bytes
  bool steady = false;    // deadlines of streams on steady_timer, not on the wheel

  asio_wheel::idle_window idle_window() const
  {
    const std::chrono::milliseconds longest(timeouts[phase::idle]);
    return {std::min(longest, std::chrono::milliseconds(full_idle_timeout)), longest};
  }
};

/// The timeouts, but for that between two requests, which depends on how many places are taken.
class policies {
public:
  explicit policies(const by_phase<int>& ms)
    : header_("header", std::chrono::milliseconds(ms[phase::header])),
      body_("body", std::chrono::milliseconds(ms[phase::body])),
      write_("write", std::chrono::milliseconds(ms[phase::write]))
  {}

  asio_wheel::timeout_policy& operator[](phase p)
  {
    return p == phase::header ? header_ : p == phase::body ? body_ : write_;
  }
  std::array<const asio_wheel::timeout_policy*, 3> all() const
  {
    return {&header_, &body_, &write_};
  }

private:
  asio_wheel::timeout_policy header_, body_, write_;
};

struct counters {
  std::uint64_t accepted = 0;
  std::uint64_t requests = 0;
  std::uint64_t refused = 0;  // requests that broke a limit or made no sense
  std::uint64_t evicted = 0;  // connections that made room for new ones
  by_phase<std::uint64_t> timed_out{};
};

}  // namespace web
