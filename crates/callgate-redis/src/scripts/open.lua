-- Claims a namespace for this version of the format. In: the version. Out: the version that is stored.

-- The other scripts rely on it.
if string.format('%d', 4503599627370497) ~= '4503599627370497' then
  return redis.error_reply('CALLGATE32BIT the numbers of this server have 32 bits')
end
redis.call('SETNX', KEYS[1], ARGV[1])
return redis.call('GET', KEYS[1])
