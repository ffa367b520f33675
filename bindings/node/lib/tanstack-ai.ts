// Middleware for TanStack AI: each call passes the policies before its tool runs.

import type { Engine } from './engine';
import { CallgateError } from './errors';
import { GuardedConversation, type GuardOptions, readContent } from './guard';
import { isCompleted, type Outcome, refusalMessage } from './types';

export { type GuardOptions } from './guard';

/** How the calls of a chat are guarded. */
export interface ChatGuardOptions extends Omit<GuardOptions, 'name' | 'requester'> {
  /** Whose calls these are: a name that no other requester has. A pending call runs when the same call is made again after its approval. */
  requester: string;
}

interface ToolLike {
  name: string;
  execute?: (input: any, context: any) => unknown;
}

interface ChatContext {
  context: unknown;
  signal?: AbortSignal;
  emitCustomEvent(name: string, value: Record<string, any>): void;
}

interface ToolCallContext {
  tool: ToolLike | undefined;
  toolName: string;
  toolCallId: string;
  args: unknown;
}

type Decision = { type: 'skip'; result: unknown } | { type: 'abort'; reason: string };

/** Middleware of `chat()`. */
export interface GuardMiddleware {
  name: string;
  onConfig(context: unknown, config: { tools: readonly any[] }): void;
  onBeforeToolCall(context: any, call: any): Promise<Decision>;
}

/**
 * Middleware for `chat()`. List it last: TanStack AI takes the first decision on a call, and later middleware sees only results.
 *
 * A refused call has the result `{ error }`, which the model reads. A call that needs approval returns at once; once it is approved in the
 * state of the engine (`engine.answer`, `callgate approvals approve`), the same call runs, once. A `halt` policy aborts the run.
 */
export function guardMiddleware(engine: Engine, options: ChatGuardOptions): GuardMiddleware {
  const conversation = new GuardedConversation(engine, { ...options, name: options.requester });
  return {
    name: 'callgate',
    onConfig(_, { tools }) {
      const elsewhere = (tools as ToolLike[]).find(tool => tool.execute === undefined);
      if (elsewhere !== undefined) {
        throw new CallgateError('unsupported', `the tool \`${elsewhere.name}\` runs in the browser, where no policy is evaluated`);
      }
    },
    async onBeforeToolCall(context: ChatContext, { tool, toolName, toolCallId, args }: ToolCallContext) {
      const run = async (final: unknown, { signal }: { signal: AbortSignal }): Promise<unknown> =>
        readContent(
          await tool?.execute?.(final, {
            toolCallId,
            context: context.context,
            abortSignal: signal,
            emitCustomEvent: (name: string, value: Record<string, any>) => context.emitCustomEvent(name, value),
          }),
        );
      let outcome: Outcome;
      try {
        outcome = await conversation.run({ id: '', tool: toolName, input: args }, run, { signal: context.signal });
      } catch (error) {
        if (context.signal?.aborted === true) {
          return { type: 'abort', reason: String(context.signal.reason) };
        }
        throw error;
      }
      if (outcome.outcome === 'halted') {
        return { type: 'abort', reason: refusalMessage(outcome) };
      }
      return { type: 'skip', result: isCompleted(outcome) ? outcome.output : { error: refusalMessage(outcome) } };
    },
  };
}
