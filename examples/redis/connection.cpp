#include "connection.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace redis {

connection::connection(tcp::socket socket, const address& server)
  : socket_(std::move(socket)),
    executor_(socket_.get_executor()),
    server_(std::make_shared<const address>(server)),
    reader_(server_)
{
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
}

void connection::start()
{
  asio::co_spawn(executor_, listen(), asio::detached);
}

void connection::close(std::string why)
{
  if (!is_open()) return;
  why_closed_ = std::move(why);
  error_code ignored;
  socket_.close(ignored);
  queued_.clear();
  while (!unanswered_.empty()) {
    finish(first_, asio::error::not_connected, {});
    unanswered_.pop_front();
    ++first_;
  }
}

void connection::send(std::string command, handler_type handler)
{
  unanswered_.push_back(std::move(handler));
  if (!is_open()) {
    finish(first_ + unanswered_.size() - 1, asio::error::not_connected, {});
    unanswered_.pop_back();
    return;
  }
  queued_ += command;
  if (sending_.empty()) write();
}

void connection::write()
{
  sending_.swap(queued_);
  asio::async_write(socket_, asio::buffer(sending_),
                    [self = shared_from_this()](error_code ec, std::size_t) {
                      self->sending_.clear();
                      if (ec) return self->close(ec.message());
                      if (!self->queued_.empty()) self->write();
                    });
}

asio::awaitable<void> connection::listen()
{
  const auto self = shared_from_this();
  std::array<char, 16 * 1024> in;
  try {
    while (true) {
      const std::size_t n = co_await socket_.async_read_some(asio::buffer(in), asio::use_awaitable);
      last_heard_ = clock::now();
      reader_.feed(std::string_view(in.data(), n));
      while (auto r = reader_.next()) {
        if (unanswered_.empty()) throw bad_reply("a reply to no command");
        finish(first_, {}, std::move(*r));
        unanswered_.pop_front();
        ++first_;
      }
    }
  } catch (const bad_reply& e) {
    close(fmt::format("this is not how a Redis server speaks: {}", e.what()));
  } catch (const boost::system::system_error& e) {
    close(e.code() == asio::error::eof ? "the server closed the connection" : e.code().message());
  }
}

void connection::finish(std::uint64_t number, error_code ec, reply r)
{
  if (number < first_ || number - first_ >= unanswered_.size()) return;
  auto handler = std::move(unanswered_[number - first_]);
  if (handler) asio::post(executor_, asio::append(std::move(handler), ec, std::move(r)));
}

}  // namespace redis
