-- Records: `k:SPACE:KEY` is a hash of the value `v`, the version `n`, the account `a`, the units `u` and the time of its expiry `f` in
-- microseconds, if it expires. `i:SPACE` has the keys in order, `o:CALLER:SPACE` those of one caller by version, `due` all that expire.

-- A name for a record: lengths keep apart what joined texts would mix up.
local function reference(space, key)
  return #space .. ':' .. space .. ':' .. key
end

local function remove_record(space, key)
  local name = P .. 'k:' .. reference(space, key)
  local found = redis.call('HMGET', name, 'a', 'u')
  if found[1] then
    charge(found[1], -tonumber(found[2]))
    redis.call('ZREM', P .. 'o:' .. string.sub(found[1], 33) .. ':' .. space, key)
  end
  redis.call('DEL', name)
  redis.call('ZREM', P .. 'i:' .. space, key)
  redis.call('ZREM', P .. 'due', reference(space, key))
end

local function remove_expired(time, most)
  local names = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', decimal(time), 'LIMIT', 0, most)
  for _, name in ipairs(names) do
    local length, rest = string.match(name, '^(%d+):(.*)$')
    length = tonumber(length)
    remove_record(string.sub(rest, 1, length), string.sub(rest, length + 2))
  end
  return #names
end

local MAX_TRACKED_LOSSES = 100000

-- Beyond so many accounts, any account counts as having lost records.
local function mark_lost(caller)
  redis.call('SADD', P .. 'lost', caller)
  if redis.call('SCARD', P .. 'lost') > MAX_TRACKED_LOSSES then
    redis.call('DEL', P .. 'lost')
    redis.call('SET', P .. 'anyone_lost', 1)
  end
end
