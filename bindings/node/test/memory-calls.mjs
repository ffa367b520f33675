// Makes calls of all kinds, and prints how much stays of each, in bytes: in JavaScript's heap, and in the process. Run it with a small and fixed
// young generation, whose size the process would otherwise change by more than what is measured.

import { createHook } from 'node:async_hooks';
import { Engine } from 'callgate';

const RULES = `policies:
  - { id: stay, match: delete, deny: { message: Nothing is deleted } }
  - { id: large, match: { tool: refund, where: { path: $.input.amount, gt: 100 } }, approval: {} }
  - { id: mails, match: refund, redact: { in: [output], detect: [email] } }`;

/** How many calls to make before measuring, and while it is measured. */
const [warmUp, calls] = process.argv.slice(2).map(Number);

/** The operations that tracing tools know of. */
const operations = new Set();
createHook({
  init: (id, type) => type === 'CallgateOperation' && operations.add(id),
  destroy: id => operations.delete(id),
}).enable();

async function memory() {
  await new Promise(resolve => setTimeout(resolve, 50));
  globalThis.gc();
  return { heap: process.memoryUsage().heapUsed, process: process.memoryUsage.rss() };
}

const engine = await Engine.fromText(RULES);
const input = { order: 'A1', amount: 40, to: 'ana@example.com' };
const refund = async ({ to }) => ({ refunded: to });
const tools = { refund, fail: () => Promise.reject(new Error('out of order')) };
const [session, rounds, other] = [engine.session(), engine.session(), engine.session()];
const concurrent = other.concurrent();
const kinds = [
  id => session.call({ id, tool: 'refund', input }, refund),
  id => session.call({ id: 'c1', tool: id.endsWith('1') ? 'delete' : 'fail', input }, tools),
  id => rounds.callRound([{ id, tool: 'refund', input }], tools),
  id => concurrent.call({ id, tool: 'refund', input }, refund),
];

let made = 0;
async function run(count) {
  for (const end = made + count; made < end; made += 1) {
    await kinds[made % kinds.length](`toolu_${made}`);
  }
}

await run(warmUp);
const before = await memory();
await run(calls);
const after = await memory();
const kept = part => (after[part] - before[part]) / calls;
console.log(JSON.stringify({ heap: kept('heap'), process: kept('process'), operations: operations.size }));
