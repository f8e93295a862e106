-- Makes any number of decisions, one after the other, in one atomic step and one round trip.
--
-- The windows of a subject live in one hash: for each its use, its end, and the time of its first refusal. Ends are
-- stored, because TIME plus PTTL vary by a millisecond: every gateway reports the same reset. Other versions of the
-- gateway count in the same hash during an upgrade, so its fields keep their meaning.
--
-- KEYS, for each decision: the hash, the mark of a ban, the number of bans.
-- ARGV[1]: a flat JSON array; for each decision its cost, its number of windows, and for each window its name, its limit,
-- its length in milliseconds, and the use and the end that the gateway knows; the higher use wins, the gateway's or Redis'.
-- ARGV[2]: a refusal is late when it comes more than this many milliseconds after the first one in its window.
-- Returns the time in epoch milliseconds, and for each decision 0 (allowed), 1 (limited), 2 (limited, and late) with the
-- number of bans, or 3 (banned) with the end of the ban and how much longer it is carried; then the use and the end of each
-- window. Only 4 for a decision without an answer, because its keys hold something else.
--
-- What runs in every decision is written for speed: `+ 0` makes a number of a text, and tables have counters of their own.

local ALLOWED, LIMITED, LATE, BANNED, FOREIGN = 0, 1, 2, 3, 4
local call = redis.call
local asked = cjson.decode(ARGV[1])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local replies, r, a = {now}, 1, 1

-- Makes the decision whose keys begin at k.
local function decide(k)
  local key, mark = KEYS[k], KEYS[k + 1]
  local cost, first, last = asked[a], a + 2, a + 1 + 5 * asked[a + 1]
  local fields, n = {}, 1
  for i = first, last, 5 do
    fields[n], fields[n + 1], n = asked[i], asked[i] .. 'End', n + 2
  end
  local held = call('HMGET', key, unpack(fields))
  local outcome, bannedUntil = ALLOWED, (call('GET', mark) or 0) + 0
  if bannedUntil > now then outcome, cost = BANNED, 0 end

  local changed, begun = false, false
  n = 1
  for i = first, last, 5 do
    local used, resetAt = (held[n] or 0) + 0, (held[n + 1] or 0) + 0
    local knownUse, knownEnd, latest = asked[i + 3], asked[i + 4], now + asked[i + 2]
    if resetAt <= now then used, resetAt = 0, 0 end
    -- The clock has been set back.
    if resetAt > latest then resetAt, changed, begun = latest, true, true end
    if knownEnd > latest then knownEnd = latest end
    if knownUse > used and knownEnd > now then
      used, changed = knownUse, true
      if resetAt == 0 then resetAt, begun = knownEnd, true end
    end
    if cost > 0 and used + cost > asked[i + 1] then
      if outcome == ALLOWED then outcome = LIMITED end
      -- A window that has not begun has refused nothing before: the cost alone exceeds it.
      if resetAt > 0 then
        local field = asked[i] .. 'Refused'
        local refusedAt = (call('HGET', key, field) or 0) + 0
        if refusedAt < resetAt - asked[i + 2] then call('HSET', key, field, now)
        elseif now - refusedAt > ARGV[2] + 0 then outcome = LATE end
      end
    end
    held[n], held[n + 1], n = used, resetAt, n + 2
  end

  r = r + 1
  replies[r] = outcome
  if outcome == LATE then
    r = r + 1
    replies[r] = (call('GET', KEYS[k + 2]) or 0) + 0
  elseif outcome == BANNED then
    replies[r + 1], replies[r + 2], r = bannedUntil, call('PTTL', mark), r + 2
  end

  local changes, c, lastEnd = {}, 1, 0
  n = 1
  for i = first, last, 5 do
    local used, resetAt = held[n], held[n + 1]
    if cost > 0 and outcome == ALLOWED then
      used, changed = used + cost, true
      if resetAt == 0 then resetAt, begun = now + asked[i + 2], true end
    end
    if resetAt > lastEnd then lastEnd = resetAt end
    changes[c], changes[c + 1], c = fields[n], used, c + 2
    -- Ends seldom change, and to write their digits costs as much as a command.
    if begun then changes[c], changes[c + 1], c = fields[n + 1], resetAt, c + 2 end
    replies[r + 1], replies[r + 2], r, n = used, resetAt, r + 2, n + 2
  end
  if changed then call('HSET', key, unpack(changes)) end
  if begun and now + call('PTTL', key) < lastEnd then call('PEXPIREAT', key, lastEnd) end
end

for k = 1, #KEYS, 3 do
  local before, next = r, a + 2 + 5 * asked[a + 1]
  local decided, problem = pcall(decide, k)
  if not decided then
    -- Another type, or a text that is no number. All else, such as a missing right, concerns every decision.
    local text = problem.err or problem
    if not (string.find(text, 'WRONGTYPE', 1, true) or string.find(text, 'arithmetic', 1, true)) then error(problem) end
    r = before + 1
    replies[r] = FOREIGN
  end
  a = next
end
return replies
