#include "worker.hpp"

#include "log.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace durable_jobs {

namespace {

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);
constexpr auto never = clock::time_point::max();

}  // namespace

worker::worker(const asio::any_io_executor& ex, const worker_options& o, handler h)
  : options_(o),
    executor_(ex),
    handler_(std::move(h)),
    client_(ex, o.redis),
    marker_client_(ex, o.redis),
    queue_(client_, o.queue),
    retry_(o.retry),
    look_(ex),
    rest_(ex, never),
    outcome_(ex, never),
    renewals_(ex, clock::now() + o.lease / 3, o.lease / 3, asio_wheel::missed_tick::skip)
{}

asio::awaitable<void> worker::run()
{
  using namespace asio::experimental::awaitable_operators;
  std::exception_ptr first;  // what the other loops throw only says that they were cancelled
  const auto watch = [&](asio::awaitable<void> loop) -> asio::awaitable<void> {
    try {
      co_await std::move(loop);
    } catch (...) {
      if (!first) first = std::current_exception();
      throw;
    }
  };
  try {
    co_await (watch(look()) && watch(hear()) && watch(keep()) && watch(hand_in()));
  } catch (const asio::multiple_exceptions&) {
    std::rethrow_exception(first);
  }
  client_.close();
}

void worker::stop()
{
  is_stopping_ = true;
  give_back_at_ = clock::now() + options_.grace;
  for (auto& [fence, h] : held_) h.lease.cancel();
  wake_all();
}

worker_stats worker::stats() const
{
  auto s = stats_;
  s.commands = client_.sent() + marker_client_.sent();
  return s;
}

std::size_t worker::room() const
{
  return is_stopping_ ? 0 : options_.concurrency - held_.size();
}

/// Each loop looks whether it is over.
void worker::wake_all()
{
  look_.cancel();
  rest_.cancel();
  outcome_.cancel();
  if (is_stopping_) marker_client_.close();
  if (is_over()) renewals_.cancel();
}

void worker::look_now()
{
  is_resting_ = false;
  next_look_ = {};
  look_.cancel();
}

/// Looks after the head of the queue.
asio::awaitable<void> worker::look()
{
  while (!is_stopping_) {
    if (clock::now() >= next_look_)
      co_await claim();
    else
      co_await sleep(look_, next_look_);
  }
  co_await claim();  // for nothing: another one gets the promise, if there was one
}

asio::awaitable<void> worker::claim()
{
  const auto sent = clock::now();
  next_look_ = never;
  is_resting_ = false;
  try {
    const claim_options o{room(), options_.lease, options_.attempts, std::exchange(promised_, 0)};
    auto c = co_await queue_.claim(sent + options_.timeout, o);
    failures_ = 0;
    promised_ = c.promised;
    if (c.next_look) next_look_ = std::min(next_look_, clock::now() + *c.next_look);
    for (auto& j : c.jobs) begin(std::move(j), sent + options_.lease);
  } catch (const redis::failure& e) {
    if (!e.will_pass()) throw;
    complain("cannot look for jobs", e);
    next_look_ = clock::now() + pause_(++failures_);
    co_return;
  }
  if (options_.poll.count() > 0) {
    next_look_ = sent + options_.poll;
  } else if (room() > 0 && next_look_ > clock::now()) {
    is_resting_ = true;
    rest_.cancel();
  }
}

/// Waits for somebody to leave a marker: there is an earlier job, or one that nobody looks after.
/// A worker without room would only have to pass it on.
asio::awaitable<void> worker::hear()
{
  asio_wheel::wheel_timer pause(executor_);
  int failures = 0;
  while (!is_stopping_) {
    if (!is_resting_) {
      co_await sleep(rest_, never);
      continue;
    }
    try {
      co_await queue::wait_for_marker(marker_client_, queue_.marker_key(), options_.idle);
      failures = 0;
      look_now();
    } catch (const redis::failure& e) {
      if (is_stopping_) co_return;
      if (!e.will_pass()) throw;
      complain("cannot wait for earlier jobs", e);
      ++failures;
    }
    if (failures > 0) co_await sleep(pause, clock::now() + pause_(failures));
  }
}

/// Renews the leases, every third of one.
asio::awaitable<void> worker::keep()
{
  while (!is_over()) {
    const auto [ec, due] = co_await renewals_.async_tick(no_throw);
    if (ec) co_return;
    co_await renew();
  }
}

asio::awaitable<void> worker::renew()
{
  std::vector<outcome> all;
  for (const auto& [fence, h] : held_)
    all.push_back({h.what.key, fence, h.what.due, "goes on", {}, options_.lease});
  if (all.empty()) co_return;
  const auto sent = clock::now();
  try {
    const auto ours = co_await report(sent + options_.lease / 3, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto found = held_.find(all[i].fence);
      if (found == held_.end()) continue;
      held_job& h = found->second;
      h.held_until = ours[i] ? sent + options_.lease : clock::time_point();
      if (!ours[i]) h.lease.cancel();
    }
  } catch (const redis::failure& e) {
    if (!e.will_pass()) throw;
    // There is a turn or two left to try again.
    complain("cannot renew the leases", e);
  }
}

/// Tells the server what became of the jobs, of all at once that ended while it was told the last
/// time.
asio::awaitable<void> worker::hand_in()
{
  asio_wheel::wheel_timer pause(executor_);
  int failures = 0;
  while (!is_over()) {
    if (outcomes_.empty()) {
      co_await sleep(outcome_, never);
      continue;
    }
    const auto all = std::exchange(outcomes_, {});
    try {
      const auto counts = co_await report(clock::now() + options_.timeout, all);
      failures = 0;
      const bool was_full = room() == 0;
      for (std::size_t i = 0; i < all.size(); ++i) end(all[i], counts[i]);
      if (was_full && !is_stopping_ && options_.poll.count() == 0) look_now();
    } catch (const redis::failure& e) {
      if (!e.will_pass()) throw;
      complain("cannot hand in results", e);
      if (clock::now() < last_try()) {
        outcomes_.insert(outcomes_.begin(), all.begin(), all.end());
        ++failures;
      } else {
        for (const auto& o : all) end(o, false);
      }
    }
    if (failures > 0) co_await sleep(pause, clock::now() + pause_(failures));
  }
}

asio::awaitable<std::vector<bool>> worker::report(clock::time_point deadline,
                                                  const std::vector<outcome>& all)
{
  return queue_.report(deadline, options_.attempts, options_.keep_results, all);
}

void worker::begin(job j, clock::time_point held_until)
{
  ++stats_.begun;
  stats_.lateness.add(j.late);
  if (!options_.is_quiet)
    log("job {} fence {} begins: attempt {}, {} ms late", j.key, j.fence, j.attempt,
        j.late.count());
  const auto fence = j.fence;
  auto& h = held_.try_emplace(fence, executor_, std::move(j), held_until).first->second;
  asio::co_spawn(executor_, work_on(h), [this](std::exception_ptr thrown, outcome o) {
    if (thrown) std::rethrow_exception(thrown);
    outcomes_.push_back(std::move(o));
    outcome_.cancel();
  });
}

/// The handler, whatever it throws.
asio::awaitable<outcome> worker::attempt(const job& j)
{
  outcome o{j.key, j.fence, j.due, "done", {}, {}};
  try {
    o.text = co_await handler_(j);
  } catch (const std::exception& e) {
    o.what = "failed";
    o.text = e.what();
    o.time = retry_(static_cast<int>(j.attempt));
  }
  co_return o;
}

/// Whichever ends first, the job or the lease, ends the other one.
asio::awaitable<outcome> worker::work_on(held_job& h)
{
  using namespace asio::experimental::awaitable_operators;
  outcome o{h.what.key, h.what.fence, h.what.due, "given back", {}, {}};
  auto first = co_await (attempt(h.what) || lease_ends(h));
  if (first.index() == 0) o = std::get<0>(std::move(first));
  co_return o;
}

/// Returns when the lease is lost, or the job has to be given back.
asio::awaitable<void> worker::lease_ends(held_job& h)
{
  while (true) {
    const auto end = std::min(h.held_until, give_back_at_);
    if (clock::now() >= end) co_return;
    co_await sleep(h.lease, end);
  }
}

void worker::end(const outcome& o, bool counts)
{
  held_.erase(o.fence);
  if (!counts) {
    ++stats_.lost;
  } else if (o.what == "done") {
    ++stats_.done;
  } else {
    ++(o.what == "failed" ? stats_.failed : stats_.given_back);
  }
  if (!counts)
    log("job {} fence {} is lost: its lease was over, the outcome does not count", o.key, o.fence);
  else if (o.what == "failed")
    log("job {} fence {} failed: {}", o.key, o.fence, o.text);
  else if (!options_.is_quiet)
    log("job {} fence {} is {}", o.key, o.fence, o.what);
  if (is_over()) wake_all();
}

asio::awaitable<void> worker::sleep(asio_wheel::wheel_timer& timer, clock::time_point until)
{
  timer.expires_at(until);
  const auto [ec] = co_await timer.async_wait(no_throw);
  if (ec &&
      (co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
    throw boost::system::system_error(ec);
}

void worker::complain(std::string_view what, const redis::failure& e)
{
  log("{}: {}", what, e.what());
}

}  // namespace durable_jobs
