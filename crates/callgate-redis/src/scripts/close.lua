-- Removes an owner and its slots.

if remove_owner(ARGV[1]) then redis.call('PUBLISH', P .. 'freed', '') end
return 'ok'
