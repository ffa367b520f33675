import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { guardServer } from 'callgate/mcp';
import { z } from 'zod';
import { CALLS, shopEngine, shopTools } from './shop.mjs';

const SHAPES = {
  refund: { amount: z.number() },
  delete_customer: { name: z.string() },
  search: { query: z.string(), limit: z.number().optional() },
};

/** A client of a guarded server with these tools. */
async function connect(engine, tools) {
  const server = guardServer(engine, new McpServer({ name: 'shop', version: '1' }), { requester: 'ana' });
  for (const [name, run] of Object.entries(tools)) {
    const result = async input => ({ content: [{ type: 'text', text: JSON.stringify(await run(input)) }] });
    if (SHAPES[name] === undefined) {
      server.registerTool(name, { description: name }, () => result({}));
    } else {
      server.registerTool(name, { description: name, inputSchema: SHAPES[name] }, result);
    }
  }
  const client = new Client({ name: 'test', version: '1' });
  const [one, other] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(one), client.connect(other)]);
  return async ({ tool: name, input }) => {
    const { content, isError = false } = await client.callTool({ name, arguments: input });
    return [isError, content[0].text];
  };
}

test('calls are allowed, denied with a message, edited, cached, redacted and limited', async () => {
  const { ran, tools } = shopTools();
  const call = await connect(await shopEngine(), tools);
  assert.deepEqual(await call(CALLS.allowed), [false, '{"refunded":40}']);
  assert.deepEqual(await call(CALLS.denied), [true, 'Not run (denied): Customers are never deleted']);
  assert.deepEqual(await call(CALLS.edited), [false, '{"found":"shoes 10"}']);
  assert.deepEqual(await call(CALLS.edited), [false, '{"found":"shoes 10"}']);
  assert.doesNotMatch((await call(CALLS.redacted))[1], /4111/);
  await call(CALLS.limited);
  await call(CALLS.limited);
  assert.match((await call(CALLS.limited))[1], /^Not run \(rate_limited\)/);
  assert.deepEqual(ran.map(([name]) => name), ['refund', 'search', 'card', 'mail', 'mail']);
});

test('a call runs once after it was approved, also for another server over the same state', async () => {
  const { ran, tools } = shopTools();
  const state = `file:${join(mkdtempSync(join(tmpdir(), 'callgate-')), 'state.db')}`;
  const engine = await shopEngine({ state });
  const call = await connect(engine, tools);
  assert.match((await call(CALLS.pending))[1], /^Not run: pending approval\. Refund 250\?/);
  assert.match((await call(CALLS.pending))[1], /pending approval/);
  const items = await engine.approvals();
  assert.equal(items.length, 1);
  await engine.answer(items[0].id, { approved: true }, { principal: 'lea' });
  const again = await connect(await shopEngine({ state }), tools);
  assert.deepEqual(await again(CALLS.pending), [false, '{"refunded":250}']);
  // The approval is used up.
  assert.match((await again(CALLS.pending))[1], /pending approval/);
  assert.equal(ran.length, 1);
});

test('a denied approval is read by the model', async () => {
  const { ran, tools } = shopTools();
  const engine = await shopEngine();
  const call = await connect(engine, tools);
  await call(CALLS.pending);
  const [item] = await engine.approvals();
  await engine.answer(item.id, { approved: false, reason: 'too much' }, { principal: 'lea' });
  const [isError, text] = await call(CALLS.pending);
  assert.ok(isError);
  assert.match(text, /too much/);
  assert.deepEqual(ran, []);
});

test('an approval that expired runs nothing', async () => {
  const { ran, tools } = shopTools();
  const state = `file:${join(mkdtempSync(join(tmpdir(), 'callgate-')), 'state.db')}`;
  const engine = await shopEngine({ state });
  await (await connect(engine, tools))(CALLS.pending);
  const [item] = await engine.approvals();
  await engine.answer(item.id, { approved: true }, { principal: 'lea' });
  const time = new Date(Date.now() + 48 * 3600_000).toISOString();
  const [isError, text] = await (await connect(await shopEngine({ state, time }), tools))(CALLS.pending);
  assert.ok(isError);
  assert.match(text, /^Not run/);
  assert.deepEqual(ran, []);
});
