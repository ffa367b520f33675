-- The usage of a pool's capacity by tenants and callers. An account is the 32 hex digits of its tenant followed by those of its caller.

local P = KEYS[1] .. ':'

-- A number of Lua without a fraction, as text with all its digits.
local function decimal(number)
  -- Opening a store checks that this takes 64 bits; `%.0f` takes twice as long.
  return string.format('%d', number)
end

local function server_time()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function held_by(holder)
  return tonumber(redis.call('HGET', P .. 'held', holder) or '0')
end

local function charge(account, units)
  if units == 0 then return end
  for _, holder in ipairs({ '', string.sub(account, 1, 32), string.sub(account, 33) }) do
    if redis.call('HINCRBY', P .. 'held', holder, units) <= 0 then redis.call('HDEL', P .. 'held', holder) end
  end
end

-- Whether an account may use this much more: a tenant at most what is free, a caller at most what its tenant may still acquire.
local function admits(capacity, account, more)
  if more == 0 then return true end
  local free = capacity - (held_by('') + more)
  local left = free - (held_by(string.sub(account, 1, 32)) + more)
  return free >= 0 and left >= 0 and held_by(string.sub(account, 33)) + more <= left
end
