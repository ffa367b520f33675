-- The usage of the pools of capacity by tenants and callers. The rows of the total (the holder '') and of tenants are split into shards, so
-- that transactions of different connections do not wait for each other; a caller has one row.

-- The lock of a key: the same number on every host.
CREATE OR REPLACE FUNCTION lock_of(name bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT ('x' || left(encode(sha256(name), 'hex'), 16))::bit(64)::bigint
$$;

-- The shard of this connection.
CREATE OR REPLACE FUNCTION usage_shard() RETURNS smallint LANGUAGE sql STABLE AS $$
    SELECT (1 + pg_backend_pid() % 16)::smallint
$$;

-- Adds these amounts to the usage of holders. Called last in a transaction: the rows are locked in order until its end, and whoever waits for
-- one of them holds nothing that others need before.
CREATE OR REPLACE FUNCTION charge_holders(which integer, holders bytea[], callers boolean[], amounts bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own smallint := usage_shard();
    charged bytea;
BEGIN
    INSERT INTO usage AS known (pool, holder, shard, held)
    SELECT which, holder, CASE WHEN is_caller THEN 0 ELSE own END, sum(amount)
    FROM unnest(holders, callers, amounts) AS charges (holder, is_caller, amount)
    GROUP BY holder, is_caller HAVING sum(amount) <> 0 ORDER BY holder
    ON CONFLICT (pool, holder, shard) DO UPDATE SET held = known.held + excluded.held;
    IF 0 > ANY (amounts) THEN
        -- One by one: with all holders in one condition, all rows of the pool may be read.
        FOREACH charged IN ARRAY holders LOOP
            DELETE FROM usage WHERE pool = which AND usage.holder = charged AND shard = 0 AND held <= 0;
        END LOOP;
    END IF;
END
$$;

-- Charges amounts to accounts.
CREATE OR REPLACE FUNCTION charge(which integer, tenants bytea[], callers bytea[], amounts bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    total bigint := (SELECT sum(amount) FROM unnest(amounts) AS amount);
    others integer := cardinality(amounts);
BEGIN
    IF others > 0 THEN
        PERFORM charge_holders(
            which, ''::bytea || tenants || callers, false || array_fill(false, ARRAY[others]) || array_fill(true, ARRAY[others]),
            total || amounts || amounts
        );
    END IF;
END
$$;
