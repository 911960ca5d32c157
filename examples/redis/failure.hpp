// Where a Redis server is, and what can go wrong with a command.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace redis {

struct address {
  std::string host = "127.0.0.1";
  int port = 6379;
};

inline std::string to_string(const address& a)
{
  return fmt::format("{}:{}", a.host, a.port);
}

/// A command that failed. what() is "<host>:<port>: <reason>".
class failure : public std::runtime_error {
public:
  enum class kind {
    not_sent,    // there was no connection: the command had no effect
    no_reply,    // the command was sent; whether it had an effect is unknown
    refused,     // the server says no, and why
    unexpected,  // the reply is not what was asked for
  };

  failure(const address& server, kind what, std::string reason)
    : runtime_error(fmt::format("{}: {}", to_string(server), reason)),
      kind_(what),
      reason_(std::move(reason))
  {}

  [[nodiscard]] kind why() const { return kind_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

  /// Whether the server refused with this code, as in "LOADING Redis is loading the dataset".
  [[nodiscard]] bool is(std::string_view code) const
  {
    return kind_ == kind::refused && std::string_view(reason_).substr(0, reason_.find(' ')) == code;
  }

  /// Whether the same command may succeed a little later.
  [[nodiscard]] bool will_pass() const
  {
    if (kind_ != kind::refused) return kind_ != kind::unexpected;
    for (const auto code : {"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY"})
      if (is(code)) return true;
    return false;
  }

private:
  kind kind_;
  std::string reason_;
};

}  // namespace redis
