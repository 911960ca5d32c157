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

}  // namespace

void reply::throw_unexpected(std::string what) const
{
  throw failure(*server_, failure::kind::unexpected, std::move(what));
}

void reply::throw_not(std::string_view wanted) const
{
  throw_unexpected(fmt::format("the reply is {}, not {}", name_of(raw_->type), wanted));
}

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
  throw_not("a string");
}

std::int64_t reply::integer() const
{
  if (raw_ && raw_->type == REDIS_REPLY_INTEGER) return raw_->integer;
  const std::string_view digits = text();
  std::int64_t value = 0;
  const char* const end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, value) != std::from_chars_result{end, std::errc()})
    throw_unexpected(fmt::format("the reply '{}' is no integer", digits));
  return value;
}

std::vector<reply> reply::elements() const
{
  std::vector<reply> all;
  if (is_nil()) return all;
  if (raw_->type != REDIS_REPLY_ARRAY) throw_not("an array");
  all.reserve(raw_->elements);
  for (const redisReply* each : std::span(raw_->element, raw_->elements))
    all.emplace_back(std::shared_ptr<const redisReply>(raw_, each), server_);
  return all;
}

std::vector<reply> reply::elements(std::size_t count) const
{
  auto all = elements();
  if (all.size() != count)
    throw_unexpected(fmt::format("the reply has {} elements, not {}", all.size(), count));
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

reader::reader(std::shared_ptr<const address> server)
  : raw_(redisReaderCreate()),
    server_(std::move(server))
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
  return reply({static_cast<redisReply*>(found), freeReplyObject}, server_);
}

}  // namespace redis
