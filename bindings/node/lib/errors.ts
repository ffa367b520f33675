// Errors, each with a stable code.

import type { JsonObject, JsonValue } from './json';

/** The codes of errors. Decisions are not errors: a denied call has an outcome. */
export type ErrorCode =
  | 'approval_not_recorded'
  | 'internal_error'
  | 'invalid_argument'
  | 'invalid_call'
  | 'invalid_history'
  | 'invalid_keys'
  | 'invalid_rules'
  | 'not_pending'
  | 'run_ended'
  | 'session_busy'
  | 'state_unavailable'
  | 'unsupported';

/** An error of Callgate. */
export class CallgateError extends Error {
  override name = 'CallgateError';
  /** What is wrong, for programs. */
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** A mistake in rules files, with its position and what to do. */
export interface Diagnostic {
  code: string;
  severity: 'error' | 'warning';
  message: string;
  help?: string;
  file?: string;
  line?: number;
  column?: number;
  [member: string]: JsonValue | undefined;
}

/** Rules that can't be loaded, with all their mistakes. */
export class RulesError extends CallgateError {
  override name = 'RulesError';
  readonly diagnostics: Diagnostic[];

  constructor(message: string, diagnostics: Diagnostic[]) {
    super('invalid_rules', message);
    this.diagnostics = diagnostics;
  }
}

/** The error of a failure that the native part reports as JSON. */
export function fromFailure(failure: JsonObject): CallgateError {
  const code = failure['code'] as ErrorCode;
  const message = String(failure['message']);
  if (code === 'invalid_rules') {
    const listed = failure['diagnostics'];
    return new RulesError(message, (Array.isArray(listed) ? listed : []) as unknown as Diagnostic[]);
  }
  return new CallgateError(code, message);
}

/** The error of something that the native part threw. */
export function fromThrown(thrown: unknown): unknown {
  const message = thrown instanceof Error ? thrown.message : '';
  if (!message.startsWith('{')) {
    return thrown;
  }
  try {
    return fromFailure(JSON.parse(message) as JsonObject);
  } catch {
    return thrown;
  }
}

/** Calls the native part, and throws its failures as errors. */
export function native<T>(call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    throw fromThrown(thrown);
  }
}
