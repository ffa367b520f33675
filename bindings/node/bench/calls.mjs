// Measures calls of the installed package: `node bench/calls.mjs` beside `node_modules/callgate`. Prints microseconds per call.

import { Engine } from 'callgate';

const RULES = `policies:
  - id: at-most-100
    match: { tool: refund, where: { path: $.input.amount, gt: 100 } }
    deny: { message: 'At most 100' }
  - id: no-deletes
    match: 'delete_*'
    deny: {}`;

/** A call of about 250 bytes. */
const CALL = {
  tool: 'refund',
  input: {
    amount: 40,
    currency: 'EUR',
    order: 'order-2026-000017',
    customer: { id: 'c-118', name: 'Ana Example', tier: 'gold' },
    reason: 'The parcel arrived damaged, and the customer sent pictures of it on Monday.',
    lines: [{ sku: 'A-1', quantity: 2 }, { sku: 'B-7', quantity: 1 }],
  },
};

const ROUNDS = 20_000;

async function measure(name, run) {
  for (let index = 0; index < ROUNDS / 4; index += 1) {
    await run(index);
  }
  const best = [];
  for (let repeat = 0; repeat < 5; repeat += 1) {
    const started = process.hrtime.bigint();
    for (let index = 0; index < ROUNDS; index += 1) {
      await run(index);
    }
    best.push(Number(process.hrtime.bigint() - started) / 1000 / ROUNDS);
  }
  console.log(`${name.padEnd(40)} ${Math.min(...best).toFixed(2)} µs`);
}

const engine = await Engine.fromText(RULES);
const session = engine.session();
const concurrent = engine.session().concurrent();
const tool = async ({ amount }) => ({ refunded: amount });

console.log(`a call of ${JSON.stringify(CALL).length} bytes`);
await measure('the tool without Callgate', () => tool(CALL.input));
await measure('engine.decide', () => engine.decide(CALL));
await measure('session.call', () => session.call(CALL, tool));
await measure('session.concurrent().call', index => concurrent.call({ ...CALL, id: `c${index}` }, tool));
