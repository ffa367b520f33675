-- Releases slots of an owner. In: the owner, and for each slot its id and key.

for position = 2, #ARGV, 2 do release_slot(ARGV[1], ARGV[position], ARGV[position + 1]) end
redis.call('PUBLISH', P .. 'freed', '')
return 'ok'
