import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serialize } from 'node:v8';
import { test } from 'node:test';
import { Command, MemorySaver } from '@langchain/langgraph';
import { Engine } from 'callgate';
import { agent, toolMessages, turns } from './langchain-agent.mjs';
import { CALLS, KEYS, RULES, shopEngine, shopTools } from './shop.mjs';

const input = { messages: [{ role: 'user', content: 'go' }] };
const config = { configurable: { thread_id: 'ticket 7' } };

test('calls are allowed, denied with a message, edited, cached, redacted and limited', async () => {
  const { ran, tools } = shopTools();
  const { allowed, denied, edited, redacted, limited } = CALLS;
  const calls = turns([allowed], [denied], [edited], [edited], [redacted], [limited], [limited], [limited]);
  const result = await agent(await shopEngine(), calls, tools).invoke(input, { recursionLimit: 60 });
  const found = toolMessages(result);
  assert.match(found[0].content, /40/);
  assert.deepEqual([found[1].status, found[1].content], ['error', 'Not run (denied): Customers are never deleted']);
  assert.match(found[2].content, /shoes 10/);
  assert.match(found[3].content, /shoes 10/);
  assert.doesNotMatch(found[4].content, /4111/);
  assert.match(found[7].content, /^Not run \(rate_limited\)/);
  assert.deepEqual(ran.map(([name]) => name), ['refund', 'search', 'card', 'mail', 'mail']);
});

test('an approval is an interrupt: approved, denied, edited', async () => {
  for (const [answer, status, content, expected] of [
    [{ approved: true }, 'success', /250/, [250]],
    [{ approved: true, editedInput: { amount: 120 } }, 'success', /120/, [120]],
    [{ approved: true, editedInput: { amount: 250, to: 'eve' } }, 'error', /pending approval/, []],
    [{ approved: false, reason: 'too much' }, 'error', /too much/, []],
  ]) {
    const { ran, tools } = shopTools();
    const checkpointer = new MemorySaver();
    const engine = await Engine.fromText(RULES.replace('24h }', '24h, edits: [$.input.amount] }'), { keys: KEYS });
    const first = await agent(engine, turns([CALLS.pending]), tools, checkpointer).invoke(input, config);
    const [{ value }] = first.__interrupt__;
    assert.deepEqual([value.type, value.request.message], ['callgate-approval', 'Refund 250?']);
    assert.deepEqual(ran, []);
    const second = await agent(engine, turns(), tools, checkpointer).invoke(new Command({ resume: answer }), config);
    const [message] = toolMessages(second);
    assert.equal(message.status, status);
    assert.match(message.content, content);
    assert.deepEqual(ran.map(([, { amount }]) => amount), expected);
  }
});

/** Suspends a call, and returns a function that resumes it in a new process, at a time. */
async function suspendedCall() {
  const directory = mkdtempSync(join(tmpdir(), 'callgate-'));
  const [checkpoints, state] = [join(directory, 'checkpoints'), `file:${join(directory, 'state.db')}`];
  const checkpointer = new MemorySaver();
  const { tools } = shopTools();
  await agent(await shopEngine({ state }), turns([CALLS.pending]), tools, checkpointer).invoke(input, config);
  writeFileSync(checkpoints, serialize({ storage: checkpointer.storage, writes: checkpointer.writes }));
  const script = join(dirname(fileURLToPath(import.meta.url)), 'langchain-resume.mjs');
  return (...time) => JSON.parse(execFileSync(process.execPath, [script, checkpoints, state, ...time], { encoding: 'utf8' }));
}

test('an approval is resumed in new processes exactly once', async () => {
  const resume = await suspendedCall();
  const [second, third] = [resume(), resume()];
  assert.deepEqual([second.ran, third.ran], [[['refund', { amount: 250 }]], []]);
  assert.deepEqual(second.contents, third.contents);
});

test('an approval that expired is not resumed', async () => {
  const resume = await suspendedCall();
  const late = resume(new Date(Date.now() + 48 * 3600_000).toISOString());
  assert.deepEqual(late.ran, []);
  assert.match(late.contents[0], /approval_expired/);
});

test('numbers of a result are not rounded', async () => {
  const text = '{"account":12345678901234567890}';
  const result = await agent(await shopEngine(), turns([CALLS.redacted]), { card: () => text }).invoke(input);
  assert.equal(toolMessages(result)[0].content, text);
});
