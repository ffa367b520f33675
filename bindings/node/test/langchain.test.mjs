import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command, interrupt, MemorySaver } from '@langchain/langgraph';
import { guardMiddleware } from 'callgate/langchain';
import { createAgent, createMiddleware, FakeToolCallingModel, tool, ToolMessage } from 'langchain';
import { CALLS, shopEngine, shopTools } from './shop.mjs';

/** The calls of each turn, in LangChain's form. */
const turns = (...calls) => [
  ...calls.map((turn, number) =>
    turn.map(({ tool: name, input }, index) => ({ name, args: input, id: `c${number}-${index}`, type: 'tool_call' })),
  ),
  [],
];

function agent(engine, calls, tools, checkpointer) {
  const schema = { type: 'object', properties: {}, additionalProperties: true };
  const made = Object.entries(tools).map(([name, run]) => tool(run, { name, description: name, schema }));
  const middleware = [guardMiddleware(engine, { createMiddleware, interrupt, ToolMessage }, { name: 'chat' })];
  return createAgent({ model: new FakeToolCallingModel({ toolCalls: calls }), tools: made, middleware, checkpointer });
}

const input = { messages: [{ role: 'user', content: 'go' }] };
const toolMessages = ({ messages }) => messages.filter(message => message.type === 'tool' || message.getType?.() === 'tool');

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
  for (const [answer, status, content, runs] of [
    [{ approved: true }, 'success', /250/, 1],
    [{ approved: false, reason: 'too much' }, 'error', /too much/, 0],
  ]) {
    const { ran, tools } = shopTools();
    const checkpointer = new MemorySaver();
    const engine = await shopEngine();
    const config = { configurable: { thread_id: 'ticket 7' } };
    const first = await agent(engine, turns([CALLS.pending]), tools, checkpointer).invoke(input, config);
    const [{ value }] = first.__interrupt__;
    assert.deepEqual([value.type, value.request.message], ['callgate-approval', 'Refund 250?']);
    assert.deepEqual(ran, []);
    // Another agent over the same checkpoints, as after a restart.
    const second = await agent(engine, turns(), tools, checkpointer).invoke(new Command({ resume: answer }), config);
    const [message] = toolMessages(second);
    assert.equal(message.status, status);
    assert.match(message.content, content);
    assert.equal(ran.length, runs);
  }
});
