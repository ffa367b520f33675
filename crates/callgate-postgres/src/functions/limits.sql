-- Limits: a batch loads what it needs under locks of its keys, and writes it back before it commits.

-- Locks the keys of a batch until the end of the transaction, and returns what it acquires from. Other batches of other keys go on. Parts:
-- 0 the time, 1 the latest known time, 2 limits of the batch, 3 up to `most` other limits that are due for removal, 4 held slots, 5 the usage
-- of holders. Without a time, the clock of the server is used.
CREATE OR REPLACE FUNCTION load_limits(given_time bigint, keys bytea[], holders bytea[], most integer)
RETURNS TABLE (part smallint, name bytea, amount bigint, taken bytea, charges bytea) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    now_micros bigint;
    latest bigint;
    next_lock bigint;
    due_keys bytea[];
BEGIN
    PERFORM pg_advisory_xact_lock_shared(LOCK_CLASS, 1);
    IF cardinality(keys) = 1 THEN
        PERFORM pg_advisory_xact_lock(lock_of(keys[1]));
    ELSE
        FOR next_lock IN SELECT DISTINCT lock_of(key) AS number FROM unnest(keys) AS key ORDER BY number LOOP
            PERFORM pg_advisory_xact_lock(next_lock);
        END LOOP;
    END IF;
    now_micros := coalesce(given_time, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint);
    SELECT last_value INTO latest FROM latest_time WHERE is_called;
    part := 0;
    amount := now_micros;
    RETURN NEXT;
    IF latest IS NOT NULL THEN
        part := 1;
        amount := latest;
        RETURN NEXT;
    END IF;
    -- Only those that nobody else uses. They are read after they are locked.
    SELECT array_agg(key) INTO due_keys FROM (
        SELECT key FROM limits WHERE due <= greatest(now_micros, latest) AND key <> ALL (keys) ORDER BY due, key LIMIT most
    ) AS candidates WHERE pg_try_advisory_xact_lock(lock_of(key));
    RETURN QUERY SELECT 2::smallint, key, due, limits.taken, limits.charges FROM limits WHERE key = ANY (keys);
    IF due_keys IS NOT NULL THEN
        RETURN QUERY SELECT 3::smallint, key, due, limits.taken, limits.charges FROM limits
            WHERE key = ANY (due_keys) AND due <= greatest(now_micros, latest) ORDER BY due, key;
    END IF;
    RETURN QUERY SELECT 4::smallint, key, sum(held)::bigint, NULL::bytea, NULL::bytea
        FROM slots JOIN owners ON owners.id = slots.owner AND owners.lease_ends > clock_timestamp()
        WHERE key = ANY (keys) GROUP BY key;
    -- A charge has 40 bytes: the tenant, the caller and the amount.
    holders := ''::bytea || holders || ARRAY(
        SELECT DISTINCT substring(limits.charges FROM 1 + 40 * number + 16 * half FOR 16)
        FROM limits, generate_series(0, length(limits.charges) / 40 - 1) AS number, generate_series(0, 1) AS half
        WHERE key = ANY (keys || due_keys));
    RETURN QUERY SELECT 5::smallint, holder, sum(held)::bigint, NULL::bytea, NULL::bytea FROM usage
        WHERE pool = 1 AND holder = ANY (holders) GROUP BY holder;
END
$$;

-- Writes what a batch has changed. The time is NULL if it has not advanced.
CREATE OR REPLACE FUNCTION write_limits(
    new_time bigint, keys bytea[], taken bytea[], due bigint[], charges bytea[], removed bytea[], without_slots bytea[], slot_owner bigint,
    slot_keys bytea[], holders bytea[], callers boolean[], amounts bigint[], steps_back boolean
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM slots WHERE slots.key = ANY (without_slots);
    DELETE FROM limits WHERE limits.key = ANY (removed);
    INSERT INTO limits (key, taken, due, charges) SELECT * FROM unnest(keys, taken, due, charges)
    ON CONFLICT (key) DO UPDATE SET taken = excluded.taken, due = excluded.due, charges = excluded.charges;
    IF cardinality(slot_keys) > 0 THEN
        PERFORM FROM owners WHERE id = slot_owner AND lease_ends > clock_timestamp() FOR KEY SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the lease of the slots has ended' USING ERRCODE = 'CG001';
        END IF;
        INSERT INTO slots (key, owner, held) SELECT key, slot_owner, count(*) FROM unnest(slot_keys) AS key GROUP BY key ORDER BY key
        ON CONFLICT (key, owner) DO UPDATE SET held = slots.held + excluded.held;
    END IF;
    -- A sequence, because a row would be locked until the end of the transaction.
    IF steps_back OR new_time > coalesce((SELECT last_value FROM latest_time WHERE is_called), new_time - 1) THEN
        PERFORM setval('latest_time', new_time);
    END IF;
    IF cardinality(holders) > 0 THEN
        PERFORM charge_holders(1, holders, callers, amounts);
    END IF;
END
$$;

-- Releases slots of an owner, and notifies all hosts.
CREATE OR REPLACE FUNCTION release_slots(slot_owner bigint, slot_keys bytea[], channel text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE slots SET held = slots.held - released.count
    FROM (SELECT key, count(*) FROM unnest(slot_keys) AS key GROUP BY key ORDER BY key) AS released
    WHERE slots.key = released.key AND slots.owner = slot_owner;
    DELETE FROM slots WHERE slots.key = ANY (slot_keys) AND slots.owner = slot_owner AND held <= 0;
    PERFORM pg_notify(channel, '');
END
$$;
