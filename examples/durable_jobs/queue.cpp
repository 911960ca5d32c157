#include "queue.hpp"

#include "scripts.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace durable_jobs {

namespace {

/// For those that do not keep their promise: how long the others wait before they look themselves.
constexpr milliseconds grace(250);

std::vector<bool> flags(const redis::reply& r)
{
  std::vector<bool> all;
  for (const auto& each : r.elements()) all.push_back(each.integer() != 0);
  return all;
}

job job_in(const redis::reply& r)
{
  const auto f = r.elements();
  if (f.size() != 6) throw redis::bad_reply("a job has six fields");
  return {std::string(f[0].text()), std::string(f[1].text()),     f[2].integer(),
          f[3].integer(),           milliseconds(f[4].integer()), milliseconds(f[5].integer())};
}

listed listed_in(const redis::reply& r)
{
  const auto f = r.elements();
  if (f.size() != 7) throw redis::bad_reply("a job in a list has seven fields");
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
    renew_(make_script(renew_script)),
    finish_(make_script(finish_script)),
    cancel_(make_script(cancel_script)),
    retry_(make_script(retry_script)),
    list_(make_script(list_script))
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
  const auto fields = r.elements();
  if (fields.size() != 3) throw redis::bad_reply("a claim has three fields");
  claimed c;
  if (fields[0].integer() >= 0) c.next_look = milliseconds(fields[0].integer());
  c.promised = fields[1].integer();
  for (const auto& each : fields[2].elements()) c.jobs.push_back(job_in(each));
  co_return c;
}

asio::awaitable<std::vector<bool>> queue::renew(clock::time_point deadline, milliseconds lease,
                                                std::vector<job> jobs)
{
  words w{fmt::to_string(lease.count())};
  for (const auto& j : jobs) {
    w.push_back(j.key);
    w.push_back(fmt::to_string(j.fence));
  }
  co_return flags(co_await client_.call(deadline, renew_, keys_, std::move(w)));
}

asio::awaitable<std::vector<bool>> queue::finish(clock::time_point deadline, int attempts,
                                                 bool keep_results, std::vector<outcome> outcomes)
{
  words w{fmt::to_string(attempts), keep_results ? "1" : "0"};
  for (const auto& o : outcomes) {
    w.push_back(o.key);
    w.push_back(fmt::to_string(o.fence));
    w.push_back(fmt::to_string(o.due.count()));
    w.emplace_back(o.what);
    w.push_back(o.text);
    w.push_back(fmt::to_string(o.delay.count()));
  }
  co_return flags(co_await client_.call(deadline, finish_, keys_, std::move(w)));
}

asio::awaitable<bool> queue::cancel(clock::time_point deadline, std::string key)
{
  words w(1, key);
  const auto r = co_await client_.call(deadline, cancel_, keys_, std::move(w));
  co_return r.integer() != 0;
}

asio::awaitable<std::int64_t> queue::retry(clock::time_point deadline, std::string key)
{
  words w(1, key);
  const auto r = co_await client_.call(deadline, retry_, keys_, std::move(w));
  co_return r.integer();
}

asio::awaitable<listing> queue::list(clock::time_point deadline, int most)
{
  words w(1, fmt::to_string(most));
  const auto r = co_await client_.call(deadline, list_, keys_, std::move(w));
  const auto fields = r.elements();
  if (fields.size() != 5) throw redis::bad_reply("a list has five fields");
  listing l;
  l.now = milliseconds(fields[0].integer());
  l.due = fields[1].integer();
  l.leased = fields[2].integer();
  l.dead = fields[3].integer();
  for (const auto& each : fields[4].elements()) l.jobs.push_back(listed_in(each));
  co_return l;
}

asio::awaitable<bool> queue::wait_for_marker(redis::client& c, std::string key,
                                             std::chrono::seconds longest)
{
  const auto r = co_await c.command(clock::now() + longest + std::chrono::seconds(2), "BLPOP", key,
                                    longest.count());
  co_return !r.is_nil();
}

}  // namespace durable_jobs
