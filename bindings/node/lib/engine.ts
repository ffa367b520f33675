// The engine: the rules in effect, with everything that evaluates calls against them.

import type { NativeEngine } from './addon';
import { CallgateError, fromThrown, native } from './errors';
import { decisionOf } from './flat-json';
import { type Hook, hookHandlers, hookOptions } from './hooks';
import { type JsonObject, type JsonValue, readFlagged, stringifyJson } from './json';
import { host, listenToEvents, operate, type RequestHandlers } from './operations';
import { type HostStores, storeHandlers } from './stores';
import { callText, Session } from './session';
import type { ApprovalRequest, ApprovalResponse, Approver, Decision, ToolCall, ToolDescriptor } from './types';

/** What an engine has beside its rules. */
export interface EngineOptions extends HostStores {
  /** Keys that seal approval requests and stored state, as from `openssl rand -hex 32`; several, newest first, separated by commas. */
  keys?: string;
  /** The state store: `memory:`, `file:PATH`, `postgres://…` or `redis://…`. In memory, if absent. Stores of your own need `keys`. */
  state?: string;
  /** The tools that calls can name, with the schemas of their arguments. */
  tools?: ToolDescriptor[];
  /** Your own code around calls, for all sessions. */
  hooks?: Hook[];
  /** Receives every event, redacted: what was decided, ran, was asked and failed. */
  onEvent?: (event: EngineEvent) => void;
  /** What events contain of arguments and results: redacted values, or keyed digests. Redacted, if absent. */
  eventContent?: 'redacted' | 'digests';
  /** The seed of the random number generator, for tests. */
  seed?: number;
  /** The time at which the engine's clock stands, in RFC 3339, for tests. */
  time?: string;
}

/** An event, as a line of the decision log. */
export interface EngineEvent {
  event: string;
  time: string;
  [member: string]: JsonValue;
}

/** What a session is for. */
export interface SessionOptions {
  /** Its name: the conversation, under which a store knows its calls. */
  name?: string;
  /** What you vouch for in its calls: principal, roles, tenant, anything. */
  context?: unknown;
  /** Rules as YAML that can only tighten those of the engine. */
  layers?: string[];
  tools?: ToolDescriptor[];
  hooks?: Hook[];
  /** Records every call in the store, so that none runs twice. */
  recordCalls?: boolean;
  /** Earlier calls of the session are not known here, unless a shared store has them: conditions that read its state are undecided. */
  hasUnknownPast?: boolean;
  /** For concurrent sessions: approvals are found again for equal calls of this requester. */
  requester?: string;
}

/** Which rules are in effect, and what happened to newer ones. */
export interface ReloadStatus {
  revision: string;
  loadedAt: string;
  lastRejected: { rejectedAt: string; revision: string | null; summary: string; report: string } | null;
  pending: {
    revision: string;
    pendingSince: string;
    relaxations: { policy: string | null; change: string; consequence: string }[];
  } | null;
}

/** An approval request of a store, with its status. */
export interface InboxItem {
  /** `CONVERSATION/ID`. */
  id: string;
  conversation: string;
  request: ApprovalRequest;
  requirements: { policy: string | null; approvers: string[]; quorum: number; approvals: number }[];
  status: 'pending' | 'answered' | 'expired' | 'invalid' | 'running' | 'completed';
  details: JsonValue;
}

const listeners = new Map<number, (event: EngineEvent) => void>();

listenToEvents(lines => {
  for (const line of lines) {
    const space = line.indexOf(' ');
    const number = Number(line.slice(0, space));
    if (number === 0) {
      process.emitWarning(`${line.slice(space + 2)} events were lost, because nothing read them`, { code: 'CALLGATE_EVENTS' });
      continue;
    }
    try {
      listeners.get(number)?.(readFlagged(line, space + 1) as unknown as EngineEvent);
    } catch (error) {
      // A listener changes nothing, and keeps no other event from being delivered.
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
});

/** Stops watching when it is closed. */
export interface RulesWatch extends Disposable {
  close(): void;
}

/** The rules in effect. One for each process, or worker thread. */
export class Engine {
  private constructor(
    private readonly native: NativeEngine,
    private readonly hooks: readonly Hook[],
    private readonly handlers: RequestHandlers,
  ) {}

  /** Loads the rules files at and below a path, or several. Rejects with `RulesError` if they have mistakes. */
  static load(paths: string | readonly string[], options: EngineOptions = {}): Promise<Engine> {
    return Engine.create({ paths: typeof paths === 'string' ? [paths] : paths }, options);
  }

  /** Loads one rules file given as a string. */
  static fromText(text: string, options: EngineOptions = {}): Promise<Engine> {
    return Engine.create({ text }, options);
  }

  private static async create(rules: Record<string, unknown>, options: EngineOptions): Promise<Engine> {
    const { recordStore, limitStore, cacheStore, hooks = [], onEvent, eventContent = 'redacted', ...rest } = options;
    if (new Set(hooks.map(hook => hook.id)).size < hooks.length) {
      throw new CallgateError('invalid_argument', 'two hooks have the same id');
    }
    const text = stringifyJson({
      ...rules,
      ...rest,
      stores: { records: recordStore !== undefined, limits: limitStore !== undefined, cache: cacheStore !== undefined },
      hooks: hooks.map(hookOptions),
      events: onEvent === undefined ? undefined : eventContent,
    });
    let native: NativeEngine;
    try {
      native = await host.loadEngine(text);
    } catch (thrown) {
      throw fromThrown(thrown);
    }
    if (onEvent !== undefined) {
      listeners.set(native.number, onEvent);
    }
    return new Engine(native, hooks, storeHandlers({ recordStore, limitStore, cacheStore }));
  }

  /** The digest of the active rules. */
  get revision(): string {
    return this.native.revision;
  }

  /** The kinds of the active policies, such as `deny` and `approval`. */
  get policyKinds(): string[] {
    return this.native.policyKinds();
  }

  /** Decides a call, and executes, counts and records nothing. */
  decide(call: ToolCall): Decision {
    const text = callText(call);
    return decisionOf(native(() => this.native.decide(text)), call);
  }

  /** Opens a session, which is one agent run. */
  session(options: SessionOptions = {}): Session {
    const { hooks = [], recordCalls = false, hasUnknownPast = false, ...rest } = options;
    const text = stringifyJson({ ...rest, hooks: hooks.map(hookOptions), record_calls: recordCalls, has_unknown_past: hasUnknownPast });
    const handlers = { ...this.handlers, ...hookHandlers([...this.hooks, ...hooks]) };
    return new Session(
      native(() => this.native.session(text)),
      handlers,
    );
  }

  /** Lets the rules in effect follow their files. Files with mistakes are rejected, and the last good rules stay. */
  watch(): RulesWatch {
    native(() => this.native.watch());
    const close = (): void => this.native.unwatch();
    return { close, [Symbol.dispose ?? Symbol.for('Symbol.dispose')]: close } as RulesWatch;
  }

  /** The active rules, and newer ones that were rejected or are pending confirmation. */
  get status(): ReloadStatus {
    return readFlagged(this.native.status()) as unknown as ReloadStatus;
  }

  /** Lets pending rules of this revision take effect. */
  confirm(revision: string): void {
    native(() => this.native.confirm(revision));
  }

  /** The approval requests of the state store. */
  async approvals(): Promise<InboxItem[]> {
    return (await this.inbox({})) as unknown as InboxItem[];
  }

  /** The approval request with this id, alone or as `CONVERSATION/ID`. */
  async approval(id: string): Promise<InboxItem> {
    return (await this.inbox({ id })) as unknown as InboxItem;
  }

  /** Records the answer of an approver whom you have verified. The call runs when its session resumes. */
  async answer(id: string, response: ApprovalResponse, approver?: Approver): Promise<InboxItem> {
    return (await this.inbox({ id, response: response as unknown as JsonObject, approver })) as unknown as InboxItem;
  }

  private inbox(command: Record<string, unknown>): Promise<JsonValue> {
    const text = stringifyJson(command);
    return operate(() => this.native.approvals(host, text), this.handlers);
  }
}
