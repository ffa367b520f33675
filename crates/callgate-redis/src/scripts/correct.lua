-- Corrects the estimates of a batch, all of them or none. In: the time ('' for the server's), the capacity, and for each correction its limit,
-- the estimate, the time of the acquisition ('' if it is only known how long ago it was), how long ago it was, what was used beyond the
-- estimate ('-' for all that is left) and what is refunded of it. Out: a status.

local position = 0
local function next_argument()
  position = position + 1
  return ARGV[position]
end

local given, capacity = next_argument(), tonumber(next_argument())
advance_to(given == '' and server_time() or tonumber(given))
remove_some_due(4)

local corrections, growing = {}, {}
for number = 1, tonumber(next_argument()) do
  local one = { key = next_argument(), kind = next_argument(), account = next_argument(), sum_texts = {}, sums = {} }
  one.limit_text, one.per, one.burst_text = next_argument(), tonumber(next_argument()), next_argument()
  one.estimate = parse(next_argument())
  local at, age = next_argument(), tonumber(next_argument())
  one.at = at == '' and now - age or tonumber(at)
  local more = next_argument()
  if more ~= '-' then one.more = parse(more) end
  one.less = parse(next_argument())
  one.is_refund = one.more == 0
  if not one.is_refund then
    local text = redis.call('GET', P .. 'k:' .. one.key)
    if one.kind == 'w' or not text or string.sub(text, 1, 1) ~= one.kind then growing[one.key] = one.account end
  end
  corrections[number] = one
end

local status = make_room(capacity, growing)
if status ~= 'ok' then return { status } end

local function give_back(state, one)
  local elapsed = now - one.at
  if state.kind == 'g' then
    if elapsed < 0 then return end
    local remaining = subtract(multiply(one.estimate, one.per), multiply(elapsed, one.limit))
    state.level = subtract(state.level, minimum(multiply(one.less, one.per), remaining))
  elseif state.kind == 'f' then
    if one.at >= now - now % one.per then state.taken = subtract(state.taken, one.less) end
  elseif state.kind == 't' then
    if elapsed < one.per then state.taken = subtract(state.taken, one.less) end
  elseif elapsed < one.per then
    local entry = redis.call('ZRANGEBYSCORE', P .. 'w:' .. one.key, decimal(one.at), '+inf', 'LIMIT', 0, 1)[1]
    if not entry then return end
    local amount, account = log_amount(entry)
    local given_back = minimum(one.less, amount)
    state.sum = subtract(state.sum, given_back)
    redis.call('ZREM', P .. 'w:' .. one.key, entry)
    local left = subtract(amount, given_back)
    if left == 0 then
      charge(account, -1)
    else
      local time = string.match(entry, '^%d+')
      redis.call('ZADD', P .. 'w:' .. one.key, time, time .. ':' .. format(left) .. ':' .. account)
    end
  end
end

local function overdraw(state, one)
  if state.kind == 'g' then
    local burst = multiply(one.burst, one.per)
    state.level = one.more and add(state.level, multiply(one.more, one.per)) or maximum(state.level, burst)
    state.debt = subtract(state.level, burst)
    return
  end
  local used = state.kind == 'w' and state.sum or state.taken
  local amount = one.more or subtract(one.limit, used)
  if state.kind == 'w' and amount == 0 then return end
  acquire_amount(state, one.key, amount, one.account)
end

for _, one in ipairs(corrections) do
  local state = used_state(one, one.key)
  -- A limit that is not tracked any more has nothing to refund.
  if not (one.is_refund and state.is_new and not state.replaced) then
    track(state, one.key)
    refill(state, one.key, now, one)
    if one.is_refund then give_back(state, one) else overdraw(state, one) end
    store_state(state, one.key)
  end
end
return { 'ok' }
