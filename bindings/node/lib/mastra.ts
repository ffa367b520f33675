// Guards the tools of Mastra: each call passes the policies before its tool runs. A call that needs approval suspends the run.

import type { Engine } from './engine';
import { CallgateError } from './errors';
import { GuardedConversation, type GuardOptions, resultOf } from './guard';
import type { ApprovalRequest, ApprovalResponse } from './types';

export { CallRefusedError, type GuardOptions } from './guard';

/** The payload of a suspended call. Resume the run with an `ApprovalResponse`, as in `resumeStream({ approved: true }, { runId, toolCallId })`. */
export interface ApprovalSuspension {
  type: 'callgate-approval';
  request: ApprovalRequest;
}

/** What Mastra passes to a tool, as far as it is read here. */
interface ToolContext {
  abortSignal?: AbortSignal;
  agent?: {
    toolCallId: string;
    resumeData?: unknown;
    suspend(payload: ApprovalSuspension): Promise<unknown>;
  };
}

/** A tool of Mastra, as far as it is read here. */
interface MastraTool {
  id: string;
  execute?: (input: unknown, context: ToolContext) => unknown;
  suspendSchema?: unknown;
  resumeSchema?: unknown;
}

/**
 * Returns the same tools, guarded by the engine's policies, for an `Agent`. Mastra needs a storage to resume a suspended run.
 *
 * Throws if a tool has no `execute`, because its calls run where Callgate does not see them, or if it suspends by itself.
 */
export function guardTools<T extends Record<string, any>>(engine: Engine, tools: T, options: GuardOptions): T {
  const conversation = new GuardedConversation(engine, options);
  const guarded = Object.entries(tools).map(([name, tool]) => [name, guardTool(conversation, name, tool as MastraTool)]);
  return Object.fromEntries(guarded) as T;
}

function guardTool(conversation: GuardedConversation, name: string, tool: MastraTool): MastraTool {
  const { execute } = tool;
  if (execute === undefined) {
    throw new CallgateError('unsupported', `the tool \`${name}\` has no \`execute\`: its calls run where no policy is evaluated`);
  }
  if (tool.suspendSchema !== undefined || tool.resumeSchema !== undefined) {
    throw new CallgateError('unsupported', `the tool \`${name}\` suspends by itself, so an approval could not be told from its own data`);
  }
  const guarded = async (input: unknown, context: ToolContext = {}): Promise<unknown> => {
    const { agent, abortSignal } = context;
    const id = agent?.toolCallId ?? '';
    let response: ApprovalResponse | undefined;
    if (agent?.resumeData !== undefined) {
      response = readResponse(agent.resumeData);
    } else if (agent !== undefined && id !== '' && (await conversation.needsApproval(id, name, input))) {
      const request = (await conversation.session.findRequest(`approval_${id}`)) as ApprovalRequest;
      return agent.suspend({ type: 'callgate-approval', request });
    }
    const run = (final: unknown, { signal }: { signal: AbortSignal }): unknown =>
      execute(final, { ...context, abortSignal: signal });
    return resultOf(await conversation.run({ id, tool: name, input }, run, { response, signal: abortSignal }));
  };
  // Mastra tells its tools by their class.
  return Object.assign(Object.create(Object.getPrototypeOf(tool) as object) as MastraTool, tool, { execute: guarded });
}

function readResponse(data: unknown): ApprovalResponse {
  if (typeof (data as ApprovalResponse | null)?.approved !== 'boolean') {
    throw new CallgateError('invalid_argument', 'resume the call with `{ approved: true }` or `{ approved: false }`');
  }
  return data as ApprovalResponse;
}
