// Guards the tools of a server of the MCP TypeScript SDK: each call passes the policies before its tool runs.

import type { Engine } from './engine';
import { GuardedConversation, type GuardOptions } from './guard';
import { isCompleted, type Outcome, refusalMessage } from './types';

export { type GuardOptions } from './guard';

/** How tools of a server are guarded. */
export interface ServerGuardOptions extends Omit<GuardOptions, 'name' | 'requester'> {
  /** Whose calls these are: a name that no other requester has. A pending call runs when the same call is made again after its approval. */
  requester: string;
}

/** A result of a tool, as the SDK takes it. */
interface ToolResult {
  content: unknown[];
  structuredContent?: unknown;
  isError?: boolean;
  _meta?: Record<string, unknown>;
}

type Callback = (...args: any[]) => ToolResult | Promise<ToolResult>;

/** A server of the SDK, as far as it is used here. */
interface ServerLike {
  registerTool(name: string, config: any, callback: any): any;
}

/**
 * Guards each tool that is registered with `registerTool` from now on, and returns the server.
 *
 * A refused call is an error result that the model reads. A call that needs approval returns at once; once it is approved in the state of
 * the engine (`engine.answer`, `callgate approvals approve`), the same call runs, once.
 */
export function guardServer<S extends ServerLike>(engine: Engine, server: S, options: ServerGuardOptions): S {
  const conversation = new GuardedConversation(engine, { ...options, name: options.requester });
  const register = server.registerTool.bind(server);
  server.registerTool = (name: string, config: { inputSchema?: unknown }, callback: Callback) =>
    register(name, config, (...args: any[]) => {
      // Without an input schema, the SDK passes only the context of the request.
      const hasInput = config.inputSchema !== undefined;
      const extra = args[hasInput ? 1 : 0] as { signal?: AbortSignal };
      const input: unknown = hasInput ? args[0] : {};
      const run = async (final: unknown, { signal }: { signal: AbortSignal }): Promise<unknown> => {
        const result = await (hasInput ? callback(final, { ...extra, signal }) : callback({ ...extra, signal }));
        if (result.isError === true) {
          throw new Error(textOf(result));
        }
        return result;
      };
      return answer(conversation, { id: '', tool: name, input }, run, extra.signal);
    });
  return server;
}

async function answer(
  conversation: GuardedConversation,
  call: { id: string; tool: string; input: unknown },
  run: (final: unknown, context: { signal: AbortSignal }) => Promise<unknown>,
  signal: AbortSignal | undefined,
): Promise<ToolResult> {
  const outcome = await conversation.run(call, run, { signal });
  if (isCompleted(outcome)) {
    return toResult(outcome);
  }
  const text =
    outcome.outcome === 'suspended'
      ? `${refusalMessage(outcome)}\nOnce it is approved, make the same call with the same arguments again; until then it stays pending.`
      : refusalMessage(outcome);
  return { content: [{ type: 'text', text }], isError: true };
}

/** The result of a tool, or of a policy that answered in its place. */
function toResult({ output }: Outcome): ToolResult {
  if (typeof output === 'object' && output !== null && Array.isArray((output as { content?: unknown }).content)) {
    return output as unknown as ToolResult;
  }
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  return { content: [{ type: 'text', text }] };
}

function textOf(result: ToolResult): string {
  const texts = (result.content as { text?: unknown }[]).map(({ text }) => text).filter(text => typeof text === 'string');
  return texts.join('\n') || 'the tool failed';
}
