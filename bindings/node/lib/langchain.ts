// Middleware for LangChain agents: each call passes the policies before its tool runs, and approvals are interrupts of LangGraph.

import type { Engine } from './engine';
import { CallgateError } from './errors';
import { GuardedConversation, type GuardOptions, readContent } from './guard';
import { stringifyJson } from './json';
import { type ApprovalRequest, type ApprovalResponse, isCompleted, refusalMessage } from './types';

export { type GuardOptions } from './guard';

/** The functions of the frameworks that the middleware uses. */
export interface LangChainFunctions {
  /** `createMiddleware` of `langchain`. */
  createMiddleware: (options: any) => any;
  /** `ToolMessage` of `langchain`. */
  ToolMessage: new (fields: any) => any;
  /** `interrupt` of `@langchain/langgraph`. */
  interrupt: (value: any) => any;
}

/** The value of an interrupt. Resume it with an `ApprovalResponse`, as in `new Command({ resume: { approved: true } })`. */
export interface ApprovalInterrupt {
  type: 'callgate-approval';
  request: ApprovalRequest;
}

interface ToolCallRequest {
  toolCall: { id?: string; name: string; args: unknown };
  tool?: unknown;
}

/** Middleware for `createAgent`. List it last, so that the policies see the call that runs. */
export function guardMiddleware(engine: Engine, functions: LangChainFunctions, options: GuardOptions): any {
  const conversation = new GuardedConversation(engine, options);
  const { createMiddleware, ToolMessage, interrupt } = functions;
  return createMiddleware({
    name: 'callgate',
    wrapToolCall: async (request: ToolCallRequest, handler: (request: ToolCallRequest) => Promise<any>) => {
      const { id, name, args } = request.toolCall;
      if (id === undefined || id === '') {
        throw new CallgateError('unsupported', `the call of \`${name}\` has no id, so its approval could not be found again`);
      }
      let response: ApprovalResponse | undefined;
      if (await conversation.needsApproval(id, name, args)) {
        const found = await conversation.session.findRequest(`approval_${id}`);
        // The first time, this ends the step; resumed, it returns the answer.
        response = interrupt({ type: 'callgate-approval', request: found }) as ApprovalResponse;
        if (typeof response?.approved !== 'boolean') {
          throw new CallgateError('invalid_argument', 'resume the interrupt with `{ approved: true }` or `{ approved: false }`');
        }
      }
      const run = async (final: unknown): Promise<unknown> => {
        const message = await handler({ ...request, toolCall: { ...request.toolCall, args: final } });
        if (message?.status === 'error') {
          throw new Error(String(message.content));
        }
        if (message?.content === undefined) {
          throw new CallgateError('unsupported', `the tool \`${name}\` returned a command of LangGraph, which no policy can read`);
        }
        return readContent(message.content);
      };
      const outcome = await conversation.run({ id, tool: name, input: args }, run, { response });
      const fields = { tool_call_id: id, name };
      if (!isCompleted(outcome)) {
        return new ToolMessage({ ...fields, status: 'error', content: refusalMessage(outcome) });
      }
      const { output } = outcome;
      return new ToolMessage({ ...fields, status: 'success', content: typeof output === 'string' ? output : stringifyJson(output) });
    },
  });
}
