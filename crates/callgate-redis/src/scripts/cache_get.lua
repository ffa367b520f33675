-- Looks up an entry. In: the time, the space, its most entries, and the key. Out: the generation of the space, and, if the entry has not
-- expired, its output and the two times as they were written.

local time, space, most, key = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]
local generation = generation_of(space)
if not generation then return { unstored_generation() } end
local used = redis.call('INCR', P .. 'used')
redis.call('ZADD', P .. 'spaces', used, space)
evict_from_space(space, most)
local name = reference(space, key)
local meta = redis.call('HGET', P .. 'meta', name)
if not meta then return { generation } end
local found = redis.call('HMGET', P .. 'e:' .. name, 'o', 's', 'x', 'f', 't')
-- An entry from the future was written before the clock stepped back: its age is unknown.
if not found[1] or tonumber(found[4]) > time or tonumber(found[5]) <= time then
  remove_entry(space, key)
  return { generation }
end
redis.call('ZADD', P .. 's:' .. space, used, key)
redis.call('ZADD', P .. 'a:' .. string.sub(meta, 1, 64), used, name)
return { generation, found[1], found[2], found[3] }
