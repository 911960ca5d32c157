// What the server answers: files of a directory, an echo, and its own statistics.
#pragma once

#include "settings.hpp"

#include <asio_wheel.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>

namespace web {

namespace beast = boost::beast;
namespace http = beast::http;

class site {
public:
  using request = http::request<http::string_body>;

  /// Throws std::runtime_error if the root is no directory that can be read. What it refers to has
  /// to outlive it.
  site(const settings& s, const counters& counted, const policies& timeouts,
       std::function<std::size_t()> connections, const asio_wheel::wheel_timer_service& wheel);

  http::message_generator answer(request&& r) const;

private:
  http::message_generator answer_file(const request& r, std::string_view path) const;

  /// The file meant by a request's path: one inside of the root, or none.
  std::optional<std::filesystem::path> locate(std::string_view path) const;

  const std::filesystem::path root_;
  const counters& counters_;
  const policies& policies_;
  const std::function<std::size_t()> connections_;
  const asio_wheel::wheel_timer_service& wheel_;
};

/// The status for a request that could not be read: what the client is to be told, if it can be.
std::optional<http::status> status_of(beast::error_code ec);

/// The answer to such a request, after which the connection is closed.
http::message_generator refuse(http::status why);

}  // namespace web
