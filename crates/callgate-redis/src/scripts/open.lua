-- Claims a namespace for this version of the format. In: the version. Out: the version that is stored.

redis.call('SETNX', KEYS[1], ARGV[1])
return redis.call('GET', KEYS[1])
