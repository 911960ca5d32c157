// A worker: takes what is due in a queue, has it done, and says how it went.
#pragma once

#include "../redis/client.hpp"
#include "queue.hpp"

#include <asio_wheel.hpp>
#include <boost/asio.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace durable_jobs {

struct worker_options {
  redis::options redis;
  std::string queue = "default";
  std::size_t concurrency = 10;  // jobs at a time
  milliseconds lease{10'000};    // renewed every third of it
  milliseconds timeout{2'000};   // of a command
  milliseconds grace{5'000};     // for what runs when the worker is stopped
  int attempts = 10;             // before a job is given up
  redis::backoff retry{milliseconds(1000), milliseconds(600'000)};  // of a job that failed
  std::chrono::seconds idle{30};  // looks at least this often, in case a marker was lost
  milliseconds poll{0};           // more than 0: looks this often instead of waiting
  bool keep_results = false;
  bool is_quiet = false;  // does not tell of each job
};

struct worker_stats {
  std::uint64_t begun = 0, done = 0, failed = 0, lost = 0, given_back = 0, commands = 0;
  asio_wheel::log2_histogram lateness;  // of claims
};

/// Has one wait for the head of the queue, on the wheel; an earlier job ends it, by a marker in a
/// list that one of the workers is given. One wheel_interval renews the leases of all jobs that it
/// has, in one command; what became of jobs meanwhile goes to the server in one command as well.
///
/// Not thread-safe: all of it runs on the executor.
class worker {
public:
  /// Does a job and returns its result; throws if it failed. It is cancelled if the lease is lost:
  /// what it does from then on does not count.
  using handler = std::function<asio::awaitable<std::string>(const job&)>;

  worker(const asio::any_io_executor& ex, const worker_options& o, handler h);

  /// Works until it is stopped.
  asio::awaitable<void> run();

  /// Takes no further jobs, and gives back those that are not done within the grace.
  void stop();

  [[nodiscard]] worker_stats stats() const;

private:
  /// A job that is ours as long as the lease is renewed. The server counts the lease from when it
  /// is told, so that this ends a little earlier than there.
  struct held_job {
    held_job(const asio::any_io_executor& ex, job j, clock::time_point until)
      : what(std::move(j)),
        held_until(until),
        lease(ex)
    {}

    const job what;
    clock::time_point held_until;
    asio_wheel::wheel_timer lease;  // expires with it, or a renewal before
  };

  asio::awaitable<void> look();
  asio::awaitable<void> claim();
  asio::awaitable<void> hear();
  asio::awaitable<void> keep();
  asio::awaitable<void> renew();
  asio::awaitable<void> hand_in();
  asio::awaitable<std::vector<bool>> report(clock::time_point deadline,
                                            const std::vector<outcome>& all);

  void begin(job j, clock::time_point held_until);
  asio::awaitable<outcome> attempt(const job& j);
  asio::awaitable<outcome> work_on(held_job& h);
  asio::awaitable<void> lease_ends(held_job& h);
  void end(const outcome& o, bool counts);

  [[nodiscard]] bool is_over() const { return is_stopping_ && held_.empty(); }
  [[nodiscard]] std::size_t room() const;
  /// When a worker that is stopped gives up handing in.
  [[nodiscard]] clock::time_point last_try() const
  {
    return is_stopping_ ? give_back_at_ + options_.timeout : clock::time_point::max();
  }
  void look_now();
  void wake_all();
  asio::awaitable<void> sleep(asio_wheel::wheel_timer& timer, clock::time_point until);
  void complain(std::string_view what, const redis::failure& e);

  const worker_options options_;
  asio::any_io_executor executor_;
  handler handler_;
  redis::client client_;
  redis::client marker_client_;  // a command that blocks holds up those behind it
  queue queue_;
  redis::backoff pause_{milliseconds(50), milliseconds(250)};  // after a command that failed
  redis::backoff retry_;

  asio_wheel::wheel_timer look_;  // the wait for the head of the queue
  clock::time_point next_look_{};
  std::int64_t promised_ = 0;
  int failures_ = 0;                 // to look, in a row
  asio_wheel::wheel_timer rest_;     // never expires: cancelled when the worker begins to rest
  bool is_resting_ = false;          // has room, and has looked
  asio_wheel::wheel_timer outcome_;  // never expires: cancelled when there is an outcome
  asio_wheel::wheel_interval renewals_;

  std::map<std::int64_t, held_job> held_;  // by their fences, until the server knows the outcome
  std::vector<outcome> outcomes_;          // that the server does not know
  bool is_stopping_ = false;
  clock::time_point give_back_at_ = clock::time_point::max();
  worker_stats stats_;
};

}  // namespace durable_jobs
