-- Limits: `k:KEY` is the state of one, as words. The first is its kind; then come the numbers of its latest allowance and its usage.
--   g (bucket):          limit per burst level debt at        step due account
--   f (fixed window), t (total): limit per taken last         step due account
--   w (sliding window):  limit per sum                        step due account, and `w:KEY`: a sorted set of TIME:AMOUNT:ACCOUNT
-- Times and durations are microseconds below 2^53, which Lua's numbers hold. `due`: when to check whether the limit can be removed, as in the
-- sorted set `due`; `-` for never. `step`: how many steps of the clock it has seen.

-- Amounts are stored in millionths. Most are whole: without the last six zeros of each, the level of a bucket is almost always below 2^53.
local WHOLE = '000000'

local CLOCK_TOLERANCE = 1000000
local MAX_STEPS = 64
local MAX_LOG_LENGTH = 16384
local now, step
-- The limits that this script has removed.
local dropped = {}

-- Advances the latest known time. After a step back, all stored times step back: each limit does so when it is used, and all are due for a
-- check at once.
local function advance_to(time)
  local known = redis.call('GET', P .. 'now')
  if not known then
    now, step = time, 0
  else
    local latest, count = string.match(known, '^(%S+) (%S+)$')
    now, step = tonumber(latest), tonumber(count)
    if time >= now - CLOCK_TOLERANCE then
      if time <= now then return end
      now = time
    else
      step = step + 1
      redis.call('HSET', P .. 'steps', step, decimal(now) .. ' ' .. decimal(time))
      redis.call('HDEL', P .. 'steps', step - MAX_STEPS)
      redis.call('ZUNIONSTORE', P .. 'due', 1, P .. 'due', 'WEIGHTS', 0)
      now = time
    end
  end
  redis.call('SET', P .. 'now', decimal(now) .. ' ' .. step)
end

local function is_whole(text)
  return text == '0' or string.sub(text, -6) == WHOLE
end

-- An amount without the zeros of `unit`, which is WHOLE or ''.
local function parse_in(unit, text)
  if unit == '' or text == '0' then return parse(text) end
  return parse(string.sub(text, 1, -7))
end

local function format_in(unit, amount)
  return amount == 0 and '0' or format(amount) .. unit
end

-- Reads the amounts of an allowance, and the sums that are acquired of it, in a unit.
local function read_amounts(allowance, unit)
  allowance.unit = unit
  allowance.limit, allowance.burst = parse_in(unit, allowance.limit_text), parse_in(unit, allowance.burst_text)
  for part, text in ipairs(allowance.sum_texts) do allowance.sums[part] = parse_in(unit, text) end
end

local function new_state(kind, allowance, account)
  local state = {
    kind = kind, account = account, step = step, is_new = true, unit = allowance.unit,
    limit = allowance.limit, per = allowance.per, burst = allowance.burst,
  }
  if kind == 'g' then state.level, state.debt, state.at = 0, 0, now
  elseif kind == 'w' then state.sum = 0
  else state.taken, state.last = 0, now end
  return state
end

local function log_ends(key, command)
  local found = redis.call(command, P .. 'w:' .. key, 0, 0, 'WITHSCORES')
  return found[1], tonumber(found[2])
end

local function log_amount(entry)
  local time, amount, account = string.match(entry, '^(%d+):(%d+):(%x+)$')
  return parse(amount), account
end

-- Adds an amount to the log at this time. What was acquired at one time is one entry, charged to the account that came first.
local function log_push(key, time, amount, account)
  local last, last_time = log_ends(key, 'ZREVRANGE')
  if last and last_time == time then
    local before, first = log_amount(last)
    redis.call('ZREM', P .. 'w:' .. key, last)
    redis.call('ZADD', P .. 'w:' .. key, decimal(time), decimal(time) .. ':' .. format(add(before, amount)) .. ':' .. first)
  else
    redis.call('ZADD', P .. 'w:' .. key, decimal(time), decimal(time) .. ':' .. format(amount) .. ':' .. account)
    charge(account, 1)
  end
end

-- Merges pairs of neighbours at the later time: they count for longer than necessary, never shorter.
local function log_merge(key)
  local entries = redis.call('ZRANGE', P .. 'w:' .. key, 0, -1)
  for index = 1, #entries - 1, 2 do
    local amount, account = log_amount(entries[index])
    local more, later_account = log_amount(entries[index + 1])
    local time = string.match(entries[index + 1], '^%d+')
    redis.call('ZREM', P .. 'w:' .. key, entries[index], entries[index + 1])
    redis.call('ZADD', P .. 'w:' .. key, time, time .. ':' .. format(add(amount, more)) .. ':' .. later_account)
    charge(account, -1)
  end
end

local function log_remove_until(state, key, time)
  while true do
    local entries = redis.call('ZRANGEBYSCORE', P .. 'w:' .. key, '-inf', decimal(time), 'LIMIT', 0, 512)
    if #entries == 0 then return end
    for _, entry in ipairs(entries) do
      local amount, account = log_amount(entry)
      state.sum = subtract(state.sum, amount)
      charge(account, -1)
    end
    redis.call('ZREM', P .. 'w:' .. key, unpack(entries))
    state.is_changed = true
  end
end

-- What has flowed back, or was reset, up to this time, by this allowance.
local function refill(state, key, time, allowance)
  if state.kind == 'g' then
    local per, former = allowance.per, state.per
    if per ~= former then
      state.level = multiply(divide_up(state.level, former), per)
      state.debt = multiply(divide_up(state.debt, former), per)
    end
    local flowed = multiply(math.max(time - state.at, 0), allowance.limit)
    local burst = multiply(allowance.burst, per)
    state.level = minimum(subtract(state.level, flowed), add(burst, state.debt))
    state.debt = subtract(state.level, burst)
    state.at = time
  elseif state.kind == 'f' then
    if state.last < time - time % allowance.per then state.taken = 0 end
  elseif state.kind == 't' then
    if state.last + allowance.per <= time then state.taken = 0 end
  else
    log_remove_until(state, key, time - allowance.per)
  end
  state.limit, state.per, state.burst = allowance.limit, allowance.per, allowance.burst
end

-- Moves later times back to this one.
local function clamp_to(state, key, time)
  if state.kind == 'g' then state.at = math.min(state.at, time)
  elseif state.kind == 'w' then
    local later, owner = 0, nil
    local entries = redis.call('ZRANGEBYSCORE', P .. 'w:' .. key, '(' .. decimal(time), '+inf')
    for _, entry in ipairs(entries) do
      local amount, account = log_amount(entry)
      later, owner = add(later, amount), owner or account
      redis.call('ZREM', P .. 'w:' .. key, entry)
      charge(account, -1)
    end
    if owner then log_push(key, time, later, owner) end
  else state.last = math.min(state.last, time) end
end

-- `allowance`: of the acquisition that the state is loaded for. Its unit is that of the state if both are whole, and the same for both.
local function load_state(key, allowance)
  local text = redis.call('GET', P .. 'k:' .. key)
  if not text then return nil end
  local limit, per, burst, used, debt, last, seen, due, account
  local kind = string.sub(text, 1, 1)
  if kind == 'g' then
    limit, per, burst, used, debt, last, seen, due, account =
      string.match(text, '^. (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%x+)$')
  elseif kind == 'w' then
    limit, per, used, seen, due, account = string.match(text, '^. (%d+) (%d+) (%d+) (%d+) (%S+) (%x+)$')
  elseif kind == 'f' or kind == 't' then
    limit, per, used, last, seen, due, account = string.match(text, '^. (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%x+)$')
  end
  -- Nothing is divided by a period of zero.
  if not account or tonumber(per) == 0 then error('DAMAGED ' .. key) end
  local state = {
    kind = kind, account = account, step = tonumber(seen), is_new = false, unit = '',
    limit = 0, per = tonumber(per), burst = 0, due = tonumber(due), is_changed = false,
    level = 0, debt = 0, at = 0,
  }
  if kind == 'g' then
    if allowance and allowance.is_whole and allowance.per == state.per
      and is_whole(used) and is_whole(limit) and is_whole(burst) and is_whole(debt) then
      state.unit = WHOLE
    end
    state.burst, state.level = parse_in(state.unit, burst), parse_in(state.unit, used)
    state.debt, state.at = parse_in(state.unit, debt), tonumber(last)
  elseif kind == 'w' then state.sum = parse(used)
  else state.taken, state.last = parse(used), tonumber(last) end
  state.limit = parse_in(state.unit, limit)
  if state.step < step then
    for number = math.max(state.step + 1, step - MAX_STEPS + 1), step do
      local stepped = redis.call('HGET', P .. 'steps', number)
      if stepped then
        local before, after = string.match(stepped, '^(%S+) (%S+)$')
        refill(state, key, tonumber(before), state)
        clamp_to(state, key, tonumber(after))
      end
    end
    clamp_to(state, key, now)
    state.step, state.is_changed = step, true
  end
  return state
end

-- When the limit is back at its initial state. `nil` if time alone does not reset it.
local function reset_at(state, key)
  if state.kind == 'g' then
    if state.level == 0 then return state.at end
    if state.limit == 0 then return nil end
    -- Rounded up in Lua's own numbers: removed no earlier than it is fresh.
    local wait = tonumber(format(state.level)) / tonumber(format(state.limit))
    return state.at + math.min(math.ceil(wait * 1.000001) + 1, 4503599627370496)
  elseif state.kind == 'w' then
    local _, last = log_ends(key, 'ZREVRANGE')
    return last and last + state.per or 0
  end
  return state.last + state.per
end

local function store_state(state, key)
  local reset = reset_at(state, key)
  if reset and (not state.due or reset < state.due) then
    state.due = reset
    redis.call('ZADD', P .. 'due', decimal(reset), key)
  end
  local unit, used = state.unit, nil
  if state.kind == 'g' then
    used = format_in(unit, state.burst) .. ' ' .. format_in(unit, state.level) .. ' ' .. format_in(unit, state.debt)
      .. ' ' .. decimal(state.at)
  elseif state.kind == 'w' then used = format(state.sum)
  else used = format(state.taken) .. ' ' .. decimal(state.last) end
  local allowed = state.kind .. ' ' .. format_in(unit, state.limit) .. ' ' .. decimal(state.per)
  local rest = state.step .. ' ' .. (state.due and decimal(state.due) or '-') .. ' ' .. state.account
  redis.call('SET', P .. 'k:' .. key, allowed .. ' ' .. used .. ' ' .. rest)
end

-- Removes a limit, and releases what is charged for it.
local function drop(state, key)
  if state.kind == 'w' then
    log_remove_until(state, key, 9007199254740991)
  else
    charge(state.account, -1)
  end
  redis.call('DEL', P .. 'k:' .. key)
  redis.call('ZREM', P .. 'due', key)
  dropped[key] = true
end

-- Removes a limit that is back at its initial state; otherwise postpones its check. Returns whether it was removed.
local function remove_or_postpone(key)
  local state = load_state(key)
  if not state then
    redis.call('ZREM', P .. 'due', key)
    return true
  end
  local reset = reset_at(state, key)
  if reset and reset <= now then
    drop(state, key)
    return true
  end
  redis.call('ZREM', P .. 'due', key)
  state.due = nil
  store_state(state, key)
  return false
end

local function next_due()
  return redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', decimal(now), 'LIMIT', 0, 1)[1]
end

local function remove_some_due(most)
  local keys = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', decimal(now), 'LIMIT', 0, most)
  for _, key in ipairs(keys) do remove_or_postpone(key) end
  return #keys
end

-- The state of a limit that is used, and the amounts of its allowance in the state's unit.
local function used_state(allowance, key)
  local state = load_state(key, allowance)
  local is_known = state and state.kind == allowance.kind
  if is_known then
    read_amounts(allowance, state.unit)
    return state
  end
  read_amounts(allowance, allowance.is_whole and WHOLE or '')
  local fresh = new_state(allowance.kind, allowance, allowance.account)
  fresh.replaced = state
  return fresh
end

-- Begins to track a limit that was not tracked, or had another algorithm.
local function track(state, key)
  if not state.is_new then return end
  if state.replaced then drop(state.replaced, key) end
  if state.kind ~= 'w' then charge(state.account, 1) end
  state.is_new, state.replaced = false, nil
end

local function acquire_amount(state, key, amount, account)
  if state.kind == 'g' then
    state.level = add(state.level, multiply(amount, state.per))
  elseif state.kind == 'w' then
    state.sum = add(state.sum, amount)
    log_push(key, now, amount, account)
    if redis.call('ZCARD', P .. 'w:' .. key) > MAX_LOG_LENGTH then log_merge(key) end
  else
    state.taken, state.last = add(state.taken, amount), now
  end
end

-- Makes room for the limits that grow. Returns 'ok', 'full' if nothing more can be removed, or 'more' if it may after another attempt.
local function make_room(capacity, growing)
  if not next(growing) then return 'ok' end
  for _ = 1, 256 do
    local needed, all, fits = {}, 0, true
    for _, account in pairs(growing) do
      needed[account] = (needed[account] or 0) + 1
      all = all + 1
    end
    if held_by('') + all > capacity then fits = false end
    for account, more in pairs(needed) do fits = fits and admits(capacity, account, more) end
    if fits then return 'ok' end
    local key = next_due()
    if not key then return 'full' end
    remove_or_postpone(key)
  end
  return 'more'
end
