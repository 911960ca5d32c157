// Redis' protocol, as hiredis speaks it: commands into bytes, bytes into replies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;
struct redisReply;

namespace redis {

/// A reply that is not what was asked for, or no reply at all.
struct bad_reply : std::runtime_error {
  using runtime_error::runtime_error;
};

/// What the server said, or an element of it. A copy refers to the same, which is freed with the
/// last one.
class reply {
public:
  reply() = default;
  explicit reply(std::shared_ptr<const redisReply> raw) : raw_(std::move(raw)) {}

  [[nodiscard]] bool is_nil() const;
  [[nodiscard]] bool is_error() const;

  /// Of a string, a status or an error. The text lives as long as the reply. Throws bad_reply.
  [[nodiscard]] std::string_view text() const;

  /// Throws bad_reply, also if the text of a string is no number.
  [[nodiscard]] std::int64_t integer() const;

  /// The elements of an array; none if it is nil. Throws bad_reply.
  [[nodiscard]] std::vector<reply> elements() const;

private:
  std::shared_ptr<const redisReply> raw_;  // none: nil
};

/// A command and its arguments, which may hold any bytes, as it is sent.
std::string format_command(std::span<const std::string> words);

/// Takes the bytes that come in, and gives the replies that are complete.
class reader {
public:
  reader();

  /// Throws bad_reply.
  void feed(std::string_view bytes);

  /// The next reply, or nothing until there are more bytes. Throws bad_reply.
  std::optional<reply> next();

private:
  struct free_reader {
    void operator()(redisReader* r) const;
  };

  std::unique_ptr<redisReader, free_reader> raw_;
};

}  // namespace redis
