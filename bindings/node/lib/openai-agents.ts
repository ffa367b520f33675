// Guards the function tools of the OpenAI Agents SDK: each call passes the policies before its tool runs.

import type { Engine } from './engine';
import { CallgateError } from './errors';
import { GuardedConversation, type GuardOptions } from './guard';
import { parseJson, stringifyJson } from './json';
import { isCompleted, refusalMessage } from './types';

export { CallRefusedError, type GuardOptions } from './guard';

/** The context of a run, as far as it is read here. */
interface RunContext {
  isToolApproved(approval: { toolName: string; callId: string }): boolean | undefined;
}

interface CallDetails {
  toolCall?: { callId?: string };
  signal?: AbortSignal;
}

/** A function tool of the SDK, as far as it is read here. */
interface FunctionTool {
  type: string;
  name: string;
  invoke(context: RunContext, input: string, details?: CallDetails): Promise<unknown>;
  needsApproval(context: RunContext, input: unknown, callId?: string): Promise<boolean>;
}

/**
 * Returns the same tools, guarded by the engine's policies, for an `Agent`.
 *
 * A call that needs approval interrupts the run, as the SDK's own `needsApproval` does. Throws for tools that are not function tools:
 * they run where Callgate does not see their calls.
 */
export function guardTools<T extends { type: string; name: string }>(engine: Engine, tools: readonly T[], options: GuardOptions): T[] {
  const conversation = new GuardedConversation(engine, options);
  return tools.map(tool => guardTool(conversation, tool as unknown as FunctionTool) as unknown as T);
}

function guardTool(conversation: GuardedConversation, tool: FunctionTool): FunctionTool {
  if (tool.type !== 'function') {
    throw new CallgateError('unsupported', `\`${tool.name}\` is not a function tool: no policy is evaluated for its calls`);
  }
  const { name } = tool;
  return {
    ...tool,
    needsApproval: async (context, input, callId) => {
      if (callId === undefined) {
        // Nobody could answer for a call without an id; it is refused when it is made, if it needs approval.
        return tool.needsApproval(context, input, callId);
      }
      // The answer to a request must not make the request.
      const isAnswered = context.isToolApproved({ toolName: name, callId }) !== undefined;
      const needs = isAnswered ? await conversation.hasRequest(callId) : await conversation.needsApproval(callId, name, input);
      return needs || tool.needsApproval(context, input, callId);
    },
    invoke: async (context, input, details) => {
      const id = details?.toolCall?.callId ?? '';
      const run = (final: unknown, { signal }: { signal: AbortSignal }): unknown =>
        tool.invoke(context, stringifyJson(final), { ...details, signal });
      const isApproved = id !== '' && context.isToolApproved({ toolName: name, callId: id }) === true;
      const outcome = await conversation.run({ id, tool: name, input: readArguments(input) }, run, {
        response: isApproved ? { approved: true } : undefined,
        signal: details?.signal,
      });
      return isCompleted(outcome) ? outcome.output : refusalMessage(outcome);
    },
  };
}

/** The arguments of a call. What is not JSON stays a string, which the policies deny. */
function readArguments(text: string): unknown {
  if (text.trim() === '') {
    return {};
  }
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
