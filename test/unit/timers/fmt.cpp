// How statistics and options read.
#include <asio_wheel.hpp>
#include <asio_wheel/fmt.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

using namespace asio_wheel;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> lines_of(const std::string& text)
{
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// How a duration reads, taken from a line that has one.
std::string tick_of(std::chrono::nanoseconds tick)
{
  wheel_options options;
  options.tick = tick;
  const std::string text = fmt::format("{}", options);
  constexpr std::size_t begin = std::string_view("tick ").size();
  return text.substr(begin, text.find(',') - begin);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(formatting)

BOOST_AUTO_TEST_CASE(options_fill_one_line)
{
  wheel_options options;
  BOOST_TEST(fmt::format("{}", options) ==
             "tick 1 ms, slots 1024, shards auto, max_pending unlimited, clock precise");
  options = {
    .tick = 250us, .slots = 64, .shards = 4, .max_pending = 100'000, .clock = clock_source::coarse};
  BOOST_TEST(fmt::format("{}", options) ==
             "tick 250 us, slots 64, shards 4, max_pending 100000, clock coarse");
}

BOOST_AUTO_TEST_CASE(durations_have_three_digits_and_a_unit)
{
  BOOST_TEST(tick_of(0ns) == "0 ns");
  BOOST_TEST(tick_of(999ns) == "999 ns");
  BOOST_TEST(tick_of(1us) == "1 us");
  BOOST_TEST(tick_of(1'048'576ns) == "1.05 ms");
  BOOST_TEST(tick_of(999'499us) == "999 ms");
  BOOST_TEST(tick_of(999'500us) == "1 s");
  BOOST_TEST(tick_of(90s) == "90 s");
  BOOST_TEST(tick_of(10min) == "10 min");
  BOOST_TEST(tick_of(36h) == "36 h");
  BOOST_TEST(tick_of(24h * 100) == "100 d");
  BOOST_TEST(tick_of(std::chrono::nanoseconds::max()) == "292 y");
}

BOOST_AUTO_TEST_CASE(clock_sources_have_names_and_take_a_width)
{
  BOOST_TEST(fmt::format("{}", clock_source::precise) == "precise");
  BOOST_TEST(fmt::format("[{:>8}]", clock_source::coarse) == "[  coarse]");
  BOOST_TEST(fmt::format("{}", static_cast<clock_source>(7)) == "clock_source(7)");
}

BOOST_AUTO_TEST_CASE(stats_are_aligned_with_a_line_for_each_counter)
{
  wheel_stats stats;
  stats.pending = 3;
  stats.started = 12'345;
  stats.expired = 12;
  stats.cancelled = 12'330;
  stats.met = 8;
  stats.abandoned = 2;
  stats.rejected = 4;
  stats.wakeups = 5;
  stats.cascaded = 6;
  stats.largest_batch = 7;
  for (int i = 0; i < 10; ++i) stats.lateness.add(600us);
  stats.lateness.add(3ms);
  BOOST_TEST(fmt::format("{}", stats) ==
             "pending            3\n"
             "started        12345\n"
             "expired           12\n"
             "cancelled      12330\n"
             "met                8\n"
             "abandoned          2\n"
             "rejected           4\n"
             "wakeups            5\n"
             "cascaded           6\n"
             "largest batch      7\n"
             "lateness       p50 1.05 ms, p90 1.05 ms, p99 3 ms, max 3 ms");
}

BOOST_AUTO_TEST_CASE(a_histogram_draws_the_buckets_between_the_first_and_the_last)
{
  log2_histogram h;
  for (int i = 0; i < 100; ++i) h.add(1us);
  for (int i = 0; i < 25; ++i) h.add(4us);
  BOOST_TEST(fmt::format("{}", h) ==
             "count 125, p50 1.02 us, p90 4 us, p99 4 us, max 4 us\n"
             "< 1.02 us   100  ########################################\n"
             "< 2.05 us     0\n"
             "< 4.1 us     25  ##########");
}

BOOST_AUTO_TEST_CASE(a_histogram_of_nothing_is_one_line)
{
  BOOST_TEST(fmt::format("{}", log2_histogram{}) ==
             "count 0, p50 0 ns, p90 0 ns, p99 0 ns, max 0 ns");
}

BOOST_AUTO_TEST_CASE(a_histogram_of_extremes_stays_aligned)
{
  log2_histogram h;
  h.add(0ns);
  h.add(std::chrono::nanoseconds::max());
  const auto lines = lines_of(fmt::format("{}", h));
  BOOST_REQUIRE(lines.size() == 65U);
  BOOST_TEST(lines[1] == "< 1 ns      1  ########################################");
  BOOST_TEST(lines[2] == "< 2 ns      0");
  BOOST_TEST(lines[64] == "< 292 y     1  ########################################");
  for (std::size_t i = 1; i < lines.size(); ++i) BOOST_TEST(lines[i].substr(10, 2) == "  ");
}

BOOST_AUTO_TEST_CASE(pending_handlers_are_a_table)
{
  pending_handlers p;
  p.read_at += 1h;
  BOOST_TEST(fmt::format("{}", p) == "count  earliest  latest  handler");
  p.rows = {{"shop::basket_expired", 1234567, p.read_at + 3ms, p.read_at.max()},
            {"shop::order_paid", 2, p.read_at - 20us, p.read_at}};
  BOOST_TEST(fmt::format("{}", p) ==
             "  count   earliest   latest  handler\n"
             "1234567    in 3 ms    never  shop::basket_expired\n"
             "      2  20 us ago  in 0 ns  shop::order_paid");
}

BOOST_AUTO_TEST_CASE(prometheus_gets_every_counter_with_help_and_type)
{
  wheel_stats stats;
  stats.pending = 3;
  stats.met = 8;
  const std::string text = prometheus(stats);
  for (const auto* line :
       {"# HELP asio_wheel_pending Waits that have neither begun nor been cancelled.",
        "# TYPE asio_wheel_pending gauge", "asio_wheel_pending 3",
        "# TYPE asio_wheel_met_total counter", "asio_wheel_met_total 8",
        "asio_wheel_started_total 0", "asio_wheel_expired_total 0", "asio_wheel_cancelled_total 0",
        "asio_wheel_abandoned 0", "asio_wheel_rejected_total 0", "asio_wheel_wakeups_total 0",
        "asio_wheel_cascaded_total 0", "asio_wheel_largest_batch 0",
        "# TYPE asio_wheel_lateness_seconds histogram"}) {
    const auto lines = lines_of(text);
    BOOST_TEST((std::count(lines.begin(), lines.end(), line) == 1), line);
  }
  BOOST_TEST(text.back() == '\n');
}

BOOST_AUTO_TEST_CASE(prometheus_gets_lateness_as_a_cumulative_histogram_in_seconds)
{
  wheel_stats stats;
  stats.lateness.add(0ns);
  stats.lateness.add(1023ns);
  stats.lateness.add(1024ns);
  stats.lateness.add(100s);
  const auto lines = lines_of(prometheus(stats, R"(wheel="clients")"));
  for (const auto* line :
       {R"(asio_wheel_lateness_seconds_bucket{wheel="clients",le="1.023e-06"} 2)",
        R"(asio_wheel_lateness_seconds_bucket{wheel="clients",le="2.047e-06"} 3)",
        R"(asio_wheel_lateness_seconds_bucket{wheel="clients",le="68.719476735"} 3)",
        R"(asio_wheel_lateness_seconds_bucket{wheel="clients",le="+Inf"} 4)",
        R"(asio_wheel_lateness_seconds_sum{wheel="clients"} 100.000002047)",
        R"(asio_wheel_lateness_seconds_count{wheel="clients"} 4)"})
    BOOST_TEST((std::count(lines.begin(), lines.end(), line) == 1), line);
}

BOOST_AUTO_TEST_CASE(a_wheel_describes_itself)
{
  boost::asio::io_context context;
  auto& wheel = make_wheel(context, {.shards = 2});
  BOOST_TEST(fmt::format("{}", wheel.options()) ==
             "tick 1 ms, slots 1024, shards 2, max_pending unlimited, clock precise");
  BOOST_TEST(lines_of(fmt::format("{}", wheel.stats())).size() == 11U);
}

BOOST_AUTO_TEST_SUITE_END()
