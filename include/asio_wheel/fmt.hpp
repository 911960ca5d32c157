// L3 timers: how statistics and options read, for {fmt} and for Prometheus. The umbrella header
// leaves it out. The program brings its own {fmt}: the library itself does without.
#pragma once

#include <asio_wheel/detail/base/config.hpp>

#include <asio_wheel/pending_handlers.hpp>
#include <asio_wheel/timeout_policy.hpp>
#include <asio_wheel/wheel_options.hpp>
#include <asio_wheel/wheel_stats.hpp>

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

namespace asio_wheel {
namespace detail {

[[nodiscard]] ASIO_WHEEL_EXPORT std::string text_of(clock_source clock);
[[nodiscard]] ASIO_WHEEL_EXPORT std::string text_of(const wheel_options& options);
[[nodiscard]] ASIO_WHEEL_EXPORT std::string text_of(const wheel_stats& stats);
[[nodiscard]] ASIO_WHEEL_EXPORT std::string text_of(const log2_histogram& histogram);
[[nodiscard]] ASIO_WHEEL_EXPORT std::string text_of(const pending_handlers& pending);

}  // namespace detail

/// Formats a `T` as a text, with fill, alignment and width as for any string.
///
///     clock_source      coarse
///     wheel_options     tick 1 ms, slots 1024, shards 2, max_pending unlimited, clock coarse
///     wheel_stats       a line for each counter and one for the lateness
///     log2_histogram    a line of percentiles and one for each bucket, with a bar
///     pending_handlers  a table with a line for each type of handler
///
/// Durations are rounded to three digits. No line break at the end.
template <class T>
struct text_formatter : fmt::formatter<std::string_view> {
  /// Appends the text.
  fmt::format_context::iterator format(const T& value, fmt::format_context& context) const
  {
    return fmt::formatter<std::string_view>::format(detail::text_of(value), context);
  }
};

/// All of `stats` in Prometheus' text format, as a server answers a scrape of /metrics:
/// `text/plain; version=0.0.4`. doc/observing.md says what the figures mean.
///
/// Names begin with asio_wheel_. The lateness is a histogram in seconds, with the same buckets in
/// every reading, from 1 us to 69 s.
///
/// @param stats   a reading.
/// @param labels  what tells this wheel from the process's others: a list in Prometheus' own form,
///                as `wheel="clients",zone="b"`, with escaped values.
/// Exceptions: std::bad_alloc.
[[nodiscard]] ASIO_WHEEL_EXPORT std::string prometheus(const wheel_stats& stats,
                                                       std::string_view labels = {});

/// A reading with its labels.
struct labelled_stats {
  wheel_stats stats;        ///< a reading
  std::string_view labels;  ///< as above
};

/// Several wheels in one text. Their labels must differ.
[[nodiscard]] ASIO_WHEEL_EXPORT std::string prometheus(std::span<const labelled_stats> wheels);

/// The figures of policies in Prometheus' text format, each with its name as the label `policy`.
/// Names of metrics begin with asio_wheel_timeout_. The share used is a histogram from 1/128 to 1.
///
/// @param policies  all of the program, for one text. Their names must differ.
/// @param labels    what all policies have beside their names; may be empty.
/// Exceptions: std::bad_alloc.
[[nodiscard]] ASIO_WHEEL_EXPORT std::string prometheus(
  std::span<const timeout_policy* const> policies, std::string_view labels = {});

/// The figures of one policy.
[[nodiscard]] inline std::string prometheus(const timeout_policy& policy,
                                            std::string_view labels = {})
{
  const timeout_policy* const one[] = {&policy};
  return prometheus(one, labels);
}

}  // namespace asio_wheel

template <>
struct fmt::formatter<asio_wheel::clock_source>
  : asio_wheel::text_formatter<asio_wheel::clock_source> {};
template <>
struct fmt::formatter<asio_wheel::wheel_options>
  : asio_wheel::text_formatter<asio_wheel::wheel_options> {};
template <>
struct fmt::formatter<asio_wheel::wheel_stats>
  : asio_wheel::text_formatter<asio_wheel::wheel_stats> {};
template <>
struct fmt::formatter<asio_wheel::log2_histogram>
  : asio_wheel::text_formatter<asio_wheel::log2_histogram> {};
template <>
struct fmt::formatter<asio_wheel::pending_handlers>
  : asio_wheel::text_formatter<asio_wheel::pending_handlers> {};
