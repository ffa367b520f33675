// An agent of the AI SDK with a scripted model.

import { isStepCount, jsonSchema, tool, ToolLoopAgent } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { guardTools } from 'callgate/ai-sdk';

export const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that makes these calls, one list for each step, and then answers. */
export function scripted(...steps) {
  let step = 0;
  return new MockLanguageModelV4({
    doGenerate: async () => {
      const calls = steps[step];
      step += 1;
      const content =
        calls === undefined
          ? [{ type: 'text', text: 'done' }]
          : calls.map(({ tool: toolName, input }, index) => ({
              type: 'tool-call',
              toolCallId: `c${step}-${index}`,
              toolName,
              input: JSON.stringify(input),
            }));
      const finish = calls === undefined ? 'stop' : 'tool-calls';
      return { content, finishReason: { unified: finish, raw: finish }, usage, warnings: [] };
    },
  });
}

export function sdkTools(tools) {
  return Object.fromEntries(
    Object.entries(tools).map(([name, execute]) => [
      name,
      tool({ description: name, inputSchema: jsonSchema({ type: 'object' }), execute }),
    ]),
  );
}

/** Runs an agent of the SDK, and returns its result with what the model was sent last. */
export async function run(engine, model, tools, { messages = [{ role: 'user', content: 'go' }], ...options } = {}) {
  const guarded = guardTools(engine, sdkTools(tools), { name: 'chat', ...options });
  const agent = new ToolLoopAgent({ model, tools: guarded, stopWhen: isStepCount(6) });
  const result = await agent.generate({ messages });
  const sent = model.doGenerateCalls.at(-1)?.prompt ?? [];
  const outputs = sent.flatMap(({ role, content }) => (role === 'tool' ? content : [])).filter(part => part.type === 'tool-result');
  return { result, outputs: outputs.map(part => part.output), messages: [...messages, ...result.responseMessages ?? result.response.messages] };
}

/** The messages with the user's answer to the request for approval. */
export const answer = (messages, approved) => {
  const parts = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const { approvalId } = parts.find(part => part.type === 'tool-approval-request');
  return [...messages, { role: 'tool', content: [{ type: 'tool-approval-response', approvalId, approved }] }];
};
