import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import * as esm from 'callgate';
import { CallgateError, Engine, ExactNumber, History, RulesError } from 'callgate';

const KEYS = '5a'.repeat(32);
const load = (policies, options) => Engine.fromText(`policies: [${policies}]`, { keys: KEYS, ...options });
const temporary = () => mkdtempSync(join(tmpdir(), 'callgate-'));
const turn = () => new Promise(resolve => setImmediate(resolve));

test('CommonJS and ES modules get the same objects', () => {
  const cjs = createRequire(import.meta.url)('callgate');
  assert.equal(cjs.Engine, esm.Engine);
  assert.equal(cjs.CallgateError, CallgateError);
});

test('a call is decided without running it', async () => {
  const engine = await load(`{ id: small, match: { tool: pay, where: { path: $.input.amount, gt: 100 } }, deny: { message: 'No' } }`);
  const decision = engine.decide({ tool: 'pay', input: { amount: 250 } });
  assert.deepEqual([decision.effect, decision.reason.policy, decision.reason.message], ['deny', 'small', 'No']);
  assert.equal(engine.decide({ tool: 'pay', input: { amount: 50 } }).effect, 'run');
});

test('mistakes in rules have a code, a position and help', async () => {
  const error = await Engine.fromText('policies:\n  - { id: a, dney: {} }').catch(error => error);
  assert.ok(error instanceof RulesError);
  const { code, line, column, help } = error.diagnostics[0];
  assert.deepEqual([error.code, code, line, column, help], ['invalid_rules', 'CG201', 2, 14, 'did you mean `deny`?']);
  await assert.rejects(Engine.load('no-such-directory'), { code: 'invalid_rules' });
  await assert.rejects(load('', { keys: 'short' }), { code: 'invalid_keys' });
  await assert.rejects(load('', { unknown: 1 }), { code: 'invalid_argument' });
});

test('a call with a misspelt member is refused', async () => {
  const engine = await load('');
  const misspelt = { tool: 'pay', input: {}, contxt: { principal: 'ana' } };
  assert.throws(() => engine.decide(misspelt), { code: 'invalid_call' });
  await assert.rejects(engine.session().call(misspelt, () => 1), { code: 'invalid_call' });
  await assert.rejects(engine.session().call({ tool: 'pay' }, () => 1), /no `input`/);
});

test('what a tool throws is the error of its call', async () => {
  const session = (await load('')).session();
  const call = { tool: 'pay', input: {} };
  const failed = await session.call(call, () => {
    throw Object.assign(new Error('no money'), { code: 'POOR' });
  });
  assert.deepEqual([failed.outcome, failed.error, failed.reason.code], ['failed', 'no money', 'tool_error']);
  const rejected = await session.call(call, () => Promise.reject('text'));
  assert.deepEqual([rejected.outcome, rejected.error], ['failed', 'text']);
  const missing = await session.call({ tool: 'constructor', input: {} }, { pay: () => 1 });
  assert.match(missing.error, /no tool `constructor`/);
});

test('what a tool returns is JSON, or the error of its call', async () => {
  const session = (await load('')).session();
  const result = async value => {
    const outcome = await session.call({ tool: 'any', input: {} }, () => value);
    return outcome.outcome === 'executed' ? outcome.output : outcome.error;
  };
  const cycle = {};
  cycle.self = cycle;
  assert.equal(await result(undefined), null);
  assert.equal(await result(10n ** 20n), 10n ** 20n);
  assert.equal(await result(new Date(0)), '1970-01-01T00:00:00.000Z');
  assert.deepEqual(await result({ kept: 1, left: undefined, run() {} }), { kept: 1 });
  assert.deepEqual(await result([undefined]), [null]);
  assert.equal((await result(new ExactNumber('0.10000000000000000001'))).text, '0.10000000000000000001');
  assert.match(await result(NaN), /NaN is not a JSON number/);
  assert.match(await result({ items: [{ size: Infinity }] }), /at \$\.items\[0\]\.size/);
  assert.match(await result(cycle), /contains itself/);
  assert.match(await result(new Map([[1, 2]])), /Map is not a JSON value/);
  assert.match(await result('\ud800'), /lone surrogate/);
});

test('no number is rounded on its way through', async () => {
  const engine = await load(`{ id: even, match: { tool: pay, where: { path: $.input.n, eq: 9007199254740992 } }, deny: {} }`);
  assert.equal(engine.decide({ tool: 'pay', input: { n: 9007199254740993n } }).effect, 'run');
  assert.equal(engine.decide({ tool: 'pay', input: { n: 9007199254740992n } }).effect, 'deny');
  const seen = [];
  const outcome = await engine.session().call({ tool: 'any', input: { n: 2n ** 64n, f: 0.1, e: 1e21 } }, input => {
    seen.push(input);
    return input;
  });
  assert.deepEqual(seen[0], { n: 2n ** 64n, f: 0.1, e: 1e21 });
  assert.deepEqual(outcome.output, seen[0]);
  const text = '{"a":1.0,"b":0.1,"c":12345678901234567890,"d":1e400,"e":-0.0,"f":"1e5 12345678901234567890","__proto__":1}';
  const parsed = esm.parseJson(text);
  assert.deepEqual([parsed.a, parsed.b, parsed.c, parsed.d.text], [1, 0.1, 12345678901234567890n, '1e400']);
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
  assert.ok(Object.hasOwn(parsed, '__proto__'));
  assert.equal(esm.stringifyJson(parsed.c), '12345678901234567890');
});

test('strings before a long number, whatever they end with, hide no digit of it', async () => {
  const session = (await load('')).session();
  const digits = '12345678901234567890';
  for (let length = 0; length < 20; length += 1) {
    for (const end of ['', '"', '\\', '\\"', '\\\\"', '"\\', '\n']) {
      const text = 'x'.repeat(length) + digits + end;
      for (const value of [{ text, n: BigInt(digits) }, { text, n: 123456789.012345 }, { n: BigInt(digits), text }]) {
        assert.deepEqual((await session.call({ tool: 'any', input: value }, input => input)).output, value);
      }
    }
  }
});

test('a decision and an outcome have what the policies did, with remarks', async () => {
  const engine = await load(`
    { id: changed, match: pay, transform: { input: [ { path: $.input.n, set: 2 } ] } },
    { id: watched, match: pay, mode: shadow, deny: {} },
    { id: unknown, match: { tool: pay, where: { path: $.session.facts.known, eq: 1 } }, approval: {} },
    { id: printing, match: pay, around: { script: 'print("paid"); next(input)' } },
    { id: once, match: pay, rate_limit: { limit: 1, per: 1h } }`);
  const call = { tool: 'pay', input: { n: 1 } };
  const decision = engine.decide(call);
  assert.deepEqual(decision.input, { n: 2 });
  assert.deepEqual(decision.pending, ['once']);
  assert.deepEqual(call.input, { n: 1 });
  const watched = { id: 'watched', kind: 'deny', phase: 'gate', verdict: 'deny', shadow: true };
  assert.deepEqual(decision.policies.find(policy => policy.id === 'watched'), watched);
  const outcome = await engine.session().call(call, input => input);
  assert.deepEqual(outcome.policies.find(policy => policy.id === 'watched'), watched);
  assert.deepEqual(outcome.policies.find(policy => policy.id === 'printing').printed, ['paid']);
  const unknownPast = engine.session({ name: 'old', hasUnknownPast: true });
  const { policies } = await unknownPast.call(call, input => input);
  assert.equal(policies.find(policy => policy.id === 'unknown').undecided, true);
});

test('a timeout aborts the signal of the tool', async () => {
  const session = (await load('{ id: quick, match: slow, timeout: 20ms }')).session();
  let stopped;
  const outcome = await session.call({ tool: 'slow', input: {} }, (_, { signal }) => {
    stopped = new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }));
    return stopped;
  });
  assert.deepEqual([outcome.outcome, outcome.reason.code], ['failed', 'timeout']);
  await stopped;
});

test('an aborted signal gives the call up, and its tool', async () => {
  const session = (await load('')).session();
  const controller = new AbortController();
  let toolSignal;
  const call = session.call(
    { tool: 'slow', input: {} },
    (_, { signal }) => {
      toolSignal = signal;
      controller.abort();
      return new Promise(() => {});
    },
    { signal: controller.signal },
  );
  await assert.rejects(call, { name: 'AbortError' });
  assert.ok(toolSignal.aborted);
  // The session goes on.
  assert.equal((await session.call({ tool: 'quick', input: {} }, () => 1)).output, 1);
  await assert.rejects(session.call({ tool: 'quick', input: {} }, () => 1, { signal: controller.signal }), { name: 'AbortError' });
});

test('a session refuses a second call while one runs, and a concurrent one runs both', async () => {
  const engine = await load('');
  const session = engine.session();
  const first = session.call({ tool: 'a', input: {} }, turn);
  await assert.rejects(session.call({ tool: 'b', input: {} }, () => 1), { code: 'session_busy' });
  await first;
  const concurrent = session.concurrent();
  await assert.rejects(session.call({ tool: 'b', input: {} }, () => 1), { code: 'session_busy' });
  let [running, most] = [0, 0];
  const tool = async () => {
    running += 1;
    most = Math.max(most, running);
    await turn();
    running -= 1;
  };
  const calls = Array.from({ length: 1000 }, (_, index) => concurrent.call({ id: `c${index}`, tool: 'a', input: {} }, tool));
  const outcomes = await Promise.all(calls);
  assert.ok(outcomes.every(({ outcome }) => outcome === 'executed'));
  assert.equal(most, 1000);
});

test('a tool can make a call of its own session', async () => {
  const session = (await load('')).session().concurrent();
  const outcome = await session.call({ id: 'c1', tool: 'outer', input: {} }, async () => {
    const inner = await session.call({ id: 'c2', tool: 'inner', input: {} }, () => 'inner', { nested: true });
    return inner.output;
  });
  assert.equal(outcome.output, 'inner');
});

test('large arguments do not block the event loop', async () => {
  const session = (await load(`{ id: hide, match: any, redact: { detect: [email] } }`)).session();
  const text = 'some words '.repeat(10_000);
  let turns = 0;
  let runs = true;
  const counting = (async () => {
    while (runs) {
      await turn();
      turns += 1;
    }
  })();
  const outcome = await session.call({ tool: 'any', input: { text } }, () => 'done');
  runs = false;
  await counting;
  assert.equal(outcome.output, 'done');
  assert.ok(turns > 1, 'the loop did not turn while the call was evaluated');
});

test('the asynchronous context of the caller is kept when another thread goes on', async () => {
  const session = (await load('{ id: again, match: flaky, retry: { attempts: 3, idempotent: true, backoff: { initial: 1ms } } }')).session();
  const store = new AsyncLocalStorage();
  const seen = [];
  await store.run('request 7', () =>
    session.call({ tool: 'flaky', input: {} }, () => {
      seen.push(store.getStore());
      if (seen.length < 2) {
        throw new Error('again');
      }
    }),
  );
  assert.deepEqual(seen, ['request 7', 'request 7']);
});

test('hooks edit, wrap, recover, and block when they fail', async () => {
  const order = [];
  const hooks = [
    { id: 'limit', tools: ['search'], before: call => ({ action: 'edit', input: { ...call.input, limit: 10 } }) },
    {
      id: 'wrap',
      async around(call, next) {
        order.push('before next');
        const output = await next();
        order.push('after next');
        return { output, tool: call.tool };
      },
      onError: (_, { message }) => ({ recover: `recovered: ${message}` }),
      after: ({ outcome }) => void order.push(outcome),
    },
    { id: 'broken', tools: ['broken'], before: () => { throw new Error('secret'); } },
    { id: 'odd', tools: ['odd'], before: () => ({ action: 'alow' }) },
  ];
  const session = (await load('', { hooks })).session();
  const found = await session.call({ tool: 'search', input: {} }, input => input);
  assert.deepEqual(found.output, { output: { limit: 10 }, tool: 'search' });
  assert.deepEqual(order, ['before next', 'after next', 'executed']);
  const recovered = await session.call({ tool: 'other', input: {} }, () => Promise.reject(new Error('down')));
  assert.equal(recovered.output, 'recovered: down');
  for (const tool of ['broken', 'odd']) {
    const blocked = await session.call({ tool, input: {} }, () => assert.fail('it ran'));
    assert.deepEqual([blocked.outcome, blocked.reason.code], ['denied', 'blocked']);
    assert.doesNotMatch(JSON.stringify(blocked), /secret/);
  }
});

test('a hook requires an approval', async () => {
  const hooks = [{ id: 'risk', before: () => ({ action: 'requireApproval', message: 'Really?', approvers: ['role:finance'] }) }];
  const outcome = await (await load('', { hooks })).session().call({ tool: 'pay', input: {} }, () => 1);
  assert.deepEqual([outcome.outcome, outcome.approval.message], ['suspended', 'Really?']);
});

test('a listener receives every event, redacted, and changes nothing', async () => {
  const events = [];
  const engine = await load(`{ id: hide, match: any, redact: { detect: [email] } }`, {
    onEvent: event => {
      events.push(event);
      throw new Error('a listener that fails');
    },
  });
  await engine.session({ name: 's' }).call({ tool: 'any', input: { to: 'ana@example.com' } }, () => 1);
  while (!events.some(({ event }) => event === 'call_completed')) {
    await turn();
  }
  assert.deepEqual(events.map(({ event }) => event).filter(event => event.startsWith('call')), ['call_decided', 'call_started', 'call_completed']);
  assert.doesNotMatch(JSON.stringify(events), /ana@example/);
});

test('a round is decided before any of its calls runs', async () => {
  const session = (await load(`{ id: stop, match: wipe, halt: {} }`)).session();
  const ran = [];
  const outcomes = await session.callRound(
    [{ tool: 'read', input: {} }, { tool: 'wipe', input: {} }],
    { read: () => ran.push('read'), wipe: () => ran.push('wipe') },
  );
  assert.deepEqual(outcomes.map(({ outcome }) => outcome), ['halted', 'halted']);
  assert.deepEqual(ran, []);
});

const ASK = `{ id: ask, match: pay, approval: { message: 'Pay {{ input.amount }}?', expires: 1h, edits: [$.input.amount] } }`;
const HISTORY = [
  { role: 'user', content: 'pay' },
  { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'pay', arguments: '{"amount":250}' } }] },
];

test('a history is resumed with the answers in it: approved, denied, edited, cancelled', async () => {
  const engine = await load(ASK);
  for (const [name, response, outcome, output] of [
    ['one', { approved: true }, 'executed', 250],
    ['two', { approved: false, reason: 'no' }, 'denied', null],
    ['three', { approved: true, editedInput: { amount: 10 } }, 'executed', 10],
    ['four', { approved: false, cancel: true }, 'aborted', null],
  ]) {
    const history = History.read('openai-chat', HISTORY);
    const round = await engine.session({ name }).runRound(history, { pay: () => assert.fail('it ran') });
    assert.ok(round.isSuspended);
    const [{ approvalId, message }] = history.approvalRequests();
    assert.equal(message, 'Pay 250?');
    history.appendApprovalResponse({ approvalId, ...response });
    const stored = JSON.parse(JSON.stringify(history.write()));
    const resumed = await engine.session({ name }).resume(History.read('openai-chat', stored), { pay: ({ amount }) => amount });
    assert.deepEqual([resumed.outcomes[0].outcome, resumed.outcomes[0].output], [outcome, output], JSON.stringify(response));
  }
});

test('approvals are listed and answered in the state, and a call runs once', async () => {
  const state = `file:${join(temporary(), 'state.db')}`;
  const engine = await load(ASK, { state });
  const call = { id: 'c1', tool: 'pay', input: { amount: 250 } };
  const session = () => engine.session({ name: 'chat' }).concurrent();
  const { approval } = await session().call(call, () => assert.fail('it ran'));
  const [item] = await engine.approvals();
  assert.deepEqual([item.id, item.status], [`chat/${approval.approvalId}`, 'pending']);
  assert.equal((await engine.answer(item.id, { approved: true }, { principal: 'lea' })).status, 'answered');
  await assert.rejects(engine.answer('chat/none', { approved: true }), { code: 'approval_not_recorded' });
  let runs = 0;
  const resume = async () => session().resumeCall(call, await session().findRequest(approval.approvalId), [], () => (runs += 1));
  const outcomes = await Promise.all([resume(), resume()]);
  assert.equal(runs, 1);
  assert.ok(outcomes.some(({ output }) => output === 1));
  assert.equal((await engine.approval(item.id)).status, 'completed');
});

test('watched rules take effect, and rules with mistakes are rejected', async () => {
  const file = join(temporary(), 'rules.yaml');
  const write = policy => writeFileSync(file, `policies: [${policy}]`);
  write('{ id: a, match: x, deny: {} }');
  const engine = await Engine.load(file);
  const watch = engine.watch();
  const until = async condition => {
    while (!condition()) {
      await new Promise(resolve => setTimeout(resolve, 20));
    }
  };
  write('{ id: a, match: "*", deny: {} }');
  await until(() => engine.decide({ tool: 'y', input: {} }).effect === 'deny');
  write('{ id: a, dney: {} }');
  await until(() => engine.status.lastRejected !== null);
  assert.match(engine.status.lastRejected.report, /did you mean `deny`/);
  assert.equal(engine.decide({ tool: 'y', input: {} }).effect, 'deny');
  watch.close();
  await assert.rejects(async () => (await load('')).watch(), { code: 'invalid_argument' });
});

test('each worker thread has its own engines, also when it is terminated during a call', async () => {
  const script = `
    const { parentPort } = require('node:worker_threads');
    const { Engine } = require('callgate');
    Engine.fromText('policies: [{ id: quick, match: slow, timeout: 1h }]').then(async engine => {
      const { output } = await engine.session().call({ tool: 'a', input: {} }, () => 'from a worker');
      parentPort.postMessage(output);
      engine.session().call({ tool: 'slow', input: {} }, () => new Promise(() => {}));
      parentPort.postMessage('running');
    });`;
  const workers = Array.from({ length: 3 }, () => new Worker(script, { eval: true }));
  await Promise.all(
    workers.map(
      worker =>
        new Promise((resolve, reject) => {
          const messages = [];
          worker.on('error', reject);
          worker.on('message', message => {
            messages.push(message);
            if (messages.length === 2) {
              assert.deepEqual(messages, ['from a worker', 'running']);
              worker.terminate().then(resolve, reject);
            }
          });
        }),
    ),
  );
});

test('the run around calls: configuration, stream, usage and end', async () => {
  const engine = await load(`{ id: hide, stream: { redact: [email] } }, { id: few, budget: { iterations: 1, per: run } }`).catch(error => assert.fail(error.message));
  const session = engine.session();
  session.begin({ tools: [{ name: 'pay' }], temperature: 0.5 });
  const config = await session.beforeModel({ tools: [{ name: 'pay' }], temperature: 0.5 });
  assert.deepEqual([config.tools[0].name, config.temperature], ['pay', 0.5]);
  const passed = [
    ...session.chunk({ type: 'text', id: 't', delta: 'write to ana@example.com now' }),
    ...session.chunk({ type: 'finished', reason: 'stop', usage: { promptTokens: 1, completionTokens: 1 } }),
  ];
  assert.doesNotMatch(JSON.stringify(passed), /ana@example/);
  await assert.rejects(session.beforeModel({}), { code: 'run_ended' });
  assert.deepEqual(await session.end({ end: 'finished', content: '' }), []);
});
