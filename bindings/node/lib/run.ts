// The run around the calls of a session: the configuration of its model, the model's stream and usage, and its end.

import type { NativeHost } from './addon';
import { CallgateError, native } from './errors';
import { type JsonValue, readFlagged, stringifyJson } from './json';
import { host, operate, type RequestHandlers } from './operations';
import type { ToolDescriptor } from './types';

/** The configuration of a model call. */
export interface ModelConfig {
  systemPrompts?: string[];
  tools?: ToolDescriptor[];
  temperature?: number;
  topP?: number;
  maxTokens?: number;
  metadata?: Record<string, unknown>;
  /** Options that only the provider interprets. */
  providerOptions?: Record<string, unknown>;
  /** The messages so far, in the form of the AI SDK. */
  messages?: unknown[];
}

/** A piece of a model's streamed response. */
export type Chunk =
  | { type: 'text'; id: string; delta: string }
  | { type: 'reasoning'; id: string; delta: string }
  | { type: 'tool_input'; call_id: string; delta: string }
  | { type: 'finished'; reason: string | null; usage: Usage | null }
  | { type: 'other'; value: JsonValue };

/** The use of a model. */
export interface Usage {
  promptTokens: number;
  completionTokens: number;
  totalTokens?: number | null;
  cost?: number;
}

/** How a run ends. */
export type RunEnd =
  | { end: 'finished'; reason?: string | null; content?: string }
  | { end: 'aborted'; reason: string }
  | { end: 'failed'; error: string };

/** A policy or a hook ended the run. */
export class RunEndedError extends CallgateError {
  override name = 'RunEndedError';
  /** How it ended. */
  readonly end: RunEnd;

  constructor(end: RunEnd) {
    super('run_ended', `the run has ended: ${end.end === 'failed' ? end.error : (end.reason ?? 'finished')}`);
    this.end = end;
  }
}

/** The native part of a run. */
export interface NativeRun {
  beforeModel(host: NativeHost, config: string): string;
  chunk(chunk: string): string;
  restOfStream(): string;
  reportUsage(usage: string): void;
  end(host: NativeHost, end: string): string;
}

/** A session as a run. */
export abstract class AgentRun<N extends NativeRun> {
  /** @internal */
  constructor(
    /** @internal */
    protected readonly native: N,
    /** @internal */
    protected readonly handlers: RequestHandlers,
  ) {}

  /** The configuration of the next model call. Throws `RunEndedError` if a policy or a budget ends the run. */
  async beforeModel(config: ModelConfig = {}): Promise<ModelConfig> {
    const text = stringifyJson(config);
    return configOf(await operate(() => this.native.beforeModel(host, text), this.handlers));
  }

  /** Passes a chunk of the model's stream through the policies, and returns the chunks to pass on now. */
  chunk(chunk: Chunk): Chunk[] {
    return chunksOf(readFlagged(native(() => this.native.chunk(stringifyJson(chunk)))));
  }

  /** The chunks that policies still hold back, after a stream that ended without saying so. */
  restOfStream(): Chunk[] {
    return chunksOf(readFlagged(native(() => this.native.restOfStream())));
  }

  /** Counts the use of a model, if no chunk has it. */
  reportUsage(usage: Usage): void {
    native(() => this.native.reportUsage(stringifyJson(usage)));
  }

  /** Ends the run. Returns what failed in hooks that were notified of it. */
  async end(end: RunEnd): Promise<string[]> {
    const text = stringifyJson(end);
    return (await operate(() => this.native.end(host, text), this.handlers)) as string[];
  }
}

/** The configuration of a reply. Throws `RunEndedError` if the run has ended. */
export function configOf(value: JsonValue): ModelConfig {
  const { config, end } = value as unknown as { config?: ModelConfig; end?: RunEnd };
  if (end !== undefined) {
    throw new RunEndedError(end);
  }
  return Object.fromEntries(Object.entries(config ?? {}).filter(([, member]) => member !== null)) as ModelConfig;
}

function chunksOf(value: JsonValue): Chunk[] {
  const { chunks, end } = value as unknown as { chunks?: Chunk[]; end?: RunEnd };
  if (end !== undefined) {
    throw new RunEndedError(end);
  }
  return chunks ?? [];
}
