#include "queue.hpp"

#include "scripts.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace durable_jobs {

namespace {

/// For those that do not keep their promise: how long the others wait before they look themselves.
constexpr milliseconds grace(250);

job job_in(const redis::reply& r)
{
  const auto f = r.elements(6);
  return {std::string(f[0].text()), std::string(f[1].text()),     f[2].integer(),
          f[3].integer(),           milliseconds(f[4].integer()), milliseconds(f[5].integer())};
}

listed listed_in(const redis::reply& r)
{
  const auto f = r.elements(7);
  listed l;
  l.state = f[0].text();
  l.key = f[1].text();
  l.at = milliseconds(f[2].integer());
  l.payload = f[3].text();
  l.attempts = f[4].integer();
  l.fence = f[5].integer();
  l.error = f[6].text();
  return l;
}

}  // namespace

queue::queue(redis::client& c, const std::string& name)
  : client_(c),
    add_(make_script(add_script)),
    claim_(make_script(claim_script)),
    report_(make_script(report_script)),
    manage_(make_script(manage_script))
{
  if (name.empty() || name.find_first_of("{}") != std::string::npos)
    throw std::invalid_argument(fmt::format("the name of a queue has no braces: '{}'", name));
  for (const auto each : key_names) keys_.push_back(fmt::format("jobs:{{{}}}:{}", name, each));
}

asio::awaitable<bool> queue::add(clock::time_point deadline, new_job j)
{
  words w{j.key,
          j.payload,
          fmt::to_string(j.delay.count()),
          j.at ? fmt::to_string(j.at->count()) : "",
          fmt::to_string(j.period.count()),
          j.is_unique ? "1" : "0"};
  const auto r = co_await client_.call(deadline, add_, keys_, std::move(w));
  co_return r.integer() != 0;
}

asio::awaitable<claimed> queue::claim(clock::time_point deadline, claim_options o)
{
  words w{fmt::to_string(o.room), fmt::to_string(o.lease.count()), fmt::to_string(o.attempts),
          fmt::to_string(o.promised), fmt::to_string(grace.count())};
  const auto r = co_await client_.call(deadline, claim_, keys_, std::move(w));
  const auto fields = r.elements(3);
  claimed c;
  if (fields[0].integer() >= 0) c.next_look = milliseconds(fields[0].integer());
  c.promised = fields[1].integer();
  for (const auto& each : fields[2].elements()) c.jobs.push_back(job_in(each));
  co_return c;
}

asio::awaitable<std::vector<bool>> queue::report(clock::time_point deadline, int attempts,
                                                 bool keep_results, std::vector<outcome> outcomes)
{
  words w{fmt::to_string(attempts), keep_results ? "1" : "0"};
  for (const auto& o : outcomes) {
    w.push_back(o.key);
    w.push_back(fmt::to_string(o.fence));
    w.push_back(fmt::to_string(o.due.count()));
    w.emplace_back(o.what);
    w.push_back(o.text);
    w.push_back(fmt::to_string(o.time.count()));
  }
  const auto r = co_await client_.call(deadline, report_, keys_, std::move(w));
  std::vector<bool> counts;
  for (const auto& each : r.elements(outcomes.size())) counts.push_back(each.integer() != 0);
  co_return counts;
}

asio::awaitable<bool> queue::cancel(clock::time_point deadline, std::string key)
{
  const auto r = co_await manage(deadline, "cancel", std::move(key));
  co_return r.integer() != 0;
}

asio::awaitable<std::int64_t> queue::retry(clock::time_point deadline, std::string key)
{
  const auto r = co_await manage(deadline, "retry", std::move(key));
  co_return r.integer();
}

asio::awaitable<listing> queue::list(clock::time_point deadline, int most)
{
  const auto r = co_await manage(deadline, "list", fmt::to_string(most));
  const auto fields = r.elements(5);
  listing l;
  l.now = milliseconds(fields[0].integer());
  l.due = fields[1].integer();
  l.leased = fields[2].integer();
  l.dead = fields[3].integer();
  for (const auto& each : fields[4].elements()) l.jobs.push_back(listed_in(each));
  co_return l;
}

asio::awaitable<redis::reply> queue::manage(clock::time_point deadline, std::string command,
                                            std::string which)
{
  words w{std::move(command), std::move(which)};
  co_return co_await client_.call(deadline, manage_, keys_, std::move(w));
}

asio::awaitable<bool> queue::wait_for_marker(redis::client& c, std::string key,
                                             std::chrono::seconds longest)
{
  const auto r = co_await c.command(clock::now() + longest + std::chrono::seconds(2), "BLPOP", key,
                                    longest.count());
  co_return !r.is_nil();
}

}  // namespace durable_jobs
