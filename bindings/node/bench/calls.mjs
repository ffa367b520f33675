// Measures what Callgate adds to a call, beside the same calls without it, and prints tables in Markdown.
//
// usage: node bench/calls.mjs [calls] [frameworks] [memory]
//
// Run it beside `node_modules` with the package, and for `frameworks` with those of `test/package.json`. Times are CPU time of the process,
// which other programs of the machine change little: the least and the median of 15 runs. `memory` makes a million calls.

import { readdirSync } from 'node:fs';
import { Engine } from 'callgate';

const RULES = `policies:
  - id: customers-stay
    match: delete_customer
    deny: { message: Customers are never deleted }
  - id: at-most-1000
    match: { tool: refund, where: { path: $.input.amount, gt: 1000 } }
    deny: { message: At most 1000 }
  - id: large-refunds-need-approval
    match: { tool: refund, where: { path: $.input.amount, gt: 100 } }
    approval: { message: "Refund {{ input.amount }}?" }
  - id: no-foreign-currency
    match: { tool: refund, where: { path: $.input.currency, in: [USD, CHF] } }
    deny: { message: Only EUR }
  - id: refunds-are-permitted
    match: refund
    allow: {}`;

const INPUT = { order: 'A1', amount: 40, currency: 'EUR', note: 'x'.repeat(190) };
/** A call of about 250 bytes. */
const CALL = { tool: 'refund', input: INPUT };
const RUNS = 15;

/** Prints the least and the median of the CPU time of one call. */
async function measure(name, count, run) {
  await run(Math.ceil(count / 2));
  const times = [];
  for (let index = 0; index < RUNS; index += 1) {
    const before = process.cpuUsage();
    await run(count);
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / count);
  }
  times.sort((one, other) => one - other);
  console.log(`| ${name} | ${times[0].toFixed(1)} µs | ${times[Math.floor(RUNS / 2)].toFixed(1)} µs |`);
}

const repeated = call => async count => {
  for (let index = 0; index < count; index += 1) {
    await call(index);
  }
};

function heading(title) {
  console.log(`\n| ${title} | least | median |\n| --- | --- | --- |`);
}

async function calls() {
  const engine = await Engine.fromText(RULES);
  const session = engine.session();
  const concurrent = engine.session().concurrent();
  const tool = async ({ amount }) => ({ refunded: amount });
  heading('calls of the package');
  await measure('the tool alone', 20_000, repeated(() => tool(INPUT)));
  await measure('`engine.decide`', 20_000, repeated(() => engine.decide(CALL)));
  await measure('`session.call`', 10_000, repeated(() => session.call(CALL, tool)));
  await measure('`call` of a concurrent session', 10_000, repeated(() => concurrent.call(CALL, tool)));
  let threads = 0;
  const waiting = async ({ amount }) => {
    await new Promise(resolve => setTimeout(resolve, 1));
    threads = Math.max(threads, readdirSync('/proc/self/task').length);
    return { refunded: amount };
  };
  const before = readdirSync('/proc/self/task').length;
  await Promise.all(Array.from({ length: 1000 }, () => concurrent.call(CALL, waiting)));
  console.log(`\nThreads before and during 1,000 calls at once: ${before}, ${threads}`);
}

async function frameworks() {
  await aiSdk();
  await langchain();
}

async function aiSdk() {
  const { isStepCount, jsonSchema, tool, ToolLoopAgent } = await import('ai');
  const { MockLanguageModelV4 } = await import('ai/test');
  const { guardTools } = await import('callgate/ai-sdk');
  const each = 50;
  const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
  const model = () => {
    let step = 0;
    return new MockLanguageModelV4({
      doGenerate: async () => {
        step += 1;
        const requests = Array.from({ length: each }, (_, index) => (
          { type: 'tool-call', toolCallId: `c${index}`, toolName: 'refund', input: JSON.stringify(INPUT) }));
        const content = step === 1 ? requests : [{ type: 'text', text: 'done' }];
        const finish = step === 1 ? 'tool-calls' : 'stop';
        return { content, finishReason: { unified: finish, raw: finish }, usage, warnings: [] };
      },
    });
  };
  const refund = { inputSchema: jsonSchema({ type: 'object' }), execute: ({ amount }) => ({ refunded: amount }) };
  const loop = tools => async count => {
    for (let index = 0; index < count; index += each) {
      await new ToolLoopAgent({ model: model(), tools: tools(), stopWhen: isStepCount(3) }).generate({ prompt: 'go' });
    }
  };
  const engine = await Engine.fromText(RULES);
  heading('one call of an agent of the AI SDK');
  await measure('without Callgate', 500, loop(() => ({ refund: tool(refund) })));
  await measure('with the own `needsApproval` of the SDK, a function', 500, loop(() => ({ refund: tool({ ...refund, needsApproval: async () => false }) })));
  let chat = 0;
  await measure('with Callgate', 500, loop(() => guardTools(engine, { refund: tool(refund) }, { name: `chat ${(chat += 1)}` })));
}

async function langchain() {
  const { interrupt } = await import('@langchain/langgraph');
  const { createAgent, createMiddleware, FakeToolCallingModel, tool, ToolMessage } = await import('langchain');
  const { guardMiddleware } = await import('callgate/langchain');
  const { z } = await import('zod');
  const each = 50;
  const requests = Array.from({ length: each }, (_, index) => ({ name: 'refund', args: INPUT, id: `c${index}`, type: 'tool_call' }));
  const schema = z.object({ order: z.string(), amount: z.number(), currency: z.string(), note: z.string() });
  const refund = tool(({ amount }) => `refunded ${amount}`, { name: 'refund', description: 'Refund', schema });
  const loop = middleware => async count => {
    for (let index = 0; index < count; index += each) {
      const model = new FakeToolCallingModel({ toolCalls: [requests, []] });
      await createAgent({ model, tools: [refund], middleware: middleware() }).invoke({ messages: [{ role: 'user', content: 'go' }] });
    }
  };
  const engine = await Engine.fromText(RULES);
  let chat = 0;
  const guard = () => guardMiddleware(engine, { createMiddleware, interrupt, ToolMessage }, { name: `chat ${(chat += 1)}` });
  heading('one call of a LangChain agent');
  await measure('without middleware', 200, loop(() => []));
  const pass = createMiddleware({ name: 'pass', wrapToolCall: async (request, handler) => handler(request) });
  await measure('with a middleware of LangChain that does nothing', 200, loop(() => [pass]));
  await measure('with Callgate', 200, loop(() => [guard()]));
}

/** Prints the memory of the process after each 250,000 of a million calls. */
async function memory() {
  const session = (await Engine.fromText(RULES)).session();
  console.log('\n| calls | memory in use |\n| --- | --- |');
  for (let done = 0; done <= 1_000_000; done += 250_000) {
    globalThis.gc?.();
    console.log(`| ${done.toLocaleString('en')} | ${(process.memoryUsage.rss() / 2 ** 20).toFixed(1)} MiB |`);
    for (let index = 0; done < 1_000_000 && index < 250_000; index += 1) {
      await session.call({ ...CALL, id: `c${index % 1000}` }, ({ amount }) => ({ refunded: amount }));
    }
  }
}

const PARTS = { calls, frameworks, memory };
for (const name of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(PARTS)) {
  await PARTS[name]();
}
