// Guards the tools of the AI SDK: each call passes the policies before its tool runs.

import type { Engine } from './engine';
import { CallgateError } from './errors';
import { CallRefusedError, GuardedConversation, type GuardOptions, resultOf } from './guard';

export { CallRefusedError, type GuardOptions } from './guard';

/** A tool of the AI SDK, as far as it is read here. */
interface AiSdkTool {
  execute?: (input: any, options: any) => any;
  needsApproval?: unknown;
}

interface ExecutionOptions {
  toolCallId: string;
  messages: readonly { role: string; content: unknown }[];
  abortSignal?: AbortSignal;
}

interface ApprovalPart {
  type: string;
  approvalId?: string;
  toolCallId?: string;
  approved?: boolean;
  reason?: string;
}

/**
 * Returns the same tools, guarded by the engine's policies: for `generateText`, `streamText` and `ToolLoopAgent`.
 *
 * A call that needs approval becomes a `tool-approval-request` of the AI SDK. Throws if a tool has no `execute`, because its calls run
 * where Callgate does not see them.
 */
export function guardTools<T extends Record<string, any>>(engine: Engine, tools: T, options: GuardOptions): T {
  const conversation = new GuardedConversation(engine, options);
  const guarded: Record<string, unknown> = {};
  for (const [name, tool] of Object.entries(tools)) {
    guarded[name] = guardTool(conversation, name, tool as AiSdkTool);
  }
  return guarded as T;
}

function guardTool(conversation: GuardedConversation, name: string, tool: AiSdkTool): AiSdkTool {
  const { execute, needsApproval } = tool;
  if (execute === undefined) {
    throw new CallgateError(
      'unsupported',
      `the tool \`${name}\` has no \`execute\`: its calls run in the browser or at the provider, where no policy is evaluated`,
    );
  }
  const ownNeed = async (input: unknown, options: ExecutionOptions): Promise<boolean> =>
    typeof needsApproval === 'function' ? Boolean(await needsApproval(input, options)) : needsApproval === true;
  return {
    ...tool,
    needsApproval: async (input: unknown, options: ExecutionOptions) => {
      // The SDK asks again about calls that were answered. Such an answer must not make the request that it answers.
      const isAnswered = findResponse(options.messages, options.toolCallId) !== undefined;
      const needs = isAnswered
        ? await conversation.hasRequest(options.toolCallId)
        : await conversation.needsApproval(options.toolCallId, name, input);
      return needs || (await ownNeed(input, options));
    },
    execute: async (input: unknown, options: ExecutionOptions) => {
      const call = { id: options.toolCallId, tool: name, input };
      const run = (final: unknown, context: { signal: AbortSignal }): unknown =>
        lastOf(execute(final, { ...options, abortSignal: context.signal }));
      const response = findResponse(options.messages, options.toolCallId);
      return resultOf(await conversation.run(call, run, { response, signal: options.abortSignal }));
    },
  };
}

/** The approval of a call in the messages of the AI SDK. A denied call never gets here. */
function findResponse(messages: ExecutionOptions['messages'], callId: string): { approved: true } | undefined {
  const parts = messages.flatMap(({ role, content }) =>
    Array.isArray(content) ? (content as ApprovalPart[]).map(part => ({ role, part })) : [],
  );
  const asked = parts.filter(({ role, part }) => role === 'assistant' && part.type === 'tool-approval-request');
  const ids = new Set(asked.filter(({ part }) => part.toolCallId === callId).map(({ part }) => part.approvalId));
  const answers = parts.filter(({ role, part }) => role === 'tool' && part.type === 'tool-approval-response');
  return answers.some(({ part }) => ids.has(part.approvalId) && part.approved === true) ? { approved: true } : undefined;
}

/** The last value of a tool that streams preliminary results, which no policy has redacted. */
async function lastOf(result: unknown): Promise<unknown> {
  if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result)) {
    return result;
  }
  let last: unknown;
  for await (const value of result as AsyncIterable<unknown>) {
    last = value;
  }
  return last;
}
