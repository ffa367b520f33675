-- Removes the entries of a space, and invalidates results that are still being computed for it.

local cleared = redis.call('INCR', P .. 'cleared')
if generation_of(ARGV[1]) then
  redis.call('HSET', P .. 'generations', ARGV[1], cleared)
else
  redis.call('SET', P .. 'unstored', cleared)
end
remove_all(ARGV[1])
return 'ok'
