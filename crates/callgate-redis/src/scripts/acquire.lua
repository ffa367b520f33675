-- Acquires all limits of a batch, or none of them. In: the time ('' for the server's), the capacity, the owner of slots, and for each key its
-- allowance, the account, the sums of its costs, and ids for its slots. Out: a status, how far the latest known time is ahead of this one, the
-- time, and for each refusal the numbers of the key and the sum, and the wait: 'never', 'after' microseconds, or the excess 'over' a bucket.

local position = 0
local function next_argument()
  position = position + 1
  return ARGV[position]
end

local given, capacity, owner = next_argument(), tonumber(next_argument()), next_argument()
local time = given == '' and server_time() or tonumber(given)
advance_to(time)

local batch, refusals, refused_slot = {}, {}, false
for number = 1, tonumber(next_argument()) do
  local entry = {
    key = next_argument(), kind = next_argument(), account = next_argument(),
    limit_text = next_argument(), per = tonumber(next_argument()), burst_text = next_argument(),
    sum_texts = {}, sums = {}, ids = {}, limit = 0, burst = 0, unit = '', is_whole = false,
  }
  -- Only the level of a bucket can be too great for Lua's numbers otherwise.
  entry.is_whole = entry.kind == 'g' and is_whole(entry.limit_text) and is_whole(entry.burst_text)
  for part = 1, tonumber(next_argument()) do
    local sum = next_argument()
    entry.sum_texts[part], entry.is_whole = sum, entry.is_whole and is_whole(sum)
  end
  if entry.kind == 's' then
    for part = 1, #entry.sum_texts do entry.ids[part] = next_argument() end
    read_amounts(entry, '')
  end
  batch[number] = entry
end

local function refuse(number, part, answer, wait)
  refusals[#refusals + 1] = number .. ' ' .. part .. ' ' .. answer .. ' ' .. wait
end

local function check_slots(number, entry)
  local held = redis.call('HLEN', P .. 's:' .. entry.key)
  for part, sum in ipairs(entry.sums) do
    if compare(add(held, sum), entry.limit) > 0 then
      refuse(number, part, 'never', '0')
      refused_slot = true
    end
  end
end

local function wait_for_log(entry, over)
  local freed, first = 0, 0
  while true do
    local entries = redis.call('ZRANGE', P .. 'w:' .. entry.key, first, first + 255)
    if #entries == 0 then return nil end
    for _, logged in ipairs(entries) do
      freed = add(freed, (log_amount(logged)))
      if compare(freed, over) >= 0 then return tonumber(string.match(logged, '^%d+')) + entry.per - now end
    end
    first = first + 256
  end
end

local function check_sum(number, part, entry, sum)
  local state = entry.state
  local most = entry.kind == 'g' and entry.burst or entry.limit
  if state.kind == 'g' then
    local room = multiply(subtract(entry.burst, sum), entry.per)
    local over = subtract(state.level, room)
    if compare(sum, most) > 0 then return refuse(number, part, 'never', '0') end
    if over == 0 then return end
    if entry.limit == 0 then return refuse(number, part, 'never', '0') end
    return refuse(number, part, 'over', format_in(state.unit, over))
  end
  local used = state.kind == 'w' and state.sum or state.taken
  local over = subtract(add(used, sum), entry.limit)
  if over == 0 then return end
  if compare(sum, most) > 0 then return refuse(number, part, 'never', '0') end
  local wait
  if state.kind == 'f' then wait = entry.per - now % entry.per
  elseif state.kind == 't' then wait = state.last + entry.per - now
  else wait = wait_for_log(entry, over) end
  if wait then refuse(number, part, 'after', decimal(wait)) else refuse(number, part, 'never', '0') end
end

local function check_all()
  refusals, refused_slot = {}, false
  for number, entry in ipairs(batch) do
    if entry.kind == 's' then
      check_slots(number, entry)
    else
      for part, sum in ipairs(entry.sums) do check_sum(number, part, entry, sum) end
    end
  end
end

for _, entry in ipairs(batch) do
  if entry.kind ~= 's' then
    entry.state = used_state(entry, entry.key)
    if not entry.state.is_new then
      refill(entry.state, entry.key, now, entry)
      if entry.state.is_changed then store_state(entry.state, entry.key) end
    end
  end
end
check_all()
if refused_slot and remove_expired_owners(owner) then check_all() end

local answer = { 'ok', decimal(now - time), decimal(now) }
if #refusals > 0 then
  for _, refusal in ipairs(refusals) do answer[#answer + 1] = refusal end
  return answer
end

local growing = {}
for _, entry in ipairs(batch) do
  if entry.kind ~= 's' and (entry.state.is_new or entry.kind == 'w') then growing[entry.key] = entry.account end
end
answer[1] = make_room(capacity, growing)
if answer[1] ~= 'ok' then return answer end

for _, entry in ipairs(batch) do
  if entry.kind == 's' then
    renew(owner)
    for _, id in ipairs(entry.ids) do
      redis.call('HSET', P .. 's:' .. entry.key, owner .. '/' .. id, 1)
      redis.call('HSET', P .. 'o:' .. owner, id, entry.key)
    end
  else
    local state, key = entry.state, entry.key
    if not state.is_new and dropped[key] then
      -- Removed to make room: it was back at its initial state.
      state = new_state(entry.kind, entry, entry.account)
    end
    track(state, key)
    acquire_amount(state, key, entry.sums[#entry.sums], entry.account)
    store_state(state, key)
  end
end
-- More than are added, so that limits that are not used any more do not pile up.
if next(growing) then remove_some_due(4) end
return answer
