// The server's figures at one moment, and the ways to show them.
#pragma once

#include "settings.hpp"

#include <asio_wheel/pending_handlers.hpp>
#include <asio_wheel/wheel_stats.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace web {

struct snapshot {
  const counters& counted;
  const policies& timeouts;
  std::size_t connections;
  double pressure;
  asio_wheel::wheel_stats wheel;
  asio_wheel::pending_handlers waiting;
};

std::string to_text(const snapshot& s);
std::string to_json(const snapshot& s);

/// For a Prometheus server.
std::string to_metrics(const snapshot& s);

/// An HTML page that draws what /stats.json says, all in one piece.
extern const std::string_view stats_page;

}  // namespace web
