-- Natural numbers of any size. Lua's own numbers are exact up to 2^53, and much faster than any other: a number below that is one of them, so
-- that each number has one form. Amounts take 64 bits, and the level of a bucket up to 125: a greater number is a list of digits in base 10^7,
-- the lowest first, which is never changed.

local BASE, EXACT = 10000000, 9007199254740992

local function digits_of(number)
  if type(number) == 'table' then return number end
  local digits = {}
  while number > 0 do
    local digit = number % BASE
    digits[#digits + 1], number = digit, (number - digit) / BASE
  end
  return digits
end

-- The one form of what new digits stand for.
local function number_of(digits)
  while digits[#digits] == 0 do digits[#digits] = nil end
  if #digits > 3 then return digits end
  -- Rounded if it is too great, and never to less than 2^53.
  local number = ((digits[3] or 0) * BASE + (digits[2] or 0)) * BASE + (digits[1] or 0)
  return number < EXACT and number or digits
end

local function parse(text)
  if #text < 16 then return tonumber(text) end
  local digits = {}
  for last = #text, 1, -7 do
    digits[#digits + 1] = tonumber(string.sub(text, math.max(1, last - 6), last))
  end
  return number_of(digits)
end

local function format(number)
  if type(number) == 'number' then return decimal(number) end
  local parts = { string.format('%d', number[#number]) }
  for index = #number - 1, 1, -1 do parts[#parts + 1] = string.format('%07d', number[index]) end
  return table.concat(parts)
end

local function compare(a, b)
  if type(a) == 'number' and type(b) == 'number' then return a < b and -1 or a > b and 1 or 0 end
  if type(a) == 'number' then return -1 end
  if type(b) == 'number' then return 1 end
  if #a ~= #b then return #a < #b and -1 or 1 end
  for index = #a, 1, -1 do
    if a[index] ~= b[index] then return a[index] < b[index] and -1 or 1 end
  end
  return 0
end

local function add(a, b)
  if type(a) == 'number' and type(b) == 'number' and a + b < EXACT then return a + b end
  a, b = digits_of(a), digits_of(b)
  local sum, carry = {}, 0
  for index = 1, math.max(#a, #b) do
    local digit = (a[index] or 0) + (b[index] or 0) + carry
    carry = digit >= BASE and 1 or 0
    sum[index] = digit - carry * BASE
  end
  if carry > 0 then sum[#sum + 1] = carry end
  return number_of(sum)
end

-- a - b, or zero if b is greater.
local function subtract(a, b)
  if type(a) == 'number' and type(b) == 'number' then return a > b and a - b or 0 end
  if compare(a, b) <= 0 then return 0 end
  b = digits_of(b)
  local rest, borrow = {}, 0
  for index = 1, #a do
    local digit = a[index] - (b[index] or 0) - borrow
    borrow = digit < 0 and 1 or 0
    rest[index] = digit + borrow * BASE
  end
  return number_of(rest)
end

local function multiply(a, b)
  -- A product of 2^53 or more is rounded to no less.
  if type(a) == 'number' and type(b) == 'number' and a * b < EXACT then return a * b end
  a, b = digits_of(a), digits_of(b)
  local product = {}
  for index = 1, #a + #b do product[index] = 0 end
  for i = 1, #a do
    local carry = 0
    for j = 1, #b do
      local digit = product[i + j - 1] + a[i] * b[j] + carry
      carry = math.floor(digit / BASE)
      product[i + j - 1] = digit - carry * BASE
    end
    product[i + #b] = product[i + #b] + carry
  end
  return number_of(product)
end

-- a / b, rounded up, for b > 0.
local function divide_up(a, b)
  if type(a) == 'number' and type(b) == 'number' then
    local rest = math.fmod(a, b)
    return (a - rest) / b + (rest > 0 and 1 or 0)
  end
  -- Decimal digit by decimal digit: for rare use.
  local text, rest, quotient = format(a), 0, {}
  for position = 1, #text do
    rest = add(multiply(rest, 10), tonumber(string.sub(text, position, position)))
    local digit = 0
    while compare(rest, b) >= 0 do
      rest = subtract(rest, b)
      digit = digit + 1
    end
    quotient[position] = digit
  end
  local result = parse(table.concat(quotient))
  return rest ~= 0 and add(result, 1) or result
end

local function minimum(a, b) return compare(a, b) <= 0 and a or b end
local function maximum(a, b) return compare(a, b) >= 0 and a or b end
