import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { simulateReadableStream } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { Engine } from 'callgate';
import { guardTools } from 'callgate/mastra';
import { z } from 'zod';
import { usage } from './ai-sdk-agent.mjs';
import { CALLS, KEYS, RULES, shopEngine, shopTools } from './shop.mjs';

/** A model that makes these calls, one list for each step, and then answers. Each of its prompts is kept. */
function scripted(...steps) {
  let step = 0;
  return new MockLanguageModelV4({
    doStream: async () => {
      const calls = steps[step];
      step += 1;
      const content = (calls ?? []).map(({ tool: toolName, input }, index) => (
        { type: 'tool-call', toolCallId: `c${step}-${index}`, toolName, input: JSON.stringify(input) }));
      const answer = [{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'done' }, { type: 'text-end', id: 't' }];
      const reason = calls === undefined ? 'stop' : 'tool-calls';
      const finish = { type: 'finish', finishReason: { unified: reason, raw: reason }, usage };
      const chunks = [{ type: 'stream-start', warnings: [] }, ...(calls === undefined ? answer : content), finish];
      return { stream: simulateReadableStream({ chunks }) };
    },
  });
}

function mastraTools(tools) {
  const inputSchema = z.looseObject({});
  return Object.fromEntries(Object.entries(tools).map(([id, execute]) => [id, createTool({ id, description: id, inputSchema, execute })]));
}

/** The agent of an application, over this storage of Mastra. */
function open(engine, model, tools, storage = new InMemoryStore()) {
  const guarded = guardTools(engine, mastraTools(tools), { name: 'chat' });
  const agent = new Agent({ id: 'shop', name: 'shop', instructions: 'Help.', model, tools: guarded });
  return new Mastra({ agents: { shop: agent }, storage, logger: false }).getAgent('shop');
}

async function read(stream) {
  const chunks = [];
  for await (const chunk of stream.fullStream) {
    chunks.push(chunk);
  }
  return chunks;
}

/** What the model read of its calls. */
const outputs = model =>
  model.doStreamCalls.at(-1).prompt.filter(({ role }) => role === 'tool').flatMap(({ content }) => content).map(({ output }) => output.value);

test('calls are allowed, denied with a message, edited, cached, redacted and limited', async () => {
  const { ran, tools } = shopTools();
  const { allowed, denied, edited, redacted, limited } = CALLS;
  const model = scripted([allowed], [denied], [edited], [edited], [redacted], [limited], [limited], [limited]);
  await read(await open(await shopEngine(), model, tools).stream('go', { maxSteps: 12 }));
  const found = outputs(model);
  assert.deepEqual(found[0], { refunded: 40 });
  assert.match(JSON.stringify(found[1]), /Not run \(denied\): Customers are never deleted/);
  assert.deepEqual(found.slice(2, 4), [{ found: 'shoes 10' }, { found: 'shoes 10' }]);
  assert.doesNotMatch(JSON.stringify(found[4]), /4111/);
  assert.match(JSON.stringify(found[7]), /Not run \(rate_limited\)/);
  assert.deepEqual(ran.map(([name]) => name), ['refund', 'search', 'card', 'mail', 'mail']);
});

/** Runs an agent until its call is suspended, and resumes it with this answer, with another engine over the same state. */
async function answered(answer, { hours = 0 } = {}) {
  const { ran, tools } = shopTools();
  const rules = RULES.replace('24h }', '24h, edits: [$.input.amount] }');
  const state = `file:${join(mkdtempSync(join(tmpdir(), 'callgate-')), 'state.db')}`;
  const load = options => Engine.fromText(rules, { keys: KEYS, state, ...options });
  const storage = new InMemoryStore();
  const first = await open(await load(), scripted([CALLS.pending]), tools, storage).stream('go');
  const suspended = (await read(first)).find(({ type }) => type === 'tool-call-suspended').payload;
  assert.equal(suspended.suspendPayload.request.message, 'Refund 250?');
  assert.deepEqual(ran, []);
  const time = new Date(Date.now() + hours * 3600_000).toISOString();
  const model = scripted();
  const again = open(await load(hours === 0 ? {} : { time }), model, tools, storage);
  await read(await again.resumeStream(answer, { runId: first.runId, toolCallId: suspended.toolCallId }));
  return { ran: ran.map(([, input]) => input.amount), found: JSON.stringify(outputs(model)) };
}

test('a call that needs approval suspends the run: approved, denied, edited, expired', async () => {
  const approved = await answered({ approved: true });
  assert.deepEqual(approved.ran, [250]);
  assert.match(approved.found, /250/);
  const edited = await answered({ approved: true, editedInput: { amount: 120 } });
  assert.deepEqual(edited.ran, [120]);
  const denied = await answered({ approved: false, reason: 'too much' });
  assert.deepEqual(denied.ran, []);
  assert.match(denied.found, /too much/);
  const expired = await answered({ approved: true }, { hours: 48 });
  assert.deepEqual(expired.ran, []);
  assert.match(expired.found, /approval_expired/);
});

test('a run that is resumed twice runs its call once', async () => {
  const { ran, tools } = shopTools();
  const engine = await shopEngine();
  const { refund } = guardTools(engine, mastraTools(tools), { name: 'chat' });
  let suspensions = 0;
  const context = { toolCallId: 'c1', suspend: async () => (suspensions += 1) };
  await refund.execute({ amount: 250 }, { agent: context });
  assert.equal(suspensions, 1);
  const resume = () => refund.execute({ amount: 250 }, { agent: { ...context, resumeData: { approved: true } } });
  assert.deepEqual([await resume(), await resume()], [{ refunded: 250 }, { refunded: 250 }]);
  assert.equal(ran.length, 1);
  // An answer to what was never asked, and to other arguments.
  for (const [id, amount] of [['c2', 250], ['c1', 999]]) {
    const forged = { agent: { ...context, toolCallId: id, resumeData: { approved: true } } };
    await assert.rejects(refund.execute({ amount }, forged), { name: 'CallRefusedError' });
  }
  await assert.rejects(refund.execute({ amount: 250 }, { agent: { ...context, resumeData: 'yes' } }), { code: 'invalid_argument' });
  assert.equal(ran.length, 1);
});

test('what Mastra cannot express is refused at start', async () => {
  const engine = await shopEngine();
  const inputSchema = z.object({});
  const browser = createTool({ id: 'ask', description: 'ask', inputSchema });
  const suspending = createTool({ id: 'ask', description: 'ask', inputSchema, resumeSchema: z.object({}), execute: () => 'x' });
  for (const ask of [browser, suspending]) {
    assert.throws(() => guardTools(engine, { ask }, { name: 'chat' }), { code: 'unsupported' });
  }
});
