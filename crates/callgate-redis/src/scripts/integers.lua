-- Natural numbers of any size: lists of digits in base 10^7, the lowest first. Lua's own numbers are exact up to 2^53 only; amounts take 64
-- bits, and the level of a bucket up to 125.

local BASE = 10000000

local function trim(digits)
  while #digits > 0 and digits[#digits] == 0 do digits[#digits] = nil end
  return digits
end

local function parse(text)
  local digits = {}
  for last = #text, 1, -7 do
    digits[#digits + 1] = tonumber(string.sub(text, math.max(1, last - 6), last))
  end
  return trim(digits)
end

local function format(digits)
  if #digits == 0 then return '0' end
  local parts = { string.format('%d', digits[#digits]) }
  for index = #digits - 1, 1, -1 do parts[#parts + 1] = string.format('%07d', digits[index]) end
  return table.concat(parts)
end

-- A number of Lua without a fraction, as text with all its digits.
local function decimal(number)
  return string.format('%.0f', number)
end

local function compare(a, b)
  if #a ~= #b then return #a < #b and -1 or 1 end
  for index = #a, 1, -1 do
    if a[index] ~= b[index] then return a[index] < b[index] and -1 or 1 end
  end
  return 0
end

local function add(a, b)
  local sum, carry = {}, 0
  for index = 1, math.max(#a, #b) do
    local digit = (a[index] or 0) + (b[index] or 0) + carry
    carry = digit >= BASE and 1 or 0
    sum[index] = digit - carry * BASE
  end
  if carry > 0 then sum[#sum + 1] = carry end
  return sum
end

-- a - b, or zero if b is greater.
local function subtract(a, b)
  if compare(a, b) <= 0 then return {} end
  local rest, borrow = {}, 0
  for index = 1, #a do
    local digit = a[index] - (b[index] or 0) - borrow
    borrow = digit < 0 and 1 or 0
    rest[index] = digit + borrow * BASE
  end
  return trim(rest)
end

local function multiply(a, b)
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
  return trim(product)
end

-- a / b, rounded up, for b > 0: decimal digit by decimal digit. For rare use.
local function divide_up(a, b)
  local text, rest, quotient, ten = format(a), {}, {}, { 10 }
  for position = 1, #text do
    rest = add(multiply(rest, ten), parse(string.sub(text, position, position)))
    local digit = 0
    while compare(rest, b) >= 0 do
      rest = subtract(rest, b)
      digit = digit + 1
    end
    quotient[position] = digit
  end
  local result = parse(table.concat(quotient))
  return #rest > 0 and add(result, { 1 }) or result
end

local function minimum(a, b) return compare(a, b) <= 0 and a or b end
local function maximum(a, b) return compare(a, b) >= 0 and a or b end
