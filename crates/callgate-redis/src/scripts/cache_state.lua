-- Cached results: `e:SPACE:KEY` is a hash of the output `o`, when it was stored `s` and when it expires `x` as the caller wrote them, and both
-- in microseconds (`f`, `t`). It has a time to live and may be evicted at any time. What is counted is kept beside it: `meta` has the account
-- and the units of each, `s:SPACE` and `a:ACCOUNT` the keys by their last use, `due` all by their expiry, `n:SPACE` the entries by account.

local MAX_SPACES = 1024
local MAX_EVICTIONS = 64

local function reference(space, key)
  return #space .. ':' .. space .. ':' .. key
end

local function split(name)
  local length, rest = string.match(name, '^(%d+):(.*)$')
  length = tonumber(length)
  return string.sub(rest, 1, length), string.sub(rest, length + 2)
end

local function decrease(hash, field, less)
  if redis.call('HINCRBY', P .. hash, field, -less) <= 0 then redis.call('HDEL', P .. hash, field) end
end

local function remove_entry(space, key)
  local name = reference(space, key)
  local meta = redis.call('HGET', P .. 'meta', name)
  if not meta then return end
  local account, units = string.sub(meta, 1, 64), tonumber(string.sub(meta, 65))
  redis.call('HDEL', P .. 'meta', name)
  redis.call('ZREM', P .. 's:' .. space, key)
  redis.call('ZREM', P .. 'a:' .. account, name)
  redis.call('ZREM', P .. 'due', name)
  redis.call('DEL', P .. 'e:' .. name)
  decrease('n:' .. space, account, 1)
  decrease('units', account, units)
  decrease('units', '', units)
end

local function add_entry(space, key, account, units, used, expiry)
  local name = reference(space, key)
  redis.call('HSET', P .. 'meta', name, account .. units)
  redis.call('ZADD', P .. 's:' .. space, used, key)
  redis.call('ZADD', P .. 'a:' .. account, used, name)
  redis.call('ZADD', P .. 'due', expiry, name)
  redis.call('HINCRBY', P .. 'n:' .. space, account, 1)
  redis.call('HINCRBY', P .. 'units', account, units)
  redis.call('HINCRBY', P .. 'units', '', units)
end

-- The accounts to evict from: the callers with the most of the tenants with the most.
local function heaviest_accounts(hash)
  local flat, held, tenants, callers, most = redis.call('HGETALL', P .. hash), {}, {}, {}, 0
  for index = 1, #flat, 2 do
    local account, amount = flat[index], tonumber(flat[index + 1])
    if account ~= '' then
      local tenant = string.sub(account, 1, 32)
      held[account] = amount
      tenants[tenant] = (tenants[tenant] or 0) + amount
      callers[tenant] = math.max(callers[tenant] or 0, amount)
      most = math.max(most, tenants[tenant])
    end
  end
  local heaviest = {}
  for account, amount in pairs(held) do
    local tenant = string.sub(account, 1, 32)
    if tenants[tenant] == most and callers[tenant] == amount then heaviest[account] = true end
  end
  return heaviest
end

-- The key of the least recently used entry of these accounts in a space.
local function least_recently_used(space, accounts)
  local first = 0
  while true do
    local keys = redis.call('ZRANGE', P .. 's:' .. space, first, first + 99)
    if #keys == 0 then return nil end
    for _, key in ipairs(keys) do
      local meta = redis.call('HGET', P .. 'meta', reference(space, key))
      if meta and accounts[string.sub(meta, 1, 64)] then return key end
    end
    first = first + 100
  end
end

local function evict_from_space(space, most)
  while redis.call('ZCARD', P .. 's:' .. space) > most do
    local key = least_recently_used(space, heaviest_accounts('n:' .. space))
    if not key then return end
    remove_entry(space, key)
  end
end

local function evict_to_capacity(capacity)
  while tonumber(redis.call('HGET', P .. 'units', '') or '0') > capacity do
    local from, oldest
    for account in pairs(heaviest_accounts('units')) do
      local used = tonumber(redis.call('ZRANGE', P .. 'a:' .. account, 0, 0, 'WITHSCORES')[2])
      if used and (not oldest or used < oldest) then from, oldest = account, used end
    end
    if not from then return end
    local some = math.min(math.floor(redis.call('ZCARD', P .. 'a:' .. from) / 2) + 1, MAX_EVICTIONS)
    for _, name in ipairs(redis.call('ZRANGE', P .. 'a:' .. from, 0, some - 1)) do remove_entry(split(name)) end
  end
end

local function remove_due(time, most)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', decimal(time), 'LIMIT', 0, most)) do
    remove_entry(split(name))
  end
end

local function remove_all(space)
  for _, key in ipairs(redis.call('ZRANGE', P .. 's:' .. space, 0, -1)) do remove_entry(space, key) end
end

local function generation_of(space)
  return redis.call('HGET', P .. 'generations', space)
end

local function unstored_generation()
  return redis.call('GET', P .. 'unstored') or '0'
end

-- The least recently used spaces are dropped. What is still computed for one of them must not be stored afterwards: it may have been cleared.
local function drop_excess_spaces()
  while redis.call('ZCARD', P .. 'spaces') > MAX_SPACES do
    local space = redis.call('ZRANGE', P .. 'spaces', 0, 0)[1]
    remove_all(space)
    redis.call('ZREM', P .. 'spaces', space)
    redis.call('HDEL', P .. 'generations', space)
    redis.call('SET', P .. 'unstored', redis.call('INCR', P .. 'cleared'))
  end
end
