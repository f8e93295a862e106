import { ALLOWED, BANNED, DAY_MS, GRACE_MS, LIMITED, STRIKES_MS } from './result.js'

/**
 * One decision, atomic, in one round trip. All that is known of a client stands in one hash, KEYS[1], each value beside
 * its own end: so a decision reads once and writes once, a cluster always finds it in one slot, and every gateway
 * reports the same reset, to the millisecond (TIME plus PTTL would not: they are read at different moments).
 *
 * ARGV: cost, strikes that ban (0: never), length of a first ban, time a ban is carried (both in ms), then for each
 * window its name, limit, length in ms, and what the gateway knows was taken in one that ends when (0, 0: nothing).
 * Of several gateways' counts the highest stands: together they admit at most one limit each. Answers a `Reply`.
 */
export const judge = `
local key, now = KEYS[1], redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)
local cost, banAfter = tonumber(ARGV[1]), tonumber(ARGV[2])

local function live(value, ends)
  ends = tonumber(ends or 0)
  if ends > now then return tonumber(value), ends end
  return 0, 0
end

-- The hash lives as long as the last thing in it.
local function keep(till)
  if now + redis.call('PTTL', key) < till then redis.call('PEXPIREAT', key, till) end
end

local fields = {'ban', 'banEnd'}
for i = 5, #ARGV, 5 do
  fields[#fields + 1] = ARGV[i]
  fields[#fields + 1] = ARGV[i] .. 'End'
end
local held = redis.call('HMGET', key, unpack(fields))

local ban, banEnd = live(held[1], held[2])
local reply = {${ALLOWED}, now, ban, banEnd}
local taken, refused, full, begins = {}, false, {}, 0
for i = 5, #ARGV, 5 do
  local used, ends = live(held[#reply - 1], held[#reply])
  local alone, aloneEnds = live(ARGV[i + 3], ARGV[i + 4])
  if alone > used then
    used = alone
    if ends == 0 then ends = aloneEnds end
    redis.call('HSET', key, ARGV[i], used, ARGV[i] .. 'End', ends)
    keep(ends)
  end
  local begun = ends > 0
  if not begun then
    ends = now + ARGV[i + 2]
    begins = math.max(begins, ends)
  end
  if used + cost > tonumber(ARGV[i + 1]) then
    refused = true
    -- A window not yet begun has refused nothing before: the cost alone is beyond it.
    if begun then full[#full + 1] = {ARGV[i] .. 'Refused', ends - ARGV[i + 2]} end
  end
  taken[#taken + 1] = ARGV[i]
  taken[#taken + 1] = used + cost
  taken[#taken + 1] = ARGV[i] .. 'End'
  taken[#taken + 1] = ends
  reply[#reply + 1] = used
  reply[#reply + 1] = ends
end

if ban > 0 then
  reply[1] = ${BANNED}
  return reply
end
if cost == 0 then return reply end
if not refused then
  redis.call('HSET', key, unpack(taken))
  if begins > 0 then keep(begins) end
  for i = 5, #reply, 2 do reply[i] = reply[i] + cost end
  return reply
end

reply[1] = ${LIMITED}
if banAfter == 0 then return reply end
local late = false
for _, window in ipairs(full) do
  local first = tonumber(redis.call('HGET', key, window[1]) or 0)
  -- Older than the window's own beginning: a refusal of the one before.
  if first < window[2] then redis.call('HSET', key, window[1], now)
  elseif now - first > ${GRACE_MS} then late = true end
end
if not late then return reply end

held = redis.call('HMGET', key, 'strikes', 'strikesEnd', 'bans', 'bansEnd')
local strikes, ends = live(held[1], held[2])
if strikes + 1 < banAfter then
  if strikes == 0 then ends = now + ${STRIKES_MS} end
  redis.call('HSET', key, 'strikes', strikes + 1, 'strikesEnd', ends)
  keep(ends)
  return reply
end
local bans = live(held[3], held[4])
local length = math.min(ARGV[3] * 2 ^ bans, ${DAY_MS})
reply[3] = now + length
reply[4] = now + math.min(length, tonumber(ARGV[4]))
ends = reply[3] + ${DAY_MS}
redis.call('HSET', key, 'ban', reply[3], 'banEnd', reply[4], 'strikesEnd', 0, 'bans', bans + 1, 'bansEnd', ends)
keep(ends)
return reply
`
