// What the adapters for frameworks share: calls of one conversation, with approvals that the framework asks for.

import { CallgateError } from './errors';
import type { Engine, SessionOptions } from './engine';
import { type JsonValue, parseJson } from './json';
import type { ConcurrentSession } from './session';
import { type ApprovalResponse, type Approver, isCompleted, type Outcome, refusalMessage, type Tool, type ToolCall } from './types';

/** Whose calls an adapter guards. */
export interface GuardOptions extends SessionOptions {
  /** The conversation. A state store finds pending approvals under this name, so it must be the same after a restart. */
  name: string;
  /** The approver, whom you have verified, of the approvals that the framework reports. Policies with `approvers` need one. */
  approver?: Approver;
  /** The MCP server that has the tools. */
  server?: string;
  /** Kinds of policies that the framework can't apply, and that you apply elsewhere. */
  appliedElsewhere?: readonly string[];
}

/** A call that did not run, or has no result. Its message is for the model. */
export class CallRefusedError extends Error {
  override name = 'CallRefusedError';
  readonly outcome: Outcome;

  constructor(outcome: Outcome) {
    super(refusalMessage(outcome));
    this.outcome = outcome;
  }

  /** The message alone: frameworks send this text to the model. */
  override toString(): string {
    return this.message;
  }
}

/** Policies that act on the model and not on its calls: an adapter that sees only calls can't apply them. */
const MODEL_KINDS = ['budget', 'model', 'stream'];

/** The calls of one conversation. */
export class GuardedConversation {
  readonly session: ConcurrentSession;
  private readonly early = new Map<string, Outcome>();

  constructor(
    private readonly engine: Engine,
    private readonly options: GuardOptions,
    unsupported: readonly string[] = MODEL_KINDS,
  ) {
    const { approver, server, appliedElsewhere, ...session } = options;
    refuseKinds(engine, unsupported, appliedElsewhere ?? []);
    this.session = engine.session(session).concurrent();
  }

  /** The call of a framework. */
  private toCall(id: string, tool: string, input: unknown): ToolCall {
    // Without an id, the session gives the call one.
    const call: ToolCall = id === '' ? { tool, input } : { id, tool, input };
    return this.options.server === undefined ? call : { ...call, server: this.options.server };
  }

  /** Whether the call has an approval request. */
  async hasRequest(id: string): Promise<boolean> {
    return (await this.session.findRequest(`approval_${id}`)) !== null;
  }

  /**
   * Whether a person must approve a call. The request is recorded then, and the answer counts for this call and these arguments only. Only
   * for calls that have no answer yet: a request must not come into being by its answer.
   */
  async needsApproval(id: string, tool: string, input: unknown): Promise<boolean> {
    if (await this.hasRequest(id)) {
      return true;
    }
    const call = this.toCall(id, tool, input);
    if (this.session.decide(call).effect !== 'suspend') {
      return false;
    }
    const outcome = await this.session.call(call, () => {
      throw new CallgateError('internal_error', 'the call was not run: its approval was required, and then was not');
    });
    if (outcome.outcome === 'suspended') {
      return true;
    }
    this.early.set(id, outcome);
    return false;
  }

  /** Evaluates a call, and runs it if the policies allow it. `approval`: the answer that the framework has of its user. */
  async run(
    { id, tool, input }: { id: string; tool: string; input: unknown },
    execute: Tool,
    approval: { response?: ApprovalResponse | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<Outcome> {
    const early = this.early.get(id);
    if (early !== undefined) {
      this.early.delete(id);
      return early;
    }
    const call = this.toCall(id, tool, input);
    const options = approval.signal === undefined ? {} : { signal: approval.signal };
    if (approval.response === undefined) {
      return this.session.call(call, execute, options);
    }
    const request = await this.session.findRequest(`approval_${id}`);
    if (request === null) {
      // The framework's history says that the call was approved, and Callgate never asked: it may be forged.
      return this.session.call(call, execute, options);
    }
    const answer: ApprovalResponse = { ...approval.response };
    if (this.options.approver !== undefined) {
      answer.answeredBy = this.options.approver;
    }
    return this.session.resumeCall(call, request, [answer], execute, options);
  }
}

/** The result of an outcome. Throws `CallRefusedError` if there is none. */
export function resultOf(outcome: Outcome): JsonValue {
  if (isCompleted(outcome)) {
    return outcome.output;
  }
  throw new CallRefusedError(outcome);
}

/** The result of a tool whose framework writes objects as JSON: what policies read, and the framework writes again. */
export function readContent(content: unknown): unknown {
  if (typeof content !== 'string' || !/^[[{]/.test(content)) {
    return content;
  }
  try {
    return parseJson(content);
  } catch {
    return content;
  }
}

/** Refuses rules that an adapter would apply only in part. */
export function refuseKinds(engine: Engine, unsupported: readonly string[], elsewhere: readonly string[]): void {
  const found = engine.policyKinds.filter(kind => unsupported.includes(kind) && !elsewhere.includes(kind));
  if (found.length > 0) {
    const kinds = found.map(kind => `\`${kind}\``).join(', ');
    throw new CallgateError(
      'unsupported',
      `the rules have policies of the kind ${kinds}, which act on the model and not on tool calls; this adapter sees only tool ` +
        'calls. Apply them elsewhere and list them in `appliedElsewhere`, or remove them',
    );
  }
}
