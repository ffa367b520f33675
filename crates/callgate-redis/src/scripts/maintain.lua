-- Renews the lease of an owner that holds slots, and removes what has expired. In: the time ('' for the server's), and the owner.

if redis.call('EXISTS', P .. 'o:' .. ARGV[2]) == 1 then renew(ARGV[2]) end
remove_expired_owners(ARGV[2])
-- The time is advanced by the calls, not by this: a step back changes every limit.
local known = redis.call('GET', P .. 'now')
if known then
  local latest, count = string.match(known, '^(%S+) (%S+)$')
  now, step = tonumber(latest), tonumber(count)
  if ARGV[1] == '' then now = math.max(now, server_time()) end
  remove_some_due(256)
end
return 'ok'
