-- Reads records of any spaces. In: the caller, then the space and the key of each. Out: whether records of the caller were lost, then '1',
-- the value and the version of each record that exists, and '0' for each other.

local lost = redis.call('SISMEMBER', P .. 'lost', ARGV[1]) == 1 or redis.call('EXISTS', P .. 'anyone_lost') == 1
local batch = { lost and '1' or '0' }
for index = 2, #ARGV, 2 do
  local found = redis.call('HMGET', P .. 'k:' .. reference(ARGV[index], ARGV[index + 1]), 'v', 'n')
  if found[1] then
    batch[#batch + 1], batch[#batch + 2], batch[#batch + 3] = '1', found[1], found[2] or ''
  else
    batch[#batch + 1] = '0'
  end
end
return batch
