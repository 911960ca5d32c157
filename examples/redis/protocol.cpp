#include "protocol.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <charconv>
#include <new>
#include <system_error>

namespace redis {

namespace {

std::string_view name_of(int type)
{
  switch (type) {
    case REDIS_REPLY_STRING: return "a string";
    case REDIS_REPLY_ARRAY: return "an array";
    case REDIS_REPLY_INTEGER: return "an integer";
    case REDIS_REPLY_NIL: return "nil";
    case REDIS_REPLY_STATUS: return "a status";
    case REDIS_REPLY_ERROR: return "an error";
    default: return "of a kind that was not asked for";
  }
}

[[noreturn]] void throw_not(std::string_view wanted, const redisReply* raw)
{
  throw bad_reply(
    fmt::format("the reply is {}, not {}", name_of(raw ? raw->type : REDIS_REPLY_NIL), wanted));
}

}  // namespace

bool reply::is_nil() const
{
  return !raw_ || raw_->type == REDIS_REPLY_NIL;
}

bool reply::is_error() const
{
  return raw_ && raw_->type == REDIS_REPLY_ERROR;
}

std::string_view reply::text() const
{
  if (raw_ && (raw_->type == REDIS_REPLY_STRING || raw_->type == REDIS_REPLY_STATUS ||
               raw_->type == REDIS_REPLY_ERROR))
    return {raw_->str, raw_->len};
  throw_not("a string", raw_.get());
}

std::int64_t reply::integer() const
{
  if (raw_ && raw_->type == REDIS_REPLY_INTEGER) return raw_->integer;
  const std::string_view digits = text();
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, value) != std::from_chars_result{end, std::errc()})
    throw bad_reply(fmt::format("the reply '{}' is no integer", digits));
  return value;
}

std::vector<reply> reply::elements() const
{
  std::vector<reply> all;
  if (is_nil()) return all;
  if (raw_->type != REDIS_REPLY_ARRAY) throw_not("an array", raw_.get());
  all.reserve(raw_->elements);
  for (const redisReply* each : std::span(raw_->element, raw_->elements))
    all.emplace_back(std::shared_ptr<const redisReply>(raw_, each));
  return all;
}

std::string format_command(std::span<const std::string> words)
{
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* bytes = nullptr;
  const auto length =
    redisFormatCommandArgv(&bytes, static_cast<int>(words.size()), texts.data(), lengths.data());
  if (length < 0) throw std::bad_alloc();
  const std::unique_ptr<char, void (*)(char*)> owner(bytes, redisFreeCommand);
  return {bytes, static_cast<std::size_t>(length)};
}

reader::reader() : raw_(redisReaderCreate())
{
  if (!raw_) throw std::bad_alloc();
}

void reader::free_reader::operator()(redisReader* r) const
{
  redisReaderFree(r);
}

void reader::feed(std::string_view bytes)
{
  if (redisReaderFeed(raw_.get(), bytes.data(), bytes.size()) != REDIS_OK)
    throw bad_reply(redisReaderGetError(raw_.get()));
}

std::optional<reply> reader::next()
{
  void* found = nullptr;
  if (redisReaderGetReply(raw_.get(), &found) != REDIS_OK)
    throw bad_reply(redisReaderGetError(raw_.get()));
  if (!found) return std::nullopt;
  return reply(std::shared_ptr<const redisReply>(static_cast<redisReply*>(found), freeReplyObject));
}

}  // namespace redis
