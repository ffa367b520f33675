-- The tables of version 1, with a record of one unit, a limit's time and a used cache.
CREATE SCHEMA old;
SET search_path = old;
CREATE TABLE callgate (version integer NOT NULL);
INSERT INTO callgate (version) VALUES (1);
CREATE TABLE counters (name text PRIMARY KEY, value bigint NOT NULL);
CREATE SEQUENCE versions;
CREATE TABLE limits (key bytea PRIMARY KEY, taken bytea NOT NULL, due bigint, charges bytea NOT NULL);
CREATE INDEX limits_due ON limits (due, key) WHERE due IS NOT NULL;
CREATE TABLE owners (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, lease_ends timestamptz NOT NULL);
CREATE TABLE slots (
    key bytea NOT NULL, owner bigint NOT NULL REFERENCES owners ON DELETE CASCADE, held bigint NOT NULL, PRIMARY KEY (key, owner)
);
CREATE INDEX slots_owner ON slots (owner);
CREATE TABLE records (
    space text NOT NULL, key bytea NOT NULL, value text NOT NULL, version bigint NOT NULL, forget_at bigint,
    tenant bytea NOT NULL, caller bytea NOT NULL, units bigint NOT NULL, PRIMARY KEY (space, key)
);
CREATE INDEX records_forget_at ON records (forget_at) WHERE forget_at IS NOT NULL;
CREATE INDEX records_caller ON records (caller, space, version);
CREATE TABLE usage (pool integer NOT NULL, holder bytea NOT NULL, held bigint NOT NULL, PRIMARY KEY (pool, holder));
CREATE TABLE lost (caller bytea PRIMARY KEY);
CREATE TABLE spaces (name bytea PRIMARY KEY, generation bigint NOT NULL, used bigint NOT NULL);
CREATE TABLE entries (
    space bytea NOT NULL, key bytea NOT NULL, output text NOT NULL, stored_at text NOT NULL, expires_at text NOT NULL,
    used bigint NOT NULL, tenant bytea NOT NULL, caller bytea NOT NULL, units bigint NOT NULL, PRIMARY KEY (space, key)
);
CREATE INDEX entries_space ON entries (space, tenant, caller, used);
CREATE INDEX entries_caller ON entries (tenant, caller, used, units);
INSERT INTO records VALUES ('calls', 'c1', '{"n":1}', nextval('versions'), NULL, decode(repeat('aa', 16), 'hex'), decode(repeat('bb', 16), 'hex'), 1);
INSERT INTO usage VALUES (2, '', 1), (2, decode(repeat('aa', 16), 'hex'), 1), (2, decode(repeat('bb', 16), 'hex'), 1);
INSERT INTO counters VALUES ('now', 4102444800000000), ('used', 7);
INSERT INTO spaces VALUES ('s', 0, 7);
