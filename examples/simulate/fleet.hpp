// A server's fleet of connections, and their timeouts on one wheel.
#pragma once

#include "histogram.hpp"

#include <asio_wheel.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

namespace simulate {

using duration = asio_wheel::wheel_timer_service::duration;
using time_point = asio_wheel::wheel_timer_service::time_point;
using real_clock = std::chrono::steady_clock;
using boost::system::error_code;

struct settings {
  std::uint32_t connections = 100'000;
  double hours = 1;           // to be simulated
  double ramp = 30;           // s, the time in which the fleet connects
  double heartbeat = 30;      // s
  int max_missed = 3;         // heartbeats
  double request_every = 60;  // s, the mean of one connection; 0: no requests
  double deadline = 5;        // s, of every request
  double latency = 0.05;      // s, the mean
  double loss = 0.001;        // share of the requests that are never answered
  double failure_every = 24;  // h, the mean of one peer; 0: none fails
  double outage = 0.1;        // share of the peers that fail together at half time
  double reconnect = 10;      // s, within which a lost peer connects again
  std::uint64_t seed = 1;
  asio_wheel::wheel_options wheel;
};

/// What happened so far.
struct figures {
  std::uint64_t beats = 0;  // heartbeats that were due
  std::uint64_t requests = 0;
  std::uint64_t answered = 0;      // before the deadline, which is then cancelled
  std::uint64_t timed_out = 0;     // the deadline came first
  std::uint64_t late_answers = 0;  // to requests that timed out
  std::uint64_t failures = 0;      // of peers; noticed later
  std::uint64_t lost = 0;          // peers that missed too many heartbeats
  std::uint64_t reconnects = 0;

  std::uint64_t wakeups = 0;  // ticks at which something was due: a real wheel wakes up for each
  std::uint64_t busiest = 0;  // most waits that were due in one tick

  std::uint64_t expired() const { return beats + timed_out + reconnects; }
  std::uint64_t ended() const { return expired() + answered; }
  std::uint64_t in_flight() const { return requests - answered - timed_out; }
};

/// Every connection has one wait on the wheel, for its next heartbeat or its reconnect. Every
/// request has one, its deadline, which the answer cancels. Requests, their answers and failures
/// come at random, in steps of 10 ms.
///
/// Memory per connection: its wait, whose handler holds all about it, and one byte.
class fleet {
public:
  static constexpr duration step = std::chrono::milliseconds{10};

  fleet(asio_wheel::wheel_timer_service& wheel, const settings& s);

  /// Makes the random events of the next step.
  void begin_step();

  /// Lets a share of the peers fail now.
  void fail_together(double share);

  const figures& counted() const { return counted_; }
  std::uint64_t failing() const { return counted_.failures - counted_.lost; }
  std::uint64_t closed() const { return counted_.lost - counted_.reconnects; }

  /// How long after its deadline a real server would call the handler of a wait: up to a tick, and
  /// the time for everything that is due before it. That time is an estimate from the cost of a
  /// wait here when many are due.
  const histogram& lateness() const { return lateness_; }

private:
  using connection_id = std::uint32_t;
  using request_id = std::uint32_t;

  /// The state of a peer, in a byte: up, failed for this many heartbeats plus one, or closed.
  using peer_state = std::uint8_t;
  static constexpr peer_state up = 0, failed = 1, closed_ = 255;

  struct request {
    asio_wheel::wheel_timer deadline;
    std::uint32_t generation = 0;  // counts the requests that have used this place
  };
  struct answer {
    request_id to;
    std::uint32_t generation;
  };

  void wait(connection_id id, time_point due);
  void turn(connection_id id, time_point due);
  void start_request();
  void await_answer(request_id id);
  void take_answers();
  void fail(connection_id id);
  void end_request(request_id id);
  void note_expiry(time_point due);
  void measure_cost();

  /// A random time of at most `longest` seconds.
  duration any_time(double longest);
  connection_id any_connection();

  asio_wheel::wheel_timer_service& wheel_;
  const settings settings_;
  std::mt19937_64 random_;
  std::poisson_distribution<std::uint64_t> requests_in_a_step_, failures_in_a_step_;
  std::exponential_distribution<double> latency_;

  std::vector<peer_state> peers_;
  std::deque<request> requests_;
  std::vector<request_id> free_requests_;
  std::vector<std::vector<answer>> answers_;  // on their way: a ring with a place for each step
  std::size_t now_ = 0;                       // the present step's place

  figures counted_;
  histogram lateness_;
  duration cost_{};  // of a wait that expires
  time_point measured_{};
  time_point tick_{};  // at which the latest wait expired
  std::uint64_t due_at_tick_ = 0;
  duration backlog_{};  // the work left over at the beginning of that tick
};

}  // namespace simulate
