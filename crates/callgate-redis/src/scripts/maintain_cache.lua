-- Removes what is counted of entries that have expired. In: the time of the caller.

remove_due(tonumber(ARGV[1]), 256)
return 'ok'
