-- Limits: `k:KEY` is the state of one, as words. The first is its kind; then come the numbers of its latest allowance and its usage.
--   g (bucket):          limit per burst level debt at        step due account
--   f (fixed window), t (total): limit per taken last         step due account
--   w (sliding window):  limit per sum                        step due account, and `w:KEY`: a sorted set of TIME:AMOUNT:ACCOUNT
-- Times and durations are microseconds below 2^53, which Lua's numbers hold. `due`: when to check whether the limit can be removed, as in the
-- sorted set `due`; `-` for never. `step`: how many steps of the clock it has seen.

local CLOCK_TOLERANCE = 1000000
local MAX_STEPS = 64
local MAX_LOG_LENGTH = 16384
local now, step

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

local function new_state(kind, allowance, account)
  local state = { kind = kind, account = account, step = step, is_new = true }
  state.limit, state.per, state.burst = allowance.limit, allowance.per, allowance.burst
  if kind == 'g' then state.level, state.debt, state.at = {}, {}, now
  elseif kind == 'w' then state.sum = {}
  else state.taken, state.last = {}, now end
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
    local per = parse(decimal(allowance.per))
    if allowance.per ~= state.per then
      local former = parse(decimal(state.per))
      state.level = multiply(divide_up(state.level, former), per)
      state.debt = multiply(divide_up(state.debt, former), per)
    end
    local flowed = multiply(parse(decimal(math.max(time - state.at, 0))), allowance.limit)
    local burst = multiply(allowance.burst, per)
    state.level = minimum(subtract(state.level, flowed), add(burst, state.debt))
    state.debt = subtract(state.level, burst)
    state.at = time
  elseif state.kind == 'f' then
    if state.last < time - time % allowance.per then state.taken = {} end
  elseif state.kind == 't' then
    if state.last + allowance.per <= time then state.taken = {} end
  else
    log_remove_until(state, key, time - allowance.per)
  end
  state.limit, state.per, state.burst = allowance.limit, allowance.per, allowance.burst
end

-- Moves later times back to this one.
local function clamp_to(state, key, time)
  if state.kind == 'g' then state.at = math.min(state.at, time)
  elseif state.kind == 'w' then
    local later, owner = {}, nil
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

local function load_state(key)
  local text = redis.call('GET', P .. 'k:' .. key)
  if not text then return nil end
  local words = {}
  for word in string.gmatch(text, '%S+') do words[#words + 1] = word end
  local state = { kind = words[1], limit = parse(words[2]), per = tonumber(words[3]) }
  local rest
  if state.kind == 'g' then
    state.burst, state.level, state.debt, state.at = parse(words[4]), parse(words[5]), parse(words[6]), tonumber(words[7])
    rest = 8
  elseif state.kind == 'w' then
    state.sum, rest = parse(words[4]), 5
  elseif state.kind == 'f' or state.kind == 't' then
    state.taken, state.last, rest = parse(words[4]), tonumber(words[5]), 6
  end
  if not rest or not words[rest + 2] or not state.per then error('DAMAGED ' .. key) end
  state.step, state.account = tonumber(words[rest]), words[rest + 2]
  if words[rest + 1] ~= '-' then state.due = tonumber(words[rest + 1]) end
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
    if #state.level == 0 then return state.at end
    if #state.limit == 0 then return nil end
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
  local words = { state.kind, format(state.limit), decimal(state.per) }
  if state.kind == 'g' then
    words[4], words[5], words[6], words[7] = format(state.burst), format(state.level), format(state.debt), decimal(state.at)
  elseif state.kind == 'w' then words[4] = format(state.sum)
  else words[4], words[5] = format(state.taken), decimal(state.last) end
  words[#words + 1] = state.step
  words[#words + 1] = state.due and decimal(state.due) or '-'
  words[#words + 1] = state.account
  redis.call('SET', P .. 'k:' .. key, table.concat(words, ' '))
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

local function used_state(allowance, key)
  local state = load_state(key)
  if state and state.kind == allowance.kind then return state end
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
    state.level = add(state.level, multiply(amount, parse(decimal(state.per))))
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
  for _ = 1, 256 do
    local needed, all, fits = {}, 0, true
    for key, account in pairs(growing) do
      needed[account] = (needed[account] or 0) + 1
      all = all + 1
    end
    if all == 0 then return 'ok' end
    if held_by('') + all > capacity then fits = false end
    for account, more in pairs(needed) do fits = fits and admits(capacity, account, more) end
    if fits then return 'ok' end
    local key = next_due()
    if not key then return 'full' end
    remove_or_postpone(key)
  end
  return 'more'
end
