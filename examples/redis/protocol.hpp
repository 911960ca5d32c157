// Redis' protocol, as hiredis speaks it: commands into bytes, bytes into replies.
#pragma once

#include "failure.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct redisReader;
struct redisReply;

namespace redis {

/// Bytes that are no reply.
struct bad_reply : std::runtime_error {
  using runtime_error::runtime_error;
};

/// What a server said, or an element of it. A copy refers to the same, which is freed with the last
/// one. Each accessor throws failure, of the kind unexpected, if the reply is something else.
class reply {
public:
  /// None, where there is an error instead.
  reply() = default;

  reply(std::shared_ptr<const redisReply> raw, std::shared_ptr<const address> server)
    : raw_(std::move(raw)),
      server_(std::move(server))
  {}

  [[nodiscard]] bool is_nil() const;
  [[nodiscard]] bool is_error() const;

  /// Of a string, a status or an error. The text lives as long as the reply.
  [[nodiscard]] std::string_view text() const;

  /// Or a string that is a number.
  [[nodiscard]] std::int64_t integer() const;

  /// The elements of an array; none if it is nil.
  [[nodiscard]] std::vector<reply> elements() const;

  /// The elements of an array that has so many.
  [[nodiscard]] std::vector<reply> elements(std::size_t count) const;

private:
  [[noreturn]] void throw_unexpected(std::string what) const;
  [[noreturn]] void throw_not(std::string_view wanted) const;

  std::shared_ptr<const redisReply> raw_;
  std::shared_ptr<const address> server_;
};

/// A command and its arguments, which may hold any bytes, as it is sent.
std::string format_command(std::span<const std::string> words);

/// Takes the bytes that come in, and gives the replies that are complete.
class reader {
public:
  /// For what this server says.
  explicit reader(std::shared_ptr<const address> server);

  /// Throws bad_reply.
  void feed(std::string_view bytes);

  /// The next reply, or nothing until there are more bytes. Throws bad_reply.
  std::optional<reply> next();

private:
  struct free_reader {
    void operator()(redisReader* r) const;
  };

  std::unique_ptr<redisReader, free_reader> raw_;
  std::shared_ptr<const address> server_;
};

}  // namespace redis
