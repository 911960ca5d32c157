#include "fleet.hpp"

#include <boost/asio.hpp>

#include <algorithm>
#include <limits>

namespace simulate {
namespace {

/// The clock that measures the cost of a wait.
constexpr int measured_waits = 64;

duration seconds(double s)
{
  return std::chrono::duration_cast<duration>(std::chrono::duration<double>(s));
}

/// How often something happens in a step if it happens to each of `n` every `mean` seconds. A mean
/// of 0 means never.
std::poisson_distribution<std::uint64_t> in_a_step(double n, double mean)
{
  const double step = std::chrono::duration<double>(fleet::step).count();
  constexpr double none = std::numeric_limits<double>::min();
  return std::poisson_distribution<std::uint64_t>(mean > 0 ? n * step / mean : none);
}

}  // namespace

fleet::fleet(asio_wheel::wheel_timer_service& wheel, const settings& s)
  : wheel_(wheel),
    settings_(s),
    random_(s.seed),
    requests_in_a_step_(in_a_step(s.connections, s.request_every)),
    failures_in_a_step_(in_a_step(s.connections, s.failure_every * 3600)),
    latency_(1 / s.latency),
    peers_(s.connections, up),
    // An answer that takes longer than two deadlines counts as lost.
    answers_(static_cast<std::size_t>(seconds(2 * s.deadline) / step) + 2)
{
  const auto real_start = real_clock::now();
  const time_point start = wheel.now();
  const double gap = s.ramp / s.connections;
  for (connection_id id = 0; id < s.connections; ++id)
    wait(id, start + seconds(gap * id + s.heartbeat) + any_time(gap));
  cost_ = (real_clock::now() - real_start) / s.connections;
}

void fleet::wait(connection_id id, time_point due)
{
  wheel_.async_wait(due, [this, due, id](error_code ec) {
    if (!ec) turn(id, due);
  });
}

/// Called when a connection's next heartbeat, or its reconnect, is due.
void fleet::turn(connection_id id, time_point due)
{
  note_expiry(due);
  peer_state& peer = peers_[id];
  if (peer == closed_) {
    peer = up;
    ++counted_.reconnects;
  } else {
    ++counted_.beats;
    if (peer != up && peer++ == settings_.max_missed) {
      peer = closed_;
      ++counted_.lost;
      return wait(id, due + any_time(settings_.reconnect));
    }
  }
  // Counts from the last due time, so that the interval does not depend on the tick.
  wait(id, due + seconds(settings_.heartbeat));
}

void fleet::begin_step()
{
  take_answers();
  for (auto n = failures_in_a_step_(random_); n > 0; --n) fail(any_connection());
  for (auto n = requests_in_a_step_(random_); n > 0; --n) start_request();
}

void fleet::fail_together(double share)
{
  std::bernoulli_distribution hit(share);
  for (connection_id id = 0; id < peers_.size(); ++id)
    if (hit(random_)) fail(id);
}

void fleet::fail(connection_id id)
{
  if (peers_[id] != up) return;
  peers_[id] = failed;
  ++counted_.failures;
}

void fleet::start_request()
{
  const peer_state peer = peers_[any_connection()];
  if (peer == closed_) return;
  ++counted_.requests;
  if (free_requests_.empty()) {
    free_requests_.push_back(static_cast<request_id>(requests_.size()));
    requests_.push_back({asio_wheel::wheel_timer(wheel_)});
  }
  const request_id id = free_requests_.back();
  free_requests_.pop_back();

  const duration into_step = any_time(std::chrono::duration<double>(step).count());
  const time_point due = wheel_.now() + into_step + seconds(settings_.deadline);
  request& r = requests_[id];
  r.deadline.expires_at(due);
  r.deadline.async_wait([this, due, id](error_code ec) {
    if (ec) return;
    note_expiry(due);
    ++counted_.timed_out;
    end_request(id);
  });

  const bool lost = std::uniform_real_distribution<>()(random_) < settings_.loss;
  const auto arrival =
    static_cast<std::size_t>((into_step + seconds(latency_(random_))) / step) + 1;
  if (peer == up && !lost && arrival < answers_.size())
    answers_[(now_ + arrival) % answers_.size()].push_back({id, r.generation});
}

void fleet::take_answers()
{
  now_ = (now_ + 1) % answers_.size();
  for (const answer& a : answers_[now_]) {
    if (requests_[a.to].generation == a.generation) {
      ++counted_.answered;
      requests_[a.to].deadline.cancel();
      end_request(a.to);
    } else {
      ++counted_.late_answers;
    }
  }
  answers_[now_].clear();
}

void fleet::end_request(request_id id)
{
  ++requests_[id].generation;
  free_requests_.push_back(id);
}

void fleet::note_expiry(time_point due)
{
  const time_point now = wheel_.now();
  if (now != tick_) {
    const duration work = static_cast<duration::rep>(due_at_tick_) * cost_;
    backlog_ = std::max(duration::zero(), backlog_ + work - (now - tick_));
    tick_ = now;
    due_at_tick_ = 0;
    ++counted_.wakeups;
  }
  if (++due_at_tick_ % measured_waits == 0) measure_cost();
  counted_.busiest = std::max(counted_.busiest, due_at_tick_);
  lateness_.add(now - due + backlog_ + static_cast<duration::rep>(due_at_tick_) * cost_);
}

void fleet::measure_cost()
{
  const auto now = real_clock::now();
  if (due_at_tick_ > measured_waits) {
    // Limited, because a much higher cost means that the process was interrupted.
    const duration cost = std::min((now - measured_) / measured_waits, 2 * cost_);
    cost_ += (cost - cost_) / 16;
  }
  measured_ = now;
}

duration fleet::any_time(double longest)
{
  return seconds(std::uniform_real_distribution<>(0, longest)(random_));
}

fleet::connection_id fleet::any_connection()
{
  return std::uniform_int_distribution<connection_id>(0, settings_.connections - 1)(random_);
}

}  // namespace simulate
