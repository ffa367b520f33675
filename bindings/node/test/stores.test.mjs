import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Engine } from 'callgate';
import { KEYS } from './shop.mjs';

const ASK = `policies:
  - id: ask
    match: pay
    approval: { message: 'Pay {{ input.amount }}?' }`;
const LIMITED = `policies:
  - id: two-mails
    match: mail
    rate_limit: { limit: 2, per: 1h, key: [$.context.principal] }`;
const BOTH = `policies:
  - id: two-mails
    match: mail
    rate_limit: { limit: 2, per: 1h }
  - id: one-at-a-time
    match: mail
    concurrency: { max: 1 }`;
const CACHED = `policies:
  - id: keep
    match: search
    cache: { ttl: 1h, scope: tenant, invalidate_on: [save] }`;

const load = (rules, options) => Engine.fromText(rules, { keys: KEYS, ...options });

/** A store of records in memory, as an application writes one over its database. */
function recordStore() {
  const records = new Map();
  let version = 0;
  return {
    records,
    read: (space, key) => records.get(`${space}/${key}`) ?? null,
    async write({ space, key, value, expectedVersion }) {
      const name = `${space}/${key}`;
      if ((records.get(name)?.version ?? null) !== expectedVersion) {
        return false;
      }
      version += 1;
      records.set(name, { value, version });
      return true;
    },
    list: (space, after, limit) =>
      [...records]
        .filter(([name]) => name.startsWith(`${space}/`))
        .map(([name, record]) => ({ key: name.slice(space.length + 1), ...record }))
        .filter(({ key }) => after === null || key > after)
        .sort((one, other) => (one.key < other.key ? -1 : 1))
        .slice(0, limit),
  };
}

/** A store of limits in memory. `conflicts`: so many writes are preceded by another writer's. */
function limitStore({ conflicts = 0 } = {}) {
  const values = new Map();
  let version = 0;
  return {
    values,
    read: async keys => keys.map(key => values.get(key) ?? null),
    async write(writes) {
      if (conflicts > 0) {
        conflicts -= 1;
        return false;
      }
      if (writes.some(({ key, expectedVersion }) => (values.get(key)?.version ?? null) !== expectedVersion)) {
        return false;
      }
      for (const { key, value, forgetAt } of writes) {
        version += 1;
        values.set(key, { value, version, forgetAt });
      }
      return true;
    },
  };
}

/** A cache in memory. */
function cacheStore() {
  const spaces = new Map();
  const space = name => spaces.get(name) ?? spaces.set(name, { entries: new Map(), generation: 0 }).get(name);
  return {
    spaces,
    get: (name, key) => ({ value: space(name).entries.get(key) ?? null, generation: space(name).generation }),
    put({ space: name, key, value, generation }) {
      if (space(name).generation === generation) {
        space(name).entries.set(key, value);
      }
    },
    clear(name) {
      space(name).entries.clear();
      space(name).generation += 1;
    },
  };
}

/** The outcomes of calls that are made at once. */
async function outcomes(engine, tool, count, run = () => 'done') {
  const session = engine.session({ context: { principal: 'ana', tenant: 'shop' } }).concurrent();
  const calls = Array.from({ length: count }, (_, index) => session.call({ id: `c${index}`, tool, input: { query: 'shoes' } }, run));
  return (await Promise.all(calls)).map(({ outcome, reason }) => (outcome === 'executed' || outcome === 'cached' ? outcome : reason.code));
}

const count = (list, value) => list.filter(item => item === value).length;

test('a store of records in JavaScript keeps approvals, sealed', async () => {
  const store = recordStore();
  const open = () => load(ASK, { recordStore: store });
  const call = { id: 'c1', tool: 'pay', input: { amount: 987654 } };
  const first = (await open()).session({ name: 'chat' }).concurrent();
  const { approval } = await first.call(call, () => assert.fail('it ran'));
  assert.doesNotMatch(JSON.stringify([...store.records]), /987654/);
  const engine = await open();
  assert.equal((await engine.approvals()).length, 1);
  const second = engine.session({ name: 'chat' }).concurrent();
  const request = await second.findRequest(approval.approvalId);
  assert.equal((await second.resumeCall(call, request, [{ approved: true }], () => 'paid')).output, 'paid');
  assert.equal((await second.resumeCall(call, request, [{ approved: true }], () => assert.fail('twice'))).output, 'paid');
});

test('a store of records that fails denies the calls that need it', async () => {
  const failing = { read: () => { throw new Error('down'); }, write: () => false, list: () => 'nothing' };
  const outcome = await (await load(ASK, { recordStore: failing })).session({ name: 'chat' }).call({ tool: 'pay', input: { amount: 1 } }, () => assert.fail('it ran'));
  assert.notEqual(outcome.outcome, 'executed');
  await assert.rejects(load(ASK, { recordStore: failing, keys: undefined }), { code: 'invalid_keys' });
});

test('limits in a store of your own are exact, over several engines', async () => {
  const store = limitStore();
  const [one, other] = [await load(LIMITED, { limitStore: store }), await load(LIMITED, { limitStore: store })];
  const all = (await Promise.all([outcomes(one, 'mail', 10), outcomes(other, 'mail', 10)])).flat();
  assert.equal(count(all, 'executed'), 2);
  assert.equal(count(all, 'rate_limited'), 18);
  assert.equal(store.values.size, 1);
  assert.doesNotMatch(JSON.stringify([...store.values]), /ana|mail/);
  assert.match([...store.values.values()][0].forgetAt, /^\d{4}-/);
});

test('a call is decided again when another writer changed its limit', async () => {
  assert.deepEqual(await outcomes(await load(LIMITED, { limitStore: limitStore({ conflicts: 5 }) }), 'mail', 1), ['executed']);
  assert.deepEqual(await outcomes(await load(LIMITED, { limitStore: limitStore({ conflicts: 1e9 }) }), 'mail', 1), ['store_unavailable']);
});

test('slots are counted in the state, and freed if the limit beside them refuses', async () => {
  const engine = await load(BOTH, { limitStore: limitStore() });
  for (const expected of ['executed', 'executed', 'rate_limited', 'rate_limited']) {
    assert.deepEqual(await outcomes(engine, 'mail', 1), [expected]);
  }
  const slow = await load(BOTH.replace('limit: 2', 'limit: 9'), { limitStore: limitStore() });
  const pause = () => new Promise(resolve => setTimeout(resolve, 20));
  assert.equal(count(await outcomes(slow, 'mail', 3, pause), 'executed'), 1);
});

test('a store of limits that fails, or returns something else, denies calls', async () => {
  const failing = () => {
    throw new Error('redis://:secret@host is down');
  };
  for (const store of [
    { read: failing, write: () => true },
    { read: () => [{ value: '1:AAAA', version: 1 }], write: () => true },
    { read: () => [], write: () => true },
    { read: () => 'nothing', write: () => true },
    { read: () => [null], write: () => undefined },
    { read: () => [null], write: failing },
  ]) {
    const engine = await load(LIMITED, { limitStore: store });
    const session = engine.session({ context: { principal: 'ana' } });
    const outcome = await session.call({ tool: 'mail', input: {} }, () => assert.fail('it ran'));
    assert.equal(outcome.reason.code, 'store_unavailable');
    assert.doesNotMatch(JSON.stringify(outcome), /secret/);
  }
});

test('cached results in a store of your own are shared, sealed and cleared', async () => {
  const [records, cache] = [recordStore(), cacheStore()];
  const open = () => load(CACHED, { recordStore: records, cacheStore: cache });
  assert.deepEqual(await outcomes(await open(), 'search', 1, () => 'secret 42'), ['executed']);
  assert.deepEqual(await outcomes(await open(), 'search', 1, () => assert.fail('it ran')), ['cached']);
  const stored = JSON.stringify([...cache.spaces].map(([name, { entries }]) => [name, [...entries]]));
  assert.match(stored, /\d{4}-/);
  assert.doesNotMatch(stored, /secret|shoes/);
  assert.deepEqual(await outcomes(await open(), 'save', 1), ['executed']);
  assert.deepEqual(await outcomes(await open(), 'search', 1), ['executed']);
});

test('a cache that fails is bypassed', async () => {
  const failing = () => {
    throw new Error('down');
  };
  for (const cache of [{ get: failing, put: failing, clear: failing }, { get: () => ({}), put: () => {}, clear: () => {} }]) {
    assert.deepEqual(await outcomes(await load(CACHED, { cacheStore: cache }), 'search', 1), ['executed']);
  }
});

test('stores of your own need keys', async () => {
  for (const stores of [{ limitStore: limitStore() }, { cacheStore: cacheStore() }]) {
    await assert.rejects(load(LIMITED, { ...stores, keys: undefined }), { code: 'invalid_keys' });
  }
});
