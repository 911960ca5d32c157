// The pages, and the safe way from a request's path to a file.
#include "site.hpp"

#include "stats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>
#include <utility>

namespace web {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view plain = "text/plain; charset=utf-8";

std::string_view type_of(const fs::path& file)
{
  static constexpr std::pair<std::string_view, std::string_view> types[] = {
    {".html", "text/html; charset=utf-8"},
    {".txt", plain},
    {".md", plain},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".jpg", "image/jpeg"}};
  const std::string extension = file.extension().string();
  const auto* const found =
    std::find_if(std::begin(types), std::end(types), [&](auto& t) { return t.first == extension; });
  return found == std::end(types) ? "application/octet-stream" : found->second;
}

/// An answer to `r` as the client is to get it: without the body if it asked by HEAD.
template <class Body>
http::message_generator finish(const site::request& r, http::response<Body>&& answer)
{
  answer.set(http::field::server, "asio_wheel http_server");
  answer.keep_alive(r.keep_alive());
  // An HTTP/1.0 client believes it only if it is told.
  if (r.version() < 11 && r.keep_alive()) answer.set(http::field::connection, "keep-alive");
  answer.prepare_payload();
  if (r.method() != http::verb::head) return std::move(answer);
  return http::response<http::empty_body>(std::move(answer.base()));
}

http::response<http::string_body> text(http::status status, std::string_view type, std::string body)
{
  http::response<http::string_body> answer(status, 11);
  answer.set(http::field::content_type, type);
  answer.set(http::field::cache_control, "no-store");
  answer.body() = std::move(body);
  return answer;
}

http::response<http::string_body> failure(http::status status)
{
  return text(status, plain,
              fmt::format("{} {}\n", static_cast<unsigned>(status),
                          std::string_view(http::obsolete_reason(status))));
}

http::message_generator not_allowed(const site::request& r, std::string_view allowed)
{
  auto answer = failure(http::status::method_not_allowed);
  answer.set(http::field::allow, allowed);
  return finish(r, std::move(answer));
}

/// Without its %XX; none if one of them is broken or there is a zero in it.
std::optional<std::string> decode(std::string_view path)
{
  std::string decoded;
  for (std::size_t i = 0; i != path.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(path[i]);
    if (c == '%') {
      const std::string_view digits = path.substr(i + 1, 2);
      const auto [end, error] = std::from_chars(digits.begin(), digits.end(), c, 16);
      if (error != std::errc() || end != digits.begin() + 2) return std::nullopt;
      i += 2;
    }
    if (c == 0) return std::nullopt;
    decoded += static_cast<char>(c);
  }
  return decoded;
}

/// The path of a request, whose target may also be that of a proxy: http://host/path.
std::string_view path_of(const site::request& r)
{
  std::string_view path = r.target();
  if (beast::iequals(r.target().substr(0, 7), "http://")) {
    path.remove_prefix(7);
    path.remove_prefix(std::min(path.find_first_of("/?"), path.size()));
  }
  path = path.substr(0, path.find('?'));
  return path.empty() ? "/" : path;
}

fs::path directory(const fs::path& root)
{
  std::error_code ec;
  fs::path found = fs::canonical(root, ec);
  if (!ec && !fs::is_directory(found, ec) && !ec)
    ec = std::make_error_code(std::errc::not_a_directory);
  if (ec)
    throw std::runtime_error(fmt::format("cannot serve '{}': {}", root.string(), ec.message()));
  return found;
}

}  // namespace

site::site(const settings& s, const counters& counted, const policies& timeouts,
           std::function<std::size_t()> connections, const asio_wheel::wheel_timer_service& wheel)
  : root_(directory(s.root)),
    counters_(counted),
    policies_(timeouts),
    connections_(std::move(connections)),
    wheel_(wheel)
{}

http::message_generator site::answer(request&& r) const
{
  if (r.version() >= 11 && r.count(http::field::host) != 1)
    return finish(r, failure(http::status::bad_request));
  const std::string_view path = path_of(r);
  if (path == "/echo") {
    if (r.method() != http::verb::post) return not_allowed(r, "POST");
    return finish(r, text(http::status::ok, "application/octet-stream", std::move(r.body())));
  }
  if (r.method() != http::verb::get && r.method() != http::verb::head)
    return not_allowed(r, "GET, HEAD");

  if (path == "/stats.html")
    return finish(r, text(http::status::ok, "text/html; charset=utf-8", std::string(stats_page)));
  if (path != "/stats" && path != "/stats.json" && path != "/metrics") return answer_file(r, path);
  const snapshot now{counters_,         policies_,      connections_(),
                     wheel_.pressure(), wheel_.stats(), wheel_.pending_by_handler()};
  if (path == "/stats") return finish(r, text(http::status::ok, plain, to_text(now)));
  if (path == "/metrics")
    return finish(r, text(http::status::ok, "text/plain; version=0.0.4", to_metrics(now)));
  return finish(r, text(http::status::ok, "application/json", to_json(now)));
}

http::message_generator site::answer_file(const request& r, std::string_view path) const
{
  const auto file = locate(path);
  if (!file) return finish(r, failure(http::status::not_found));
  http::response<http::file_body> answer(http::status::ok, 11);
  beast::error_code ec;
  answer.body().open(file->c_str(), beast::file_mode::scan, ec);
  if (ec) return finish(r, failure(http::status::forbidden));
  answer.set(http::field::content_type, type_of(*file));
  return finish(r, std::move(answer));
}

std::optional<fs::path> site::locate(std::string_view path) const
{
  const auto name = decode(path);
  if (!name || !name->starts_with('/')) return std::nullopt;
  const fs::path asked = fs::path(*name).relative_path();
  if (std::find(asked.begin(), asked.end(), "..") != asked.end()) return std::nullopt;

  std::error_code ec;
  fs::path found = fs::canonical(root_ / asked, ec);
  if (!ec && fs::is_directory(found, ec)) found = fs::canonical(found / "index.html", ec);
  // Anything else may block, as a pipe does.
  if (ec || !fs::is_regular_file(found, ec)) return std::nullopt;
  // Symbolic links are followed, but not out of the root.
  const auto [end, rest] = std::mismatch(root_.begin(), root_.end(), found.begin(), found.end());
  if (end != root_.end()) return std::nullopt;
  return found;
}

std::optional<http::status> status_of(beast::error_code ec)
{
  if (ec == http::error::body_limit) return http::status::payload_too_large;
  if (ec == http::error::header_limit || ec == http::error::buffer_overflow)
    return http::status::request_header_fields_too_large;
  if (ec == http::error::end_of_stream || ec == http::error::partial_message) return std::nullopt;
  if (ec.category() == make_error_code(http::error::bad_method).category())
    return http::status::bad_request;
  return std::nullopt;
}

http::message_generator refuse(http::status why)
{
  site::request unknown;
  unknown.keep_alive(false);
  return finish(unknown, failure(why));
}

}  // namespace web
