// Calls, decisions and outcomes. Their JSON is that of the command line, the decision log and the decision server.

import type { JsonObject, JsonValue } from './json';

/** A call of a tool, as a model requests it. */
export interface ToolCall {
  /** The id of the call. Without one, the session gives it one. */
  id?: string;
  /** The name of the tool. */
  tool: string;
  /** The arguments. */
  input: unknown;
  /** The MCP server that has the tool. */
  server?: string;
  /** What you vouch for: principal, roles, tenant, anything. Replaces the context of the session. */
  context?: unknown;
  /** The span that the call belongs to, as in the header `traceparent`. */
  traceParent?: string;
}

/** The call that a tool runs: with its final arguments. */
export interface RunningCall {
  id: string;
  tool: string;
  input: JsonValue;
  server?: string;
  context?: JsonValue;
  options?: JsonValue;
}

/** What a tool gets beside its arguments. */
export interface ToolContext {
  /** The call with its final arguments. */
  readonly call: RunningCall;
  /** Aborted when the call is given up: by a `timeout` policy, the caller's signal, or the end of the run. */
  readonly signal: AbortSignal;
}

/** A tool. What it returns must be JSON; what it throws is the error of the call. */
export type Tool = (input: any, context: ToolContext) => unknown;

/** Tools by name. */
export type Tools = Readonly<Record<string, Tool>>;

/** What a decision does with a call, from the most permissive to the strictest. */
export type Effect = 'run' | 'answer' | 'suspend' | 'invalid' | 'deny' | 'halt';

/** Why a call was decided as it was. */
export interface Reason {
  policy: string | null;
  code: string;
  message: string;
}

/** How one policy was applied to a call. */
export interface PolicyTrace {
  id: string;
  kind: string;
  phase: 'normalise' | 'gate' | 'execute' | 'settle';
  verdict: 'pass' | 'rewrite' | 'answer' | 'suspend' | 'deny' | 'halt';
  shadow: boolean;
  undecided?: boolean;
  printed?: string[];
}

/** The decision on a call that is not run. */
export interface Decision {
  effect: Effect;
  reason: Reason;
  /** The arguments with which the call would run. */
  input: JsonValue;
  /** The limits that it would have to acquire, which can still refuse it. */
  pending: string[];
  policies: PolicyTrace[];
}

/** The decision on a call of a round that is not run. */
export interface Evaluation extends Decision {
  id: string;
  tool: string;
  revision: string;
}

/** A request for approval. */
export interface ApprovalRequest {
  approvalId: string;
  toolCallId: string;
  toolName: string;
  /** The final arguments, redacted. */
  input: JsonValue;
  message?: string;
  policies: string[];
  expiresAt?: string;
  inputDigest: string;
  server?: string;
  relevant?: string[];
  repeats?: number;
  card?: { title?: string; approve?: string; deny?: string };
  /** The seal over the request. Keep it with the request. */
  approvalToken?: string;
}

/** An answer to a request. */
export interface ApprovalResponse {
  /** The request; may be left out where it is clear. */
  approvalId?: string;
  approved: boolean;
  reason?: string;
  approvalToken?: string;
  /** Other arguments for the call. */
  editedInput?: unknown;
  /** A result in place of the tool's. */
  output?: unknown;
  /** Ends the run. */
  cancel?: boolean;
  /** The approver, if you have verified who it is. */
  answeredBy?: Approver;
}

/** An approver that the host has verified. */
export interface Approver {
  principal: string;
  roles?: string[];
}

interface OutcomeMembers {
  /** The id of the call. */
  id: string;
  tool: string;
  session?: string;
  /** The final arguments, redacted. */
  input: JsonValue;
  output: JsonValue;
  error: string | null;
  reason: Reason;
  policies: PolicyTrace[];
  approval: ApprovalRequest | null;
  approved?: { approvalId: string; by?: string[]; remembered?: boolean; edited?: boolean; usedOnceBy: string };
  /** The call had completed before, and nothing was run. */
  replayed?: boolean;
  audit?: { policy: string; fields: JsonObject }[];
  dry?: boolean;
  attempts?: number;
  retry_after_ms?: number;
  revision: string;
  duration_us: number;
}

/** The call has a result for the model in `output`. */
export interface CompletedOutcome extends OutcomeMembers {
  outcome: 'executed' | 'cached' | 'answered' | 'recovered';
}

/** The call was not run; `reason` says why. */
export interface RefusedOutcome extends OutcomeMembers {
  outcome: 'denied' | 'halted' | 'invalid';
}

/** The call is pending: it requires approval. */
export interface SuspendedOutcome extends OutcomeMembers {
  outcome: 'suspended';
  approval: ApprovalRequest;
}

/** The call has no result: `error` says why. */
export interface FailedOutcome extends OutcomeMembers {
  outcome: 'failed' | 'aborted' | 'indeterminate';
}

/** How a call ended. Already redacted. */
export type Outcome = CompletedOutcome | RefusedOutcome | SuspendedOutcome | FailedOutcome;

/** Whether the call has a result for the model. */
export function isCompleted(outcome: Outcome): outcome is CompletedOutcome {
  return ['executed', 'cached', 'answered', 'recovered'].includes(outcome.outcome);
}

/** What a model reads of a call without a result. */
export function refusalMessage(outcome: Outcome): string {
  switch (outcome.outcome) {
    case 'denied':
    case 'halted':
      return `Not run (${outcome.reason.code}): ${outcome.reason.message}`;
    case 'suspended':
      return `Not run: pending approval. ${outcome.approval.message ?? outcome.reason.message}`;
    default:
      return outcome.error ?? outcome.reason.message;
  }
}

/** A round of calls, or what was resumed. */
export interface Round {
  /** The outcomes in the order of the calls. */
  outcomes: Outcome[];
  /** Answers that do not count. */
  ignored: { approvalId: string; code: string; why: string }[];
  /** Whether the run stops here, for people to answer. */
  isSuspended: boolean;
}

/** What a model may know of a tool. */
export interface ToolDescriptor {
  name: string;
  description?: string;
  /** The JSON Schema of its arguments. */
  inputSchema?: unknown;
  outputSchema?: unknown;
  annotations?: unknown;
  server?: string;
}
