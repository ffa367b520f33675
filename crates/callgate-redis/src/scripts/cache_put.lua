-- Stores an entry, unless the space was cleared since its generation was read. In: the capacity, the generation, the space, its most entries,
-- the key, the account, the units ('' to remove the earlier entry only), the output, the two times as text, both in microseconds, and the
-- time to live in milliseconds.

local capacity, given, space, most, key, account, units, output = unpack(ARGV)
local stored_at, expires_at, stored_micros, expires_micros, ttl = ARGV[9], ARGV[10], ARGV[11], ARGV[12], ARGV[13]
capacity, most = tonumber(capacity), tonumber(most)
local generation = generation_of(space)
if given ~= (generation or unstored_generation()) then return 'stale' end
remove_due(tonumber(stored_micros), 4)
remove_entry(space, key)
if units == '' or most == 0 then
  evict_from_space(space, most)
  return 'removed'
end
local used = redis.call('INCR', P .. 'used')
redis.call('ZADD', P .. 'spaces', used, space)
if not generation then
  redis.call('HSET', P .. 'generations', space, given)
  drop_excess_spaces()
end
local name = P .. 'e:' .. reference(space, key)
redis.call('HSET', name, 'o', output, 's', stored_at, 'x', expires_at, 'f', stored_micros, 't', expires_micros)
redis.call('PEXPIRE', name, ttl)
add_entry(space, key, account, units, used, expires_micros)
evict_from_space(space, most)
evict_to_capacity(capacity)
return 'stored'
