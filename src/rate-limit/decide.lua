-- Makes any number of decisions, one after the other, in one atomic step and one round trip.
--
-- The windows of a subject live in one hash: for each its use, its end, and the time of its first refusal. Ends are
-- stored, because TIME plus PTTL vary by a millisecond: every gateway reports the same reset.
--
-- KEYS, for each decision: the hash, the mark of a ban, the number of bans.
-- ARGV[1]: JSON, for each decision its cost and windows. `used` and `resetAt` are what the gateway knows; the higher use
-- wins, the gateway's or Redis'.
-- ARGV[2]: a refusal is late when it comes more than this many milliseconds after the first one in its window.
-- Returns the time in epoch milliseconds, and for each decision a reply (see ScriptReply in redis.ts) as JSON.

local graceMs = tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function decide(key, banMark, banCount, cost, windows)
  local fields, changes, expireAt = {}, {}, 0
  for i, window in ipairs(windows) do
    fields[3 * i - 2], fields[3 * i - 1], fields[3 * i] = window.name, window.name .. 'End', window.name .. 'Refused'
  end
  local held = redis.call('HMGET', key, unpack(fields))
  local function change(field, value)
    changes[#changes + 1] = field
    changes[#changes + 1] = value
  end
  local function begin(window, resetAt)
    window.resetAt = resetAt
    change(window.name .. 'End', resetAt)
    expireAt = math.max(expireAt, resetAt)
  end

  local reply = {outcome = 'allowed', windows = {}}
  local bannedUntil = tonumber(redis.call('GET', banMark) or 0)
  if bannedUntil > now then
    reply.bannedUntil, reply.banCarriedMs = bannedUntil, redis.call('PTTL', banMark)
    reply.outcome, cost = 'banned', 0
  end

  local late = false
  for i, window in ipairs(windows) do
    local used, resetAt = tonumber(held[3 * i - 2] or 0), tonumber(held[3 * i - 1] or 0)
    if resetAt <= now then used, resetAt = 0, 0 end
    if window.resetAt > now and window.used > used then
      if resetAt == 0 then begin(window, window.resetAt) else window.resetAt = resetAt end
      change(window.name, window.used)
    else
      window.used, window.resetAt = used, resetAt
    end
    if cost > 0 and window.used + cost > window.limit then
      reply.outcome = 'limited'
      -- A window that has not begun has refused nothing before: the cost alone exceeds it.
      if window.resetAt > 0 then
        local first = tonumber(held[3 * i] or 0)
        if first < window.resetAt - window.ms then change(fields[3 * i], now)
        elseif now - first > graceMs then late = true end
      end
    end
  end
  if late then reply.previousBans = tonumber(redis.call('GET', banCount) or 0) end

  for i, window in ipairs(windows) do
    if cost > 0 and reply.outcome == 'allowed' then
      window.used = window.used + cost
      change(window.name, window.used)
      if window.resetAt == 0 then begin(window, now + window.ms) end
    end
    reply.windows[i] = {used = window.used, resetAt = window.resetAt}
  end
  if #changes > 0 then redis.call('HSET', key, unpack(changes)) end
  if expireAt > 0 and now + redis.call('PTTL', key) < expireAt then redis.call('PEXPIREAT', key, expireAt) end
  return reply
end

local replies = {}
for i, question in ipairs(cjson.decode(ARGV[1])) do
  local k = 3 * i
  replies[i] = decide(KEYS[k - 2], KEYS[k - 1], KEYS[k], question.cost, question.windows)
end
return {now, cjson.encode(replies)}
