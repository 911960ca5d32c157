// What happens in the Redis server: the scripts that move jobs from one state into the next. Users
// add and manage jobs; workers claim them and report on them. Each script runs alone, so that
// nobody sees a job between two states, and by the server's clock, so that those of the workers
// need not agree.
//
// A queue q has these keys, all in the slot of {q}:
//
//     due       sorted set   job by the time it is due at, in ms
//     leases    sorted set   job by the time its lease runs out at, while a worker has it
//     dead      sorted set   job by the time it was given up
//     payloads  hash         of each job, in whichever state
//     periods   hash         "<ms> <time of the first run>" of the jobs that repeat
//     attempts  hash         how often each unfinished job has begun
//     fences    hash         the fence of whoever has the job: higher than all before
//     errors    hash         why each job failed last
//     fence     number       the highest fence so far
//     watch     time         when the worker that promised to look at the head will do so
//     wake      list         holds a marker if the head has to be looked at now
//     results   list         of finished jobs, if they are kept
//
// A job is in exactly one of due, leases and dead. One that repeats goes from leases back to due.
#pragma once

#include "../redis/client.hpp"

#include <array>
#include <string>
#include <string_view>

namespace durable_jobs {

inline constexpr std::array<std::string_view, 12> key_names = {
  "due",    "leases", "dead",  "payloads", "periods", "attempts",
  "fences", "errors", "fence", "watch",    "wake",    "results"};

/// What all scripts know.
inline constexpr std::string_view prelude = R"lua(
local due, leases, dead, payloads, periods, attempts, fences, errors, fence, watch, wake, results =
  unpack(KEYS)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Something is to be done at a time: wakes a worker, unless one looks by itself before.
local function tell(at)
  local watched = tonumber(redis.call('GET', watch))
  if (not watched or watched <= now or at < watched) and redis.call('LLEN', wake) == 0 then
    redis.call('RPUSH', wake, 1)
  end
end

local function put_off(job, at)
  redis.call('ZADD', due, at, job)
  tell(at)
end

-- Takes the job from whoever has it.
local function release(job)
  redis.call('ZREM', leases, job)
  redis.call('HDEL', fences, job)
end

local function forget(job)
  release(job)
  redis.call('ZREM', due, job)
  redis.call('ZREM', dead, job)
  for _, each in ipairs({payloads, periods, attempts, errors}) do redis.call('HDEL', each, job) end
end

-- An attempt failed; there is another one after `delay` ms, or none.
local function fail(job, why, most, delay)
  release(job)
  redis.call('HSET', errors, job, why)
  if tonumber(redis.call('HGET', attempts, job) or 0) >= most then
    redis.call('ZADD', dead, now, job)
  else
    put_off(job, now + delay)
  end
end
)lua";

/// job, payload, delay in ms or "", time in ms or "", period in ms or 0, whether to leave one that
/// exists -> whether it was added
inline constexpr std::string_view add_script = R"lua(
local job, payload, delay, at, period, unique = unpack(ARGV)
if redis.call('HEXISTS', payloads, job) == 1 then
  if unique == '1' then return 0 end
  forget(job)
end
at = tonumber(at) or now + tonumber(delay)
redis.call('HSET', payloads, job, payload)
if tonumber(period) > 0 then redis.call('HSET', periods, job, period .. ' ' .. at) end
put_off(job, at)
return 1
)lua";

/// how many, lease in ms, most attempts, the time promised by this worker or 0, how long others
/// wait for who does not keep a promise in ms
///   -> {ms to the next look or -1, the time promised or 0, {job, payload, fence, attempt, due,
///       ms late}...}
///
/// Leases that ran out are reaped first: their jobs failed.
///
/// The head of the queue is what is due first, a job or the end of a lease. One worker with room
/// promises to look at it then; the others look a little later, in case it died meanwhile. A worker
/// without room has no promise: it gives its own to another one, by a marker.
inline constexpr std::string_view claim_script = R"lua(
local room, lease, most, promised, grace =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
for _, job in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, 1000)) do
  fail(job, 'the lease ran out', most, 0)
end
local taken = {}
local ready = room > 0 and
  redis.call('ZRANGEBYSCORE', due, '-inf', now, 'WITHSCORES', 'LIMIT', 0, room) or {}
for i = 1, #ready, 2 do
  local job, at = ready[i], tonumber(ready[i + 1])
  local number = redis.call('INCR', fence)
  redis.call('ZREM', due, job)
  redis.call('ZADD', leases, now + lease, job)
  redis.call('HSET', fences, job, number)
  local attempt = redis.call('HINCRBY', attempts, job, 1)
  taken[#taken + 1] =
    {job, redis.call('HGET', payloads, job), number, attempt, ready[i + 1], now - at}
end

local head = math.huge
for _, each in ipairs({due, leases}) do
  local first = redis.call('ZRANGE', each, 0, 0, 'WITHSCORES')
  if #first > 0 then head = math.min(head, tonumber(first[2])) end
end
local watched = tonumber(redis.call('GET', watch))
if watched and (watched <= now or watched == promised) then
  redis.call('DEL', watch)
  watched = nil
end
if #taken >= room then
  if head < math.huge then tell(head) end
  return {-1, 0, taken}
end
redis.call('DEL', wake)
if head == math.huge then return {-1, 0, taken} end
if watched and watched <= head then return {watched + grace - now, 0, taken} end
redis.call('SET', watch, head)
return {math.max(head - now, 0), head, taken}
)lua";

/// most attempts, whether to keep results, {job, fence, due, what became of it, text, ms}...
///   -> {whether it was still theirs}...
///
/// The text is the result, or why it failed; the time is the delay of the next attempt, or the
/// lease of a job that goes on. The fence is compared and the result written in one step: a result
/// is there exactly once.
inline constexpr std::string_view report_script = R"lua(
local most, keep = tonumber(ARGV[1]), ARGV[2] == '1'
local held = {}
for i = 3, #ARGV, 6 do
  local job, number, at, what, text, ms = unpack(ARGV, i, i + 5)
  local ours = redis.call('HGET', fences, job) == number
  held[#held + 1] = ours and 1 or 0
  if not ours then
    -- Somebody else has it, or it is over.
  elseif what == 'goes on' then
    redis.call('ZADD', leases, now + ms, job)
  elseif what == 'failed' then
    fail(job, text, most, tonumber(ms))
  elseif what == 'given back' then
    release(job)
    redis.call('HINCRBY', attempts, job, -1)
    put_off(job, now)
  else
    if keep then
      redis.call('RPUSH', results, cjson.encode({
        job = job, fence = tonumber(number), due = tonumber(at), finished = now, result = text}))
    end
    local every = redis.call('HGET', periods, job)
    if every then
      local period, first = every:match('(%d+) (%d+)')
      release(job)
      redis.call('HDEL', attempts, job)
      redis.call('HDEL', errors, job)
      put_off(job, first + (math.floor((now - first) / period) + 1) * period)
    else
      forget(job)
    end
  end
end
return held
)lua";

/// "cancel", a job -> whether there was one
///
/// "retry", a dead job or "" for the oldest 1000 -> how many have another try
///
/// "list", how many of each state at most
///   -> {now, how many are due, leased, dead, {state, job, time, payload, attempts, fence,
///   error}...}
inline constexpr std::string_view manage_script = R"lua(
local command, which = unpack(ARGV)
if command == 'cancel' then
  local known = redis.call('HEXISTS', payloads, which)
  forget(which)
  return known
end

if command == 'retry' then
  local jobs = which ~= '' and {which} or redis.call('ZRANGE', dead, 0, 999)
  local count = 0
  for _, job in ipairs(jobs) do
    if redis.call('ZREM', dead, job) == 1 then
      redis.call('HDEL', attempts, job)
      put_off(job, now)
      count = count + 1
    end
  end
  return count
end

local most = tonumber(which)
local found = {}
for state, from in pairs({due = due, leased = leases, dead = dead}) do
  local jobs = most > 0 and redis.call('ZRANGE', from, 0, most - 1, 'WITHSCORES') or {}
  for i = 1, #jobs, 2 do
    local job = jobs[i]
    found[#found + 1] = {state, job, jobs[i + 1], redis.call('HGET', payloads, job) or '',
      redis.call('HGET', attempts, job) or '0', redis.call('HGET', fences, job) or '0',
      redis.call('HGET', errors, job) or ''}
  end
end
return {now, redis.call('ZCARD', due), redis.call('ZCARD', leases), redis.call('ZCARD', dead), found}
)lua";

/// With what all scripts know before it.
inline redis::script make_script(std::string_view body)
{
  return redis::script(std::string(prelude).append(body));
}

}  // namespace durable_jobs
