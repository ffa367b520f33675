// Hooks: your own code around tool calls. It can make a call stricter, and never lifts a policy.

import { describeError, type RequestHandlers } from './operations';
import type { JsonObject, JsonValue } from './json';
import type { Outcome, RunningCall, ToolDescriptor } from './types';

/** What a `before` hook does with a call. */
export type BeforeAction =
  | { action: 'continue' }
  | { action: 'edit'; input: unknown }
  | { action: 'annotate'; metadata: Record<string, unknown> }
  | { action: 'skip'; output: unknown }
  | { action: 'requireApproval'; message: string; approvers?: string[]; quorum?: number; expiresMs?: number }
  | { action: 'block'; reason: string }
  | { action: 'halt'; reason: string };

/** What an `onError` hook does with the error of a tool; nothing keeps it. */
export type ErrorAction = { recover: unknown } | { replace: { message: string; kind?: string } } | void;

/** A call as hooks receive it. */
export interface HookCall extends RunningCall {
  descriptor: ToolDescriptor | null;
  run: { requestId: string; conversationId: string | null; iteration: number; context: JsonValue };
}

/** The inner hooks and the tool. Other arguments pass the policies again. */
export type Next = (input?: unknown, options?: unknown) => Promise<JsonValue>;

/** A hook. Each method may return a promise. */
export interface Hook {
  /** Names the hook in reasons and in the approvals that it requires. */
  id: string;
  /** The tools whose calls it sees; all, if absent. */
  tools?: string[];
  /** Runs before a call is decided. If it throws, the call is blocked. */
  before?(call: HookCall): BeforeAction | void | Promise<BeforeAction | void>;
  /** Wraps the execution. What it throws is the error of the call. */
  around?(call: HookCall, next: Next): unknown;
  /** Runs when the tool has failed. */
  onError?(call: HookCall, error: { message: string; kind: string | null }): ErrorAction | Promise<ErrorAction>;
  /** Runs after the call has an outcome. */
  after?(outcome: Outcome): void | Promise<void>;
}

/** The hook's methods, for the native part. */
export function hookOptions(hook: Hook): Record<string, unknown> {
  return {
    id: hook.id,
    tools: hook.tools,
    before: hook.before !== undefined,
    around: hook.around !== undefined,
    after: hook.after !== undefined,
    on_error: hook.onError !== undefined,
  };
}

interface Wrapping {
  settle(reply: unknown): void;
  resume?: (result: JsonObject) => void;
}

/** The handlers of requests of these hooks. */
export function hookHandlers(hooks: readonly Hook[]): RequestHandlers {
  if (hooks.length === 0) {
    return {};
  }
  const byId = new Map(hooks.map(hook => [hook.id, hook]));
  const found = (request: JsonObject): Hook => {
    const hook = byId.get(request['hook'] as string);
    if (hook === undefined) {
      throw new Error(`unknown hook ${String(request['hook'])}`);
    }
    return hook;
  };
  const wrappings = new Map<number, Wrapping>();
  let lastWrapping = 0;
  return {
    before: request => {
      const hook = found(request);
      return reportFailure(hook, 'before', async () => (await hook.before?.(callOf(request))) ?? { action: 'continue' });
    },
    after: request => {
      const hook = found(request);
      return reportFailure(hook, 'after', async () => {
        await hook.after?.(request['outcome'] as unknown as Outcome);
        return {};
      });
    },
    onError: request => {
      const hook = found(request);
      const error = request['error'] as unknown as { message: string; kind: string | null };
      return reportFailure(hook, 'onError', async () => (await hook.onError?.(callOf(request), error)) ?? {});
    },
    around: request => {
      const hook = found(request);
      lastWrapping += 1;
      const id = lastWrapping;
      return new Promise(settle => {
        const wrapping: Wrapping = { settle };
        wrappings.set(id, wrapping);
        const next: Next = (...changed) =>
          new Promise((resolve, reject) => {
            if (wrapping.resume !== undefined || !wrappings.has(id)) {
              reject(new Error('`next` is running already, or the hook has ended'));
              return;
            }
            wrapping.resume = result => {
              delete wrapping.resume;
              const error = result['error'] as unknown as { message: string; kind: string | null } | undefined;
              if (error === undefined) {
                resolve(result['output'] ?? null);
              } else {
                reject(Object.assign(new Error(error.message), error.kind === null ? {} : { kind: error.kind }));
              }
            };
            const [input, options] = changed;
            wrapping.settle({ next: { around: id, input, options } });
          });
        const finish = (reply: unknown): void => {
          wrappings.delete(id);
          wrapping.settle(reply);
        };
        Promise.resolve()
          .then(() => hook.around?.(callOf(request), next))
          .then(
            output => finish({ output: output ?? null }),
            error => finish({ threw: describeError(error) }),
          );
      });
    },
    aroundResult: request => {
      const wrapping = wrappings.get(request['around'] as number);
      return new Promise(settle => {
        if (wrapping === undefined) {
          settle({ threw: { message: 'the hook has ended' } });
          return;
        }
        wrapping.settle = settle;
        wrapping.resume?.(request);
      });
    },
  };
}

function callOf(request: JsonObject): HookCall {
  const call = request['call'] as unknown as RunningCall;
  return { ...call, descriptor: request['descriptor'], run: request['run'] } as unknown as HookCall;
}

/** A hook that throws is reported: the call is decided as if it were absent, or blocked. */
async function reportFailure(hook: Hook, method: string, run: () => Promise<unknown>): Promise<unknown> {
  try {
    return await run();
  } catch (error) {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.emitWarning(`the method \`${method}\` of the hook \`${hook.id}\` failed`, { code: 'CALLGATE_HOOK', detail });
    throw error;
  }
}
