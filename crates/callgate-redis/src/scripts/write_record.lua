-- Writes a record if the stored version is the expected one. In: the time ('' for the server's), the capacity, the space, the key, the value,
-- the expected version ('' for none), the expiry ('' for never), the account, the units, and whether older records may be evicted. Out:
-- 'written', 'conflict' or 'full'.

local given, capacity, space, key, value, expected, expiry, writer, units, evicts = unpack(ARGV)
capacity, units = tonumber(capacity), tonumber(units)
local time = given == '' and server_time() or tonumber(given)
local name = P .. 'k:' .. reference(space, key)
remove_expired(time, 64)
local stored = redis.call('HMGET', name, 'n', 'a', 'u', 'f')
if stored[4] and tonumber(stored[4]) <= time then
  remove_record(space, key)
  stored = {}
end
if (stored[1] or '') ~= expected then return 'conflict' end

local account, held = stored[2] or writer, tonumber(stored[3] or '0')
local caller = string.sub(account, 33)
local by_version = P .. 'o:' .. caller .. ':' .. space
while not admits(capacity, account, math.max(units - held, 0)) do
  mark_lost(caller)
  if evicts ~= '1' then return 'full' end
  local oldest = redis.call('ZRANGE', by_version, 0, 1)
  local evicted = oldest[1] ~= key and oldest[1] or oldest[2]
  if not evicted then return 'full' end
  remove_record(space, evicted)
end

-- Versions count up from the server's time, so that a replica that lacks the last writes gives none of them again.
local last = tonumber(redis.call('GET', P .. 'version') or '0')
local version = decimal(math.max(last + 1, server_time()))
redis.call('SET', P .. 'version', version)
redis.call('HSET', name, 'v', value, 'n', version, 'a', account, 'u', units)
redis.call('ZADD', P .. 'i:' .. space, 0, key)
redis.call('ZADD', by_version, version, key)
if expiry == '' then
  redis.call('HDEL', name, 'f')
  redis.call('ZREM', P .. 'due', reference(space, key))
else
  redis.call('HSET', name, 'f', expiry)
  redis.call('ZADD', P .. 'due', expiry, reference(space, key))
end
charge(account, units - held)
return 'written'
