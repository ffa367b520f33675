// Middleware for TanStack AI: its hooks pass the configuration of model calls, the model's stream and usage, and each tool call through the policies.

import type { Engine } from './engine';
import { CallgateError } from './errors';
import { GuardedConversation, type GuardOptions, readContent } from './guard';
import { Chat, type ChatContext } from './tanstack-ai-chat';
import type { ChatConfig, SamplingNames } from './tanstack-ai-config';
import type { StreamEvent } from './tanstack-ai-stream';
import { isCompleted, type Outcome, refusalMessage } from './types';

export { type GuardOptions } from './guard';
export type { SamplingNames } from './tanstack-ai-config';

/** How the calls of a chat are guarded. */
export interface ChatGuardOptions extends Omit<GuardOptions, 'name' | 'requester' | 'appliedElsewhere'> {
  /** Whose calls these are: a name that no other requester has. A pending call runs when the same call is made again after its approval. */
  requester: string;
  /**
   * The names in `modelOptions` of the sampling parameters that `model` policies change, such as `{ maxTokens: 'max_tokens' }`. Needed for
   * adapters that Callgate does not know.
   */
  samplingNames?: SamplingNames;
}

interface ToolLike {
  name: string;
  execute?: (input: any, context: any) => unknown;
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
  onConfig(context: any, config: any): Promise<any>;
  onStructuredOutputConfig(context: any): void;
  onShouldContinue(context: any, state: { lastTurnToolCallCount: number }): Promise<boolean | void>;
  onChunk(context: any, chunk: any): Promise<any>;
  onUsage(context: any, usage: any): void;
  onBeforeToolCall(context: any, call: any): Promise<Decision>;
  onToolPhaseComplete(context: any, phase: { toolCalls: readonly any[] }): Promise<void>;
  onFinish(context: any, info: { finishReason: string | null }): Promise<void>;
  onAbort(context: any, info: { reason?: string }): Promise<void>;
  onError(context: any, info: { error: unknown }): Promise<void>;
}

/**
 * Middleware for `chat()`. List it last: TanStack AI takes the first decision on a call, and later middleware sees only results.
 *
 * A refused call has the result `{ error }`, which the model reads. A call that needs approval returns at once; once it is approved in the
 * state of the engine (`engine.answer`, `callgate approvals approve`), the same call runs, once. A policy that ends the run aborts the chat.
 *
 * Each chat is a run. A chat continues with the labels and facts of the last one that ended. While another chat runs, or after one whose reader
 * went away before its end, they are known only to a shared `state` of the engine; without one, conditions that read them are undecided.
 */
export function guardMiddleware(engine: Engine, options: ChatGuardOptions): GuardMiddleware {
  const { samplingNames = {}, ...guard } = options;
  const open = (hasUnknownPast: boolean): GuardedConversation =>
    new GuardedConversation(engine, { ...guard, name: options.requester, hasUnknownPast }, []);
  // Mistakes in the options are reported now.
  let idle: GuardedConversation | undefined = open(options.hasUnknownPast ?? false);
  let kinds: { revision: string; names: ReadonlySet<string> } | undefined;
  const hasPolicies = (kind: string): boolean => {
    if (kinds?.revision !== engine.revision) {
      kinds = { revision: engine.revision, names: new Set(engine.policyKinds) };
    }
    return kinds.names.has(kind);
  };
  const chats = new WeakMap<ChatContext, Chat>();
  const settings = {
    samplingNames,
    server: options.server,
    mayHave: (kind: string) => (options.layers ?? []).length > 0 || hasPolicies(kind),
    release: (conversation: GuardedConversation) => {
      idle = conversation;
    },
  };
  const chatOf = (context: ChatContext): Chat => {
    let chat = chats.get(context);
    if (chat === undefined) {
      // What a chat has done that still runs, or whose reader went away, is not known here.
      const conversation = idle ?? open(true);
      idle = undefined;
      chat = new Chat(conversation, context, settings);
      chats.set(context, chat);
    }
    return chat;
  };
  return {
    name: 'callgate',
    async onConfig(context: ChatContext, config: ChatConfig) {
      const elsewhere = (config.tools as readonly ToolLike[]).find(tool => tool.execute === undefined);
      if (elsewhere !== undefined) {
        throw new CallgateError('unsupported', `the tool \`${elsewhere.name}\` runs in the browser, where no policy is evaluated`);
      }
      return context.phase === 'init' ? chatOf(context).begin(config) : chatOf(context).beforeModel(config);
    },
    onStructuredOutputConfig: (context: ChatContext) => chatOf(context).refuseStructuredOutput(),
    async onShouldContinue(context: ChatContext, { lastTurnToolCallCount }) {
      // After a turn without tool calls no model call follows.
      const mayContinue = lastTurnToolCallCount === 0 || (await chatOf(context).mayContinue());
      return mayContinue ? undefined : false;
    },
    onChunk: (context: ChatContext, chunk: StreamEvent) => chatOf(context).push(chunk),
    onUsage: (context: ChatContext, usage) => chatOf(context).count(usage),
    async onBeforeToolCall(context: ChatContext, call: ToolCallContext) {
      const { conversation, stopReason } = chatOf(context);
      return stopReason === undefined ? runTool(conversation, context, call) : { type: 'abort', reason: stopReason };
    },
    onToolPhaseComplete: (context: ChatContext, { toolCalls }) =>
      chatOf(context).recordHiddenCalls(toolCalls.map((call: { function: { name: string; arguments: string } }) => call.function)),
    onFinish: (context: ChatContext, { finishReason }) => chatOf(context).end({ end: 'finished', reason: finishReason }),
    onAbort: (context: ChatContext, { reason }) => chatOf(context).end({ end: 'aborted', reason: reason ?? 'aborted' }),
    onError: (context: ChatContext, { error }) =>
      chatOf(context).end({ end: 'failed', error: error instanceof Error ? error.message : String(error) }),
  };
}

/** Evaluates a call, and runs its tool if the policies allow it. */
async function runTool(conversation: GuardedConversation, context: ChatContext, call: ToolCallContext): Promise<Decision> {
  const { tool, toolName, toolCallId, args } = call;
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
}
