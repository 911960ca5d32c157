// The RPC protocol: frames, and their bytes. No sockets and no timers.
//
//   | length: 4 bytes | kind: 1 byte | id: 8 bytes | payload: length - 9 bytes |
//
// Numbers are big-endian; `length` counts what follows it. The id of a call is the client's choice,
// and its answer carries the same one.
//
// The client keeps an idle connection alive with pings; the server's figures say how often.
#pragma once

#include <fmt/core.h>
#include <boost/endian/conversion.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rpc {

enum class kind : std::uint8_t {
  call = 1,     // client: 4 bytes, how many ms the answer is waited for; 4 bytes, how many ms to
                // hold it back; the rest is to be echoed
  stats_query,  // client: a call for server_figures
  answer,       // server: what was to be echoed, or asked for
  ping,         // client: I am here, are you?
  pong,         // server: yes
  dropped       // server: the time for this call has run out, and it was not served
};

inline constexpr std::size_t length_bytes = 4;
inline constexpr std::size_t head_bytes = 9;  // kind and id
inline constexpr std::size_t longest_body = 4096;
inline constexpr std::size_t longest_frame = length_bytes + longest_body;
inline constexpr std::chrono::milliseconds longest_stall{60'000};

/// The peer does not speak this protocol: its next frame cannot be found, or makes no sense.
struct protocol_error : std::runtime_error {
  using runtime_error::runtime_error;
};

struct frame {
  kind what;
  std::uint64_t id;
  std::string_view payload;  // points into the bytes that the frame came from
};

inline const unsigned char* bytes_of(std::string_view s)
{
  return reinterpret_cast<const unsigned char*>(s.data());
}

template <class Number>
void put_number(std::string& out, Number value)
{
  boost::endian::native_to_big_inplace(value);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline void put_frame(std::string& out, kind what, std::uint64_t id, std::string_view payload)
{
  if (payload.size() > longest_body - head_bytes) throw std::length_error("rpc: payload too long");
  put_number(out, static_cast<std::uint32_t>(head_bytes + payload.size()));
  out.push_back(static_cast<char>(what));
  put_number(out, id);
  out.append(payload);
}

/// Takes the first frame off the front of `bytes`; none if it is not complete. Checks the length as
/// soon as it has arrived, before anybody makes room for a senseless one.
inline std::optional<frame> take_frame(std::string_view& bytes)
{
  if (bytes.size() < length_bytes) return std::nullopt;
  const std::size_t length = boost::endian::load_big_u32(bytes_of(bytes));
  if (length < head_bytes || length > longest_body)
    throw protocol_error(fmt::format("a frame's length must be within {}..{}, not {}", head_bytes,
                                     longest_body, length));
  if (bytes.size() < length_bytes + length) return std::nullopt;

  const std::string_view body = bytes.substr(length_bytes, length);
  bytes.remove_prefix(length_bytes + length);
  return frame{static_cast<kind>(body[0]), boost::endian::load_big_u64(bytes_of(body) + 1),
               body.substr(head_bytes)};
}

/// The payload of kind::call.
struct call_request {
  std::chrono::milliseconds budget;  // what is left of the caller's deadline; clocks may differ
  std::chrono::milliseconds stall;
  std::string_view text;
};

inline std::string to_payload(const call_request& call)
{
  std::string out;
  put_number(out, static_cast<std::uint32_t>(call.budget.count()));
  put_number(out, static_cast<std::uint32_t>(call.stall.count()));
  out.append(call.text);
  return out;
}

inline call_request parse_call(std::string_view payload)
{
  if (payload.size() < 8) throw protocol_error("a call has a payload of at least 8 bytes");
  const std::chrono::milliseconds budget{boost::endian::load_big_u32(bytes_of(payload))};
  const std::chrono::milliseconds stall{boost::endian::load_big_u32(bytes_of(payload) + 4)};
  if (stall > longest_stall)
    throw protocol_error(fmt::format("a call may be stalled for up to {} ms, not {} ms",
                                     longest_stall.count(), stall.count()));
  return {budget, stall, payload.substr(8)};
}

/// The answer to kind::stats_query. Totals since the server started, apart from the last two.
struct server_figures {
  std::uint64_t connections = 0;  // accepted
  std::uint64_t calls = 0;        // received
  std::uint64_t stalled = 0;      // of these, how many asked to be stalled
  std::uint64_t answers = 0;      // sent
  std::uint64_t dropped = 0;      // calls whose time had run out before they were served
  std::uint64_t heartbeats = 0;   // pings received, and answered
  std::uint64_t idle_drops = 0;   // connections closed because nothing came from them
  std::uint64_t wakeups = 0;      // of the process: voluntary context switches
  std::uint64_t cpu_us = 0;       // processor time of the whole process
  std::uint64_t idle_timeout_ms = 0;
  std::uint64_t heartbeat_ms = 0;  // a client must say something at least this often

  static constexpr std::array all{
    &server_figures::connections,     &server_figures::calls,       &server_figures::stalled,
    &server_figures::answers,         &server_figures::dropped,     &server_figures::heartbeats,
    &server_figures::idle_drops,      &server_figures::wakeups,     &server_figures::cpu_us,
    &server_figures::idle_timeout_ms, &server_figures::heartbeat_ms};
};

inline std::string to_payload(const server_figures& figures)
{
  std::string out;
  for (const auto member : server_figures::all) put_number(out, figures.*member);
  return out;
}

inline server_figures parse_figures(std::string_view payload)
{
  server_figures figures;
  if (payload.size() != 8 * server_figures::all.size())
    throw protocol_error("the server's figures do not have the expected length");
  for (const auto member : server_figures::all) {
    figures.*member = boost::endian::load_big_u64(bytes_of(payload));
    payload.remove_prefix(8);
  }
  return figures;
}

}  // namespace rpc
