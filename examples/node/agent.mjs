// The agent of the support desk: its tools, guarded by the rules, and a model that is scripted.

import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { isStepCount, simulateReadableStream, tool, ToolLoopAgent } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { Engine } from 'callgate';
import { guardTools } from 'callgate/ai-sdk';
import { z } from 'zod';

/** What the model calls, one list for each step. Replace `scriptedModel()` by a provider's model, such as `openai('gpt-5')`. */
const STEPS = [
  [{ tool: 'find_order', input: { order: 'A2' } }, { tool: 'delete_customer', input: { customer: 'bob' } }],
  [{ tool: 'refund', input: { order: 'A1', amount: 40 } }, { tool: 'refund', input: { order: 'A2', amount: 250 } }],
];

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that goes on after the steps that the conversation has already. */
function scriptedModel() {
  return new MockLanguageModelV4({
    doStream: async ({ prompt }) => {
      const step = prompt.filter(({ role, content }) => role === 'assistant' && content.some(({ type }) => type === 'tool-call')).length;
      const calls = STEPS[step] ?? [];
      const content = calls.map(({ tool: toolName, input }, index) => (
        { type: 'tool-call', toolCallId: `call-${step}-${index}`, toolName, input: JSON.stringify(input) }));
      const answer = [{ type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'All done.' }, { type: 'text-end', id: 't' }];
      const reason = calls.length > 0 ? 'tool-calls' : 'stop';
      const chunks = [...(calls.length > 0 ? content : answer), { type: 'finish', finishReason: { unified: reason, raw: reason }, usage }];
      return { stream: simulateReadableStream({ chunks }) };
    },
  });
}

/** The tools of the shop. What they refunded is in a file. */
function shopTools(journal) {
  const order = z.string();
  return {
    find_order: tool({
      inputSchema: z.object({ order }),
      execute: ({ order }) => ({ order, buyer: 'ana@example.com', total: 290 }),
    }),
    refund: tool({
      inputSchema: z.object({ order, amount: z.number() }),
      execute: ({ order, amount }) => {
        appendFileSync(journal, `refund ${amount} for ${order}\n`);
        return `refunded ${amount}`;
      },
    }),
    delete_customer: tool({ inputSchema: z.object({ customer: z.string() }), execute: () => 'deleted' }),
  };
}

/** Opens the application: `agent(chat)` is the agent of one conversation. Its state and its journal are in the directory. */
export async function openDesk(directory) {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const rules = join(import.meta.dirname, 'rules.yaml');
  const engine = await Engine.load(rules, { state: `file:${join(directory, 'state.db')}` });
  const tools = shopTools(join(directory, 'journal.txt'));
  const agent = chat => {
    const options = { name: chat, context: { principal: 'agent', tenant: 'shop' } };
    return new ToolLoopAgent({ model: scriptedModel(), tools: guardTools(engine, tools, options), stopWhen: isStepCount(8) });
  };
  return { agent };
}
