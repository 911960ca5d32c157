// One connection of the client: its calls in flight by id, each with a deadline on the wheel.
//
// A call ends in one of three ways, whichever is first: its answer comes, its deadline expires, the
// connection goes away. Not thread-safe: all of it runs on the connection's executor.
#pragma once

#include "connection.hpp"
#include "protocol.hpp"
#include "report.hpp"

#include <fmt/format.h>
#include <boost/asio.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace rpc {

/// When the next call is due, and whether the server shall stall it: the same for all connections.
class call_plan {
public:
  call_plan(double calls_per_second, double stalled_share, clock::duration allowed_time,
            std::chrono::milliseconds stall)
    : allowed(allowed_time),
      gap_(calls_per_second),
      share_(stalled_share),
      stall_(stall)
  {}

  const clock::duration allowed;  // from a call to its deadline

  /// Random, as if many users had no idea of each other.
  clock::duration next_gap()
  {
    return std::chrono::duration_cast<clock::duration>(
      std::chrono::duration<double>(gap_(random_)));
  }

  /// Not random: the share is exact.
  std::chrono::milliseconds next_stall()
  {
    owed_ += share_;
    if (owed_ < 1) return {};
    owed_ -= 1;
    return stall_;
  }

private:
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;
  double share_, owed_ = 0;
  std::chrono::milliseconds stall_;
};

class caller : public std::enable_shared_from_this<caller> {
public:
  enum class manner {
    talkative,  // makes calls and answers heartbeats
    silent,     // never sends anything, so that the server will drop it
    uncounted   // answers heartbeats; not a part of the load
  };

  /// `earliest_drop`: if it is silent, before this the server must not drop it.
  caller(tcp::socket socket, tally& t, manner m, clock::time_point earliest_drop)
    : tally_(t),
      connection_(std::make_shared<connection>(std::move(socket))),
      manner_(m),
      earliest_drop_(earliest_drop),
      next_call_(connection_->executor()),
      figures_asked_(connection_->executor())
  {}

  void start()
  {
    asio::co_spawn(
      connection_->executor(), [self = shared_from_this()] { return self->listen(); }, rethrow);
  }

  bool is_open() const { return connection_->is_open(); }

  /// Makes calls as planned until `end`, or until stop_calling().
  asio::awaitable<void> make_calls(call_plan& plan, clock::time_point end)
  {
    error_code ec;
    // From one due time to the next, so that a late wake-up does not lower the rate.
    for (auto due = clock::now() + plan.next_gap(); due < end && !calling_stopped_;
         due += plan.next_gap()) {
      next_call_.expires_at(due);
      co_await next_call_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
      if (!connection_->has_room()) co_await connection_->room();
      if (ec || calling_stopped_ || !is_open()) co_return;
      call(plan.next_stall(), plan.allowed);
    }
  }

  void stop_calling()
  {
    calling_stopped_ = true;
    next_call_.cancel();
  }

  /// Nothing if the server does not answer in time.
  asio::awaitable<std::optional<server_figures>> ask_figures(clock::duration timeout)
  {
    figures_.reset();
    if (!is_open()) co_return figures_;
    connection_->send(kind::stats_query, ++last_id_);
    error_code ec;
    figures_asked_.expires_after(timeout);  // receiving them cancels it
    co_await figures_asked_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    co_return figures_;
  }

  /// Calls in flight are forgotten: the owner waits for them before.
  void close()
  {
    closing_ = true;
    calls_.clear();
    hang_up();
  }

private:
  struct call_in_flight {
    timer wait;  // for the deadline; destroying it cancels it
    clock::time_point deadline;
    bool stalled;
  };

  void call(std::chrono::milliseconds stall, clock::duration allowed)
  {
    const std::uint64_t id = ++last_id_;
    const bool stalled = stall.count() != 0;
    const auto deadline = clock::now() + allowed;
    call_in_flight made{timer(connection_->executor(), deadline), deadline, stalled};
    auto& c = calls_.try_emplace(id, std::move(made)).first->second;
    c.wait.async_wait([self = shared_from_this(), id](error_code ec) {
      if (!ec) self->expired(id);
    });
    connection_->send(kind::call, id, to_payload(call_request{stall, text_of(id)}));
    ++tally_.calls;
    if (stalled) ++tally_.stalled;
  }

  void expired(std::uint64_t id)
  {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;  // forgotten by close() while this was queued
    const auto lateness = clock::now() - found->second.deadline;
    if (lateness < clock::duration::zero()) ++tally_.early_deadlines;
    tally_.lateness.push_back(lateness);
    ++tally_.timed_out;
    if (found->second.stalled) ++tally_.stalled_timed_out;
    calls_.erase(found);
  }

  void answered(std::uint64_t id, std::string_view text)
  {
    if (id == 0 || id > last_id_ || text != text_of(id)) {
      ++tally_.unexpected_answers;
      return;
    }
    const auto found = calls_.find(id);
    // After a pause of this process answer and deadline can be here together; the clock decides.
    if (found == calls_.end() || clock::now() >= found->second.deadline) {
      ++tally_.late_answers;
      return;
    }
    // A wait that cannot be cancelled has expired, and the deadline is still to come.
    if (found->second.wait.cancel() == 0) ++tally_.early_deadlines;
    ++tally_.answered;
    calls_.erase(found);
  }

  asio::awaitable<void> listen()
  {
    try {
      while (co_await connection_->read_some()) {
        while (const auto next = connection_->next_frame()) handle(*next);
      }
    } catch (const protocol_error& e) {
      fmt::print(stderr, "rpc_client: closing the connection to {}: {}\n", connection_->peer(),
                 e.what());
    }
    if (!closing_) lost();
    hang_up();
  }

  void hang_up()
  {
    stop_calling();
    figures_asked_.cancel();
    connection_->close();
  }

  void handle(const frame& f)
  {
    switch (f.what) {
      case kind::answer: return answered(f.id, f.payload);
      case kind::ping:
        ++tally_.heartbeats;
        if (manner_ != manner::silent) connection_->send(kind::pong, f.id);
        return;
      case kind::stats:
        figures_ = parse_figures(f.payload);
        figures_asked_.cancel();
        return;
      default:
        throw protocol_error(
          fmt::format("a server does not send frames of kind {}", static_cast<unsigned>(f.what)));
    }
  }

  /// The server has closed the connection.
  void lost()
  {
    if (manner_ == manner::silent && clock::now() >= earliest_drop_)
      ++tally_.idle_drops;
    else if (manner_ != manner::uncounted)
      ++tally_.lost;
    // Those whose deadline has passed by now have timed out, and will soon be told so.
    std::erase_if(calls_, [this, now = clock::now()](const auto& entry) {
      const call_in_flight& c = entry.second;
      if (c.deadline <= now) return false;
      ++tally_.failed;
      if (c.stalled) ++tally_.stalled_failed;
      return true;
    });
  }

  static std::string text_of(std::uint64_t id) { return fmt::format("call {}", id); }

  tally& tally_;
  std::shared_ptr<connection> connection_;
  const manner manner_;
  const clock::time_point earliest_drop_;
  std::unordered_map<std::uint64_t, call_in_flight> calls_;
  std::uint64_t last_id_ = 0;
  timer next_call_;
  bool calling_stopped_ = false, closing_ = false;
  timer figures_asked_;
  std::optional<server_figures> figures_;
};

}  // namespace rpc
