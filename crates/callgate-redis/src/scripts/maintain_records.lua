-- Removes some records that have expired. In: the time ('' for the server's). Out: how many.

return remove_expired(ARGV[1] == '' and server_time() or tonumber(ARGV[1]), 256)
