-- Records: compare-and-swap, the removal of expired ones, and the eviction of older ones of the same account.

-- Removes some expired records that nobody else uses. Returns how many.
CREATE OR REPLACE FUNCTION remove_expired_records(now_micros bigint, most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    tenants bytea[];
    callers bytea[];
    amounts bigint[];
BEGIN
    WITH removed AS (
        DELETE FROM records WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM records WHERE forget_at <= now_micros ORDER BY forget_at LIMIT most FOR UPDATE SKIP LOCKED))
        RETURNING tenant, caller, units
    ) SELECT array_agg(tenant), array_agg(caller), array_agg(-units) INTO tenants, callers, amounts FROM removed;
    PERFORM charge(2, tenants, callers, amounts);
    RETURN coalesce(cardinality(amounts), 0);
END
$$;

-- Writes a record if the stored version is the expected one. Returns 'written', 'conflict' or 'full'.
CREATE OR REPLACE FUNCTION write_record(
    new_space text, new_key bytea, new_value text, expected bigint, expires bigint, now_micros bigint, writer_tenant bytea,
    writer_caller bytea, size bigint, capacity bigint, evicts boolean
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    stored records%ROWTYPE;
    evicted bigint;
    more bigint;
    free bigint;
    removed_units bigint := 0;
    removed_of_tenant bigint := 0;
    removed_of_caller bigint := 0;
    own smallint := usage_shard();
    loses boolean := false;
    answer text := 'written';
    -- What was removed, by account.
    tenants bytea[] := '{}';
    callers bytea[] := '{}';
    amounts bigint[] := '{}';
BEGIN
    PERFORM pg_advisory_xact_lock(lock_of(convert_to(new_space, 'UTF8') || '\x00' || new_key));
    SELECT * INTO stored FROM records WHERE space = new_space AND key = new_key FOR UPDATE;
    -- Most writes find nothing expired, which is much faster to see than to remove. By the least, which the index has; `EXISTS` may read the
    -- whole table.
    IF stored.forget_at <= now_micros OR (SELECT min(forget_at) FROM records) <= now_micros THEN
        WITH removed AS (
            DELETE FROM records WHERE ctid = ANY (ARRAY(
                -- One condition: with another one beside it, the whole table would be read.
                SELECT ctid FROM (
                    SELECT ctid FROM records WHERE forget_at <= now_micros ORDER BY forget_at LIMIT 64 FOR UPDATE SKIP LOCKED
                ) AS expired
                UNION ALL SELECT ctid FROM records WHERE space = new_space AND key = new_key AND forget_at <= now_micros))
            RETURNING tenant, caller, units
        ) SELECT coalesce(array_agg(tenant), '{}'), coalesce(array_agg(caller), '{}'), coalesce(array_agg(-units), '{}')
          INTO tenants, callers, amounts FROM removed;
        IF stored.forget_at <= now_micros THEN
            stored := NULL;
        END IF;
    END IF;
    IF stored.version IS DISTINCT FROM expected THEN
        PERFORM charge(2, tenants, callers, amounts);
        RETURN 'conflict';
    END IF;
    stored.tenant := coalesce(stored.tenant, writer_tenant);
    stored.caller := coalesce(stored.caller, writer_caller);
    stored.units := coalesce(stored.units, 0);
    more := greatest(size - stored.units, 0);
    -- A tenant may use at most what is free, a caller at most what its tenant may still acquire.
    WHILE more > 0 LOOP
        IF cardinality(amounts) > 0 THEN
            SELECT sum(amount), coalesce(sum(amount) FILTER (WHERE tenant = stored.tenant), 0),
                    coalesce(sum(amount) FILTER (WHERE caller = stored.caller), 0)
                INTO removed_units, removed_of_tenant, removed_of_caller
                FROM unnest(tenants, callers, amounts) AS removed (tenant, caller, amount);
        END IF;
        SELECT capacity - 3 * more - removed_units - removed_of_tenant - removed_of_caller - coalesce(sum(held), 0)
            INTO free FROM usage WHERE pool = 2 AND holder IN ('', stored.tenant, stored.caller);
        EXIT WHEN free >= 0;
        loses := true;
        evicted := NULL;
        IF evicts THEN
            DELETE FROM records WHERE ctid = (
                SELECT ctid FROM records WHERE caller = stored.caller AND space = new_space AND key <> new_key
                ORDER BY version LIMIT 1 FOR UPDATE SKIP LOCKED)
            RETURNING units INTO evicted;
        END IF;
        IF evicted IS NULL THEN
            answer := 'full';
            EXIT;
        END IF;
        tenants := tenants || stored.tenant;
        callers := callers || stored.caller;
        amounts := amounts || -evicted;
    END LOOP;
    IF answer = 'written' THEN
        INSERT INTO records (space, key, value, version, forget_at, tenant, caller, units)
        VALUES (new_space, new_key, new_value, nextval('versions'), expires, stored.tenant, stored.caller, size)
        ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, version = excluded.version, forget_at = excluded.forget_at,
            units = excluded.units;
        IF cardinality(amounts) > 0 OR size < stored.units THEN
            PERFORM charge(2, tenants || stored.tenant, callers || stored.caller, amounts || (size - stored.units));
        ELSIF size > stored.units THEN
            -- What `charge` does, for almost all writes, in a fifth of its time.
            INSERT INTO usage AS known (pool, holder, shard, held)
            SELECT 2, holder, shard, size - stored.units
            FROM (VALUES (''::bytea, own), (stored.tenant, own), (stored.caller, 0)) AS charged (holder, shard) ORDER BY holder
            ON CONFLICT (pool, holder, shard) DO UPDATE SET held = known.held + excluded.held;
        END IF;
    ELSE
        PERFORM charge(2, tenants, callers, amounts);
    END IF;
    IF loses THEN
        INSERT INTO lost (caller) VALUES (stored.caller) ON CONFLICT DO NOTHING;
    END IF;
    RETURN answer;
END
$$;
