-- Slots: `s:KEY` holds OWNER/ID → KEY's acquisition for each that is in use, `o:OWNER` ID → KEY. An owner is one open store; its lease ends at
-- its score in `owners`, in microseconds of the server's clock.

local LEASE = 15000000

local function release_slot(owner, id, key)
  redis.call('HDEL', P .. 's:' .. key, owner .. '/' .. id)
  redis.call('HDEL', P .. 'o:' .. owner, id)
end

local function remove_owner(owner)
  local slots = redis.call('HGETALL', P .. 'o:' .. owner)
  for index = 1, #slots, 2 do redis.call('HDEL', P .. 's:' .. slots[index + 1], owner .. '/' .. slots[index]) end
  redis.call('DEL', P .. 'o:' .. owner)
  redis.call('ZREM', P .. 'owners', owner)
  return #slots > 0
end

-- Removes the other owners whose lease has ended, with their slots. Returns whether any slot is free now.
local function remove_expired_owners(own)
  local freed = false
  for _, owner in ipairs(redis.call('ZRANGEBYSCORE', P .. 'owners', '-inf', decimal(server_time()))) do
    if owner ~= own and remove_owner(owner) then freed = true end
  end
  if freed then redis.call('PUBLISH', P .. 'freed', '') end
  return freed
end

local function renew(owner)
  redis.call('ZADD', P .. 'owners', decimal(server_time() + LEASE), owner)
end
