-- Cached results, grouped into spaces. A space never has more entries than its `most`.

CREATE OR REPLACE FUNCTION unstored_generation() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT value FROM counters WHERE name = 'elsewhere'), 0)
$$;

-- Stores an entry, unless the generation of the space has changed. Without an output it only removes the earlier entry. Returns whether
-- entries must be evicted.
CREATE OR REPLACE FUNCTION cache_put(
    given_space bytea, given_key bytea, given_most bigint, given_generation bigint, new_output text, new_stored_at text,
    new_expires_at text, new_tenant bytea, new_caller bytea, size bigint, capacity bigint, most_spaces bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    stored spaces%ROWTYPE;
    is_new boolean;
    use bigint := nextval('cache_uses');
    total bigint;
    tenants bytea[];
    callers bytea[];
    amounts bigint[];
BEGIN
    PERFORM pg_advisory_xact_lock(LOCK_CLASS, 3);
    -- A crash may forget an entry.
    PERFORM set_config('synchronous_commit', 'off', true);
    SELECT * INTO stored FROM spaces WHERE name = given_space FOR UPDATE;
    is_new := NOT FOUND;
    IF given_generation <> coalesce(stored.generation, unstored_generation()) THEN
        RETURN false;
    END IF;
    WITH removed AS (DELETE FROM entries WHERE space = given_space AND key = given_key RETURNING tenant, caller, units)
    SELECT coalesce(array_agg(tenant), '{}'), coalesce(array_agg(caller), '{}'), coalesce(array_agg(-units), '{}')
      INTO tenants, callers, amounts FROM removed;
    IF new_output IS NOT NULL AND given_most > 0 THEN
        INSERT INTO spaces (name, generation, used, most) VALUES (given_space, given_generation, use, given_most)
        ON CONFLICT (name) DO UPDATE SET used = excluded.used, most = greatest(spaces.most, excluded.most);
        INSERT INTO entries (space, key, output, stored_at, expires_at, used, tenant, caller, units)
        VALUES (given_space, given_key, new_output, new_stored_at, new_expires_at, use, new_tenant, new_caller, size);
        tenants := tenants || new_tenant;
        callers := callers || new_caller;
        amounts := amounts || size;
    END IF;
    total := (SELECT coalesce(sum(held), 0) FROM usage WHERE pool = 3 AND holder = '') + (SELECT coalesce(sum(amount), 0) FROM unnest(amounts) AS amount);
    PERFORM charge(3, tenants, callers, amounts);
    RETURN total > capacity OR coalesce(stored.most > given_most, false)
        OR (SELECT count(*) FROM entries WHERE space = given_space) > given_most
        OR is_new AND (SELECT count(*) FROM spaces) > most_spaces;
END
$$;

-- Removes the entries of a space, and invalidates results that are still being computed for it.
CREATE OR REPLACE FUNCTION cache_clear(given_space bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    cleared bigint;
    tenants bytea[];
    callers bytea[];
    amounts bigint[];
BEGIN
    PERFORM pg_advisory_xact_lock(LOCK_CLASS, 3);
    INSERT INTO counters AS known (name, value) VALUES ('cleared', 1) ON CONFLICT (name) DO UPDATE SET value = known.value + 1
        RETURNING value INTO cleared;
    UPDATE spaces SET generation = cleared WHERE name = given_space;
    IF NOT FOUND THEN
        INSERT INTO counters (name, value) VALUES ('elsewhere', cleared) ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    END IF;
    WITH removed AS (DELETE FROM entries WHERE space = given_space RETURNING tenant, caller, units)
    SELECT array_agg(tenant), array_agg(caller), array_agg(-units) INTO tenants, callers, amounts FROM removed;
    PERFORM charge(3, tenants, callers, amounts);
END
$$;
