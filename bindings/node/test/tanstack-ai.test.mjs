import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { chat, toolDefinition } from '@tanstack/ai';
import { Engine } from 'callgate';
import { guardMiddleware } from 'callgate/tanstack-ai';
import { z } from 'zod';
import { scripted } from './tanstack-ai-model.mjs';
import { CALLS, shopEngine, shopTools } from './shop.mjs';

function serverTools(tools) {
  const inputSchema = z.looseObject({});
  return Object.entries(tools).map(([name, run]) => toolDefinition({ name, description: name, inputSchema }).server(run));
}

/** Runs a chat. Returns the chunks, and the results that the model read. */
async function run(engine, model, tools) {
  const middleware = [guardMiddleware(engine, { requester: 'ana' })];
  const chunks = [];
  for await (const chunk of chat({ adapter: model, messages: [{ role: 'user', content: 'go' }], tools: serverTools(tools), middleware })) {
    chunks.push(chunk);
  }
  const results = model.requests.at(-1).messages.filter(({ role }) => role === 'tool').map(({ content }) => JSON.parse(content));
  return { chunks, results };
}

test('calls are allowed, denied with a message, edited, cached, redacted and limited', async () => {
  const { ran, tools } = shopTools();
  const { allowed, denied, edited, redacted } = CALLS;
  const model = scripted([allowed, denied], [edited, edited, redacted]);
  const { results } = await run(await shopEngine(), model, tools);
  assert.deepEqual(results[0], { refunded: 40 });
  assert.deepEqual(results[1], { error: 'Not run (denied): Customers are never deleted' });
  assert.deepEqual(results.slice(2, 4), [{ found: 'shoes 10' }, { found: 'shoes 10' }]);
  assert.doesNotMatch(JSON.stringify(results[4]), /4111/);
  assert.deepEqual(ran.map(([name]) => name), ['refund', 'search', 'card']);
  const { limited } = CALLS;
  const limits = await run(await shopEngine(), scripted([limited, limited, limited]), tools);
  assert.match(limits.results[2].error, /^Not run \(rate_limited\)/);
});

test('a call runs once after it was approved, also in another chat over the same state', async () => {
  const { ran, tools } = shopTools();
  const state = `file:${join(mkdtempSync(join(tmpdir(), 'callgate-')), 'state.db')}`;
  const engine = await shopEngine({ state });
  const { results } = await run(engine, scripted([CALLS.pending]), tools);
  assert.match(results[0].error, /^Not run: pending approval\. Refund 250\?/);
  const [item] = await engine.approvals();
  await engine.answer(item.id, { approved: true }, { principal: 'lea' });
  const second = await run(await shopEngine({ state }), scripted([CALLS.pending], [CALLS.pending]), tools);
  assert.deepEqual(second.results[0], { refunded: 250 });
  assert.match(second.results[1].error, /pending approval/);
  assert.deepEqual(ran, [['refund', { amount: 250 }]]);
});

test('a call whose approval was denied, or expired, does not run', async () => {
  for (const [approved, hours, message] of [[false, 0, /too much/], [true, 48, /^Not run/]]) {
    const { ran, tools } = shopTools();
    const state = `file:${join(mkdtempSync(join(tmpdir(), 'callgate-')), 'state.db')}`;
    const engine = await shopEngine({ state });
    await run(engine, scripted([CALLS.pending]), tools);
    const [item] = await engine.approvals();
    await engine.answer(item.id, { approved, reason: 'too much' }, { principal: 'lea' });
    const time = new Date(Date.now() + hours * 3600_000).toISOString();
    const { results } = await run(await shopEngine({ state, time }), scripted([CALLS.pending]), tools);
    assert.match(results[0].error, message);
    assert.deepEqual(ran, []);
  }
});

test('a policy that halts ends the run, and no later call of it runs', async () => {
  const { ran, tools } = shopTools();
  const engine = await Engine.fromText('policies: [{ id: stop, match: delete_customer, halt: { message: Stop } }]');
  await run(engine, scripted([CALLS.denied, CALLS.allowed], [CALLS.allowed]), tools);
  assert.deepEqual(ran, []);
});

test('a chat that is aborted ends, and its running tool with it', async () => {
  let signal;
  const controller = new AbortController();
  const waiting = (_, { abortSignal }) => {
    signal = abortSignal;
    setTimeout(() => controller.abort('enough'), 10);
    return new Promise(resolve => abortSignal.addEventListener('abort', () => resolve('late'), { once: true }));
  };
  const middleware = [guardMiddleware(await shopEngine(), { requester: 'ana' })];
  const options = { adapter: scripted([CALLS.allowed]), messages: [{ role: 'user', content: 'go' }], abortController: controller };
  for await (const chunk of chat({ ...options, tools: serverTools({ refund: waiting }), middleware })) {
    assert.notEqual(chunk.type, 'TOOL_CALL_RESULT');
  }
  assert.equal(signal.aborted, true);
});

test('a result that is JSON as a string is read by policies', async () => {
  const { results } = await run(await shopEngine(), scripted([CALLS.redacted]), { card: () => '{"number":"4111 1111 1111 1111","id":7}' });
  assert.doesNotMatch(JSON.stringify(results), /4111/);
  assert.equal(results[0].id, 7);
});

test('tools of the browser are refused at start', async () => {
  const { tools } = shopTools();
  const browser = toolDefinition({ name: 'ask', description: 'ask', inputSchema: z.object({}) }).client();
  const middleware = [guardMiddleware(await shopEngine(), { requester: 'ana' })];
  const chunks = [];
  const reading = async () => {
    const all = [...serverTools(tools), browser];
    for await (const chunk of chat({ adapter: scripted([CALLS.allowed]), messages: [{ role: 'user', content: 'go' }], tools: all, middleware })) {
      chunks.push(chunk);
    }
  };
  const error = await reading().then(() => undefined, error => error);
  assert.match(error?.message ?? JSON.stringify(chunks.find(({ type }) => type === 'RUN_ERROR')), /runs in the browser/);
});
