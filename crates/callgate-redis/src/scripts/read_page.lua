-- Reads records of a space in the order of their keys. In: the space, the lowest key as ZRANGEBYLEX takes it, the most records, and the most
-- bytes. Out: whether more follow, then the key, value and version of each.

local space, from, most, bytes = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local keys = redis.call('ZRANGEBYLEX', P .. 'i:' .. space, from, '+', 'LIMIT', 0, most + 1)
local page = { '0' }
for index, key in ipairs(keys) do
  if index > most or bytes <= 0 then
    page[1] = '1'
    break
  end
  local found = redis.call('HMGET', P .. 'k:' .. reference(space, key), 'v', 'n')
  if found[1] then
    bytes = bytes - #found[1]
    page[#page + 1], page[#page + 2], page[#page + 3] = key, found[1], found[2]
  end
end
return page
