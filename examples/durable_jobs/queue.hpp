// A queue of delayed jobs in a Redis server, as its users and its workers see it.
//
// A job is a payload under a key, due at a time. A worker claims what is due: it gets a lease,
// which it has to renew, and a fence, a number higher than all before, by which the queue tells a
// result that comes too late. A job runs **at least once**: again after a failure, after its worker
// died or was stopped for longer than its lease, and if the reply to a claim was lost. Its result,
// in this Redis, is written **exactly once**.
#pragma once

#include "../redis/client.hpp"

#include <boost/asio.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace durable_jobs {

namespace asio = boost::asio;
using redis::clock;
using std::chrono::milliseconds;

struct new_job {
  std::string key, payload;
  milliseconds delay{0};
  std::optional<milliseconds> at;  // since 1970, by the server's clock; instead of a delay
  milliseconds period{0};          // of one that repeats
  bool is_unique = false;          // leaves one of the same key alone, else it is replaced
};

/// A job that a worker has.
struct job {
  std::string key, payload;
  std::int64_t fence = 0;
  std::int64_t attempt = 1;
  milliseconds due{0};   // since 1970
  milliseconds late{0};  // when it was claimed
};

/// What became of it.
struct outcome {
  std::string key;
  std::int64_t fence = 0;
  milliseconds due{0};
  std::string_view what;  // "done", "failed", "given back", or "goes on"
  std::string text;       // the result, or why it failed
  milliseconds time{0};   // the delay of the next attempt, or the lease of one that goes on
};

struct claim_options {
  std::size_t room = 1;  // how many at most; 0: none, but a promise is given back
  milliseconds lease{10'000};
  int attempts = 10;          // before a job is given up
  std::int64_t promised = 0;  // what the last claim of this worker said
};

struct claimed {
  std::vector<job> jobs;
  std::optional<milliseconds> next_look;  // none: not before something happens
  std::int64_t promised = 0;              // others rely on this look; 0: they do not
};

struct listed {
  std::string state, key, payload, error;
  milliseconds at{0};
  std::int64_t attempts = 0, fence = 0;
};

struct listing {
  milliseconds now{0};
  std::int64_t due = 0, leased = 0, dead = 0;
  std::vector<listed> jobs;
};

/// Each member sends one command and throws as redis::client::command does. All but claim() may be
/// repeated if it is not known whether they had an effect. Not thread-safe.
class queue {
public:
  /// The client has to live longer. Throws std::invalid_argument for a name with braces.
  queue(redis::client& c, const std::string& name);

  /// Whether it was added: false if it is to be unique and is not.
  asio::awaitable<bool> add(clock::time_point deadline, new_job j);

  asio::awaitable<claimed> claim(clock::time_point deadline, claim_options o);

  /// Which of the jobs were still those of the holder of the fence: the others' outcomes do not
  /// count.
  asio::awaitable<std::vector<bool>> report(clock::time_point deadline, int attempts,
                                            bool keep_results, std::vector<outcome> outcomes);

  /// Whether there was one. A worker that has it loses it.
  asio::awaitable<bool> cancel(clock::time_point deadline, std::string key);

  /// Gives a dead job, or with an empty key up to 1000 of them, another try. Returns how many.
  asio::awaitable<std::int64_t> retry(clock::time_point deadline, std::string key);

  asio::awaitable<listing> list(clock::time_point deadline, int most);

  /// Waits until the head of the queue has to be looked at, or the time is over: whether it has to.
  /// On a client of its own: commands behind this one would wait as well.
  static asio::awaitable<bool> wait_for_marker(redis::client& c, std::string key,
                                               std::chrono::seconds longest);

  [[nodiscard]] const std::string& marker_key() const { return keys_[10]; }

private:
  using words = redis::client::words;

  asio::awaitable<redis::reply> manage(clock::time_point deadline, std::string command,
                                       std::string which);

  redis::client& client_;
  words keys_;
  redis::script add_, claim_, report_, manage_;
};

}  // namespace durable_jobs
