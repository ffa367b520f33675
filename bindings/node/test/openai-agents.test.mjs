import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Agent, run, RunState, tool, webSearchTool } from '@openai/agents';
import { guardTools } from 'callgate/openai-agents';
import { scripted } from './openai-agents-model.mjs';
import { CALLS, shopEngine, shopTools } from './shop.mjs';

function agent(engine, model, tools) {
  const parameters = { type: 'object', properties: {}, required: [], additionalProperties: true };
  const made = Object.entries(tools).map(([name, execute]) =>
    tool({ name, description: name, strict: false, parameters, execute }),
  );
  return new Agent({ name: 'shop', model, tools: guardTools(engine, made, { name: 'chat' }) });
}

/** What the model read of its calls. */
const outputs = model =>
  model.requests.at(-1).input.filter(({ type }) => type === 'function_call_result').map(({ output }) => output.text ?? output);

test('calls are allowed, denied with a message, edited, cached, redacted and limited', async () => {
  const { ran, tools } = shopTools();
  const { allowed, denied, edited, redacted, limited } = CALLS;
  const model = scripted([allowed, denied], [edited], [edited, redacted], [limited], [limited], [limited]);
  const result = await run(agent(await shopEngine(), model, tools), 'go');
  assert.equal(result.finalOutput, 'done');
  const texts = outputs(model).map(output => (typeof output === 'string' ? output : JSON.stringify(output)));
  assert.match(texts[0], /40/);
  assert.equal(texts[1], 'Not run (denied): Customers are never deleted');
  assert.match(texts[2], /shoes 10/);
  assert.match(texts[3], /shoes 10/);
  assert.doesNotMatch(texts[4], /4111/);
  assert.match(texts[7], /^Not run \(rate_limited\)/);
  assert.deepEqual(ran.map(([name]) => name), ['refund', 'search', 'card', 'mail', 'mail']);
});

test('an approval interrupts the run, and is resumed by another engine over the same state, once', async () => {
  const { ran, tools } = shopTools();
  const state = `file:${join(mkdtempSync(join(tmpdir(), 'callgate-')), 'state.db')}`;
  const open = async () => agent(await shopEngine({ state }), scripted([CALLS.pending]), tools);
  const first = await run(await open(), 'go');
  assert.equal(first.interruptions.length, 1);
  assert.deepEqual(ran, []);
  const stored = first.state.toString();
  const resume = async () => {
    const model = scripted();
    const again = agent(await shopEngine({ state }), model, tools);
    const restored = await RunState.fromString(again, stored);
    restored.approve(restored.getInterruptions()[0]);
    await run(again, restored);
    return outputs(model);
  };
  assert.match(JSON.stringify(await resume()), /250/);
  assert.match(JSON.stringify(await resume()), /250/);
  assert.deepEqual(ran, [['refund', { amount: 250 }]]);
});

test('a rejected call does not run, nor one whose approval expired', async () => {
  for (const [decide, time, message] of [
    ['reject', undefined, /not approved/i],
    ['approve', new Date(Date.now() + 48 * 3600_000).toISOString(), /approval_expired/],
  ]) {
    const { ran, tools } = shopTools();
    const state = `file:${join(mkdtempSync(join(tmpdir(), 'callgate-')), 'state.db')}`;
    const first = await run(agent(await shopEngine({ state }), scripted([CALLS.pending]), tools), 'go');
    const model = scripted();
    const again = agent(await shopEngine({ state, ...(time === undefined ? {} : { time }) }), model, tools);
    const restored = await RunState.fromString(again, first.state.toString());
    restored[decide](restored.getInterruptions()[0]);
    await run(again, restored);
    assert.match(JSON.stringify(outputs(model)), message);
    assert.deepEqual(ran, []);
  }
});

test('tools that run at the provider are refused at start', async () => {
  const engine = await shopEngine();
  assert.throws(() => guardTools(engine, [webSearchTool()], { name: 'chat' }), { code: 'unsupported' });
});
