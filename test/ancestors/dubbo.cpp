// Dubbo: an RPC framework with Netty's wheel in three places. It retries a failed call until it
// succeeds (failback), times out a call without an answer, pings an idle connection and reconnects
// a silent one.
// In our terms: a keyed_scheduler, timeout_after and a heartbeat.
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/manual_operation.hpp"
#include "support/socket_pair.hpp"
#include "support/virtual_wheel.hpp"

namespace asio = boost::asio;
using namespace asio_wheel;
using duration = wheel_timer_service::duration;
using namespace std::chrono_literals;
using support::wheel_in_virtual_time;

namespace {

/// Registers services, and tries failed ones again every 5 s, with one task per service.
class failback_registry {
public:
  explicit failback_registry(wheel_in_virtual_time& c) : time_(c), retries_(c.wheel) {}

  void register_service(const std::string& url)
  {
    if (!reach(url))
      retries_.run_every(
        url, 5s, [this, url] { retry(url); }, most_retries);
  }
  void unregister_service(const std::string& url) { retries_.cancel(url); }

  std::size_t most_retries = forever;
  int failures_to_come = 0;
  std::vector<duration> attempts;       ///< when they were made
  std::vector<std::string> registered;  ///< what came through

  [[nodiscard]] std::size_t retrying() const { return retries_.size(); }

private:
  bool reach(const std::string& url)
  {
    attempts.push_back(time_.elapsed());
    if (failures_to_come-- > 0) return false;
    registered.push_back(url);
    return true;
  }
  void retry(const std::string& url)
  {
    if (reach(url)) retries_.cancel(url);
  }

  wheel_in_virtual_time& time_;
  keyed_scheduler<std::string> retries_;
};

/// Calls that wait for their responses, by request id.
struct pending_calls : wheel_in_virtual_time {
  struct call {
    explicit call(asio::any_io_executor ex) : response(std::move(ex)) {}

    support::manual_operation response;
    support::result result;
    duration ended{};
  };

  void request(int id, duration timeout)
  {
    auto& c = calls.try_emplace(id, wheel.get_executor()).first->second;
    c.response.async_run(timeout_after(wheel, timeout, [&](error_code ec, std::size_t n) {
      c.result.recorder()(ec, n);
      c.ended = elapsed();
    }));
  }

  /// Returns whether a call waited for it.
  bool respond(int id, std::size_t answer)
  {
    auto& response = calls.at(id).response;
    if (!response.running()) return false;
    response.complete({}, answer);
    return true;
  }

  [[nodiscard]] const support::result& result_of(int id) const { return calls.at(id).result; }

  std::map<int, call> calls;
};

/// The client's side of a connection. While the peer is up, it answers pings and accepts
/// connections.
struct connection : wheel_in_virtual_time {
  connection() { await_event(); }

  void await_event()
  {
    beat.async_next([this](error_code ec, heartbeat_event event) {
      if (ec) return;
      (event == heartbeat_event::send_ping ? pings : reconnects).push_back(elapsed());
      beat.sent();
      if (peer_is_up) beat.received();
      await_event();
    });
  }

  heartbeat beat{wheel, {.interval = 1min, .max_missed = 3}};
  bool peer_is_up = true;
  std::vector<duration> pings;
  std::vector<duration> reconnects;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(dubbo)

BOOST_AUTO_TEST_CASE(a_failed_call_is_retried_until_it_succeeds)
{
  wheel_in_virtual_time c;
  failback_registry registry(c);
  registry.failures_to_come = 4;
  registry.register_service("greeter");
  c.time.advance(1h);
  BOOST_TEST((registry.attempts == std::vector<duration>{0s, 5s, 10s, 15s, 20s}));
  BOOST_TEST((registry.registered == std::vector<std::string>{"greeter"}));
  BOOST_TEST(c.wheel.pending() == 0U);
}

BOOST_AUTO_TEST_CASE(a_call_that_succeeds_is_not_retried)
{
  wheel_in_virtual_time c;
  failback_registry registry(c);
  registry.register_service("greeter");
  BOOST_TEST(registry.retrying() == 0U);
  c.time.advance(1h);
  BOOST_TEST(registry.attempts.size() == 1U);
}

BOOST_AUTO_TEST_CASE(retries_may_be_limited)
{
  wheel_in_virtual_time c;
  failback_registry registry(c);
  registry.most_retries = 3;
  registry.failures_to_come = 1000;
  registry.register_service("greeter");
  c.time.advance(1h);
  BOOST_TEST((registry.attempts == std::vector<duration>{0s, 5s, 10s, 15s}));
  BOOST_TEST(registry.retrying() == 0U);
  BOOST_TEST(registry.registered.empty());
}

BOOST_AUTO_TEST_CASE(there_is_one_retry_task_per_service)
{
  wheel_in_virtual_time c;
  failback_registry registry(c);
  registry.failures_to_come = 1000;
  registry.register_service("greeter");
  registry.register_service("greeter");
  registry.register_service("clock");
  BOOST_TEST(registry.retrying() == 2U);
  c.time.advance(5s);
  BOOST_TEST(registry.attempts.size() == 3U + 2U);
}

BOOST_AUTO_TEST_CASE(a_service_that_is_unregistered_is_not_retried)
{
  wheel_in_virtual_time c;
  failback_registry registry(c);
  registry.failures_to_come = 1000;
  registry.register_service("greeter");
  c.time.advance(7s);
  registry.unregister_service("greeter");
  c.time.advance(1h);
  BOOST_TEST((registry.attempts == std::vector<duration>{0s, 5s}));
}

BOOST_AUTO_TEST_CASE(a_call_without_a_response_is_timed_out)
{
  pending_calls c;
  c.request(1, 1s);
  c.time.advance(999ms);
  BOOST_TEST(c.result_of(1).pending());
  c.time.advance(1s);
  BOOST_TEST(c.result_of(1).failed(asio::error::timed_out));
  BOOST_TEST((c.calls.at(1).ended == 1s));
}

BOOST_AUTO_TEST_CASE(a_response_ends_the_call_and_its_timeout)
{
  pending_calls c;
  c.request(1, 1s);
  c.time.advance(500ms);
  BOOST_TEST(c.respond(1, 42));
  c.time.advance(0s);
  BOOST_TEST(c.result_of(1).succeeded(42));
  BOOST_TEST(c.wheel.pending() == 0U);
  BOOST_TEST(c.time.advance(1h) == 0U);
}

BOOST_AUTO_TEST_CASE(a_late_response_finds_no_call)
{
  pending_calls c;
  c.request(1, 1s);
  c.time.advance(1s);
  BOOST_TEST(!c.respond(1, 42));
  BOOST_TEST(c.result_of(1).failed(asio::error::timed_out));
}

BOOST_AUTO_TEST_CASE(each_call_has_a_timeout_of_its_own)
{
  pending_calls c;
  for (int id = 1; id <= 100; ++id) c.request(id, id * 100ms);
  for (int id = 2; id <= 100; id += 2) c.respond(id, static_cast<std::size_t>(id));
  c.time.advance(1min);
  for (int id = 1; id <= 100; id += 2) {
    BOOST_TEST(c.result_of(id).failed(asio::error::timed_out));
    BOOST_TEST((c.calls.at(id).ended == id * 100ms));
    BOOST_TEST(c.result_of(id + 1).succeeded(static_cast<std::size_t>(id) + 1));
  }
}

BOOST_AUTO_TEST_CASE(a_connection_is_good_for_the_next_call_after_a_timeout)
{
  wheel_in_virtual_time c;
  support::pair_socket client(c.context);
  support::pair_socket server(c.context);
  support::connect_pair(client, server);
  char response = 0;
  support::result result;
  const auto await_response = [&] {
    result = {};
    asio::async_read(client, asio::buffer(&response, 1), timeout_after(1s, result.recorder()));
  };

  await_response();
  c.time.advance(2s);
  BOOST_TEST(result.failed(asio::error::timed_out));
  await_response();
  asio::write(server, asio::buffer("y", 1));
  c.time.advance(0s);
  BOOST_TEST(result.succeeded(1));
  BOOST_TEST(response == 'y');
}

BOOST_AUTO_TEST_CASE(an_idle_connection_gets_a_heartbeat_each_interval)
{
  connection c;
  c.time.advance(3min + 30s);
  BOOST_TEST((c.pings == std::vector<duration>{1min, 2min, 3min}));
  BOOST_TEST(c.reconnects.empty());
}

BOOST_AUTO_TEST_CASE(a_busy_connection_gets_no_heartbeat)
{
  connection c;
  for (int i = 0; i < 100; ++i) {
    c.time.advance(50s);
    c.beat.sent();
    c.beat.received();
  }
  BOOST_TEST(c.pings.empty());
}

BOOST_AUTO_TEST_CASE(three_missed_heartbeats_lead_to_a_reconnect)
{
  connection c;
  c.time.advance(1min);  // the last heartbeat that is answered
  c.peer_is_up = false;
  c.time.advance(3min + 59s);
  BOOST_TEST((c.pings == std::vector<duration>{1min, 2min, 3min, 4min}));
  BOOST_TEST(c.reconnects.empty());
  c.peer_is_up = true;
  c.time.advance(1s);
  BOOST_TEST((c.reconnects == std::vector<duration>{5min}));
  c.time.advance(1min);
  BOOST_TEST((c.pings.back() == 6min));
  BOOST_TEST(c.reconnects.size() == 1U);
}

BOOST_AUTO_TEST_CASE(reconnects_are_tried_until_the_peer_is_back)
{
  connection c;
  c.peer_is_up = false;
  c.time.advance(6min);
  BOOST_TEST((c.reconnects == std::vector<duration>{4min, 5min, 6min}));
  c.peer_is_up = true;
  c.time.advance(1h);
  BOOST_TEST((c.reconnects == std::vector<duration>{4min, 5min, 6min, 7min}));
  BOOST_TEST((c.pings.back() == 66min));
}

BOOST_AUTO_TEST_SUITE_END()
