// Sessions: one agent run each.

import type { NativeConcurrentSession, NativeSession } from './addon';
import { CallgateError, native } from './errors';
import { decisionOf, outcomeOf } from './flat-json';
import type { History } from './history';
import { type JsonObject, type JsonValue, readFlagged, stringifyJson } from './json';
import { host, operate, type RequestHandlers } from './operations';
import { AgentRun, configOf, type ModelConfig } from './run';
import { toolHandler } from './tools';
import type {
  ApprovalRequest,
  ApprovalResponse,
  Decision,
  Evaluation,
  Outcome,
  Round,
  Tool,
  ToolCall,
  Tools,
} from './types';

/** How to run a call. */
export interface CallOptions {
  /** Gives the call up: its promise is rejected with the signal's reason. A tool that was started counts as started. */
  signal?: AbortSignal;
}

const CALL_MEMBERS = new Set(['id', 'tool', 'input', 'server', 'context', 'traceParent']);

/** The JSON of a call. A misspelt member would be ignored otherwise, and with it what it says. */
export function callText(call: ToolCall): string {
  for (const member in call) {
    if (!CALL_MEMBERS.has(member)) {
      throw new CallgateError('invalid_call', `a call has no member \`${member}\`; it has ${[...CALL_MEMBERS].join(', ')}`);
    }
  }
  if (call.input === undefined) {
    throw new CallgateError('invalid_call', 'the call has no `input`; arguments are an object, `{}` if there are none');
  }
  try {
    return stringifyJson(call.traceParent === undefined ? call : withNativeNames(call));
  } catch (error) {
    throw new CallgateError('invalid_call', error instanceof Error ? error.message : String(error));
  }
}

function withNativeNames({ traceParent, ...members }: ToolCall): unknown {
  return { ...members, trace_parent: traceParent };
}

function callsText(calls: readonly ToolCall[]): string {
  return `[${calls.map(callText).join(',')}]`;
}

/** One agent run, whose calls and rounds run one after the other. */
export class Session extends AgentRun<NativeSession> {
  private withTools(tools: Tool | Tools | undefined): RequestHandlers {
    return { ...this.handlers, execute: toolHandler(tools) };
  }

  /** Evaluates one call, runs it with the tool if the policies allow it, and returns its outcome. */
  async call(call: ToolCall, tool: Tool | Tools, options: CallOptions = {}): Promise<Outcome> {
    const text = callText(call);
    return outcomeOf(await operate(() => this.native.call(host, text), this.withTools(tool), options.signal));
  }

  /** Evaluates the calls of one round: all are decided before any of them runs. */
  async callRound(calls: readonly ToolCall[], tools: Tool | Tools, options: CallOptions = {}): Promise<Outcome[]> {
    const text = callsText(calls);
    const outcomes = await operate(() => this.native.callRound(host, text), this.withTools(tools), options.signal);
    return outcomes as unknown as Outcome[];
  }

  /** Decides the calls of one round, and runs none. */
  async evaluateRound(calls: readonly ToolCall[]): Promise<Evaluation[]> {
    const text = callsText(calls);
    return (await operate(() => this.native.evaluateRound(host, text), this.handlers)) as unknown as Evaluation[];
  }

  /** Runs the calls of the model's last message, and adds their results and approval requests to the history. */
  async runRound(history: History, tools: Tool | Tools, options: CallOptions = {}): Promise<Round> {
    const start = (): string => this.native.runRound(host, history.native);
    return (await operate(start, this.withTools(tools), options.signal)) as unknown as Round;
  }

  /** Resumes from a history, before its model is called: runs what was approved, once, and adds the results to the history. */
  async resume(history: History, tools: Tool | Tools, options: CallOptions = {}): Promise<Round> {
    const start = (): string => this.native.resume(host, history.native);
    return (await operate(start, this.withTools(tools), options.signal)) as unknown as Round;
  }

  /** The same session for calls that run at the same time. This value can't be used any more. */
  concurrent(): ConcurrentSession {
    return new ConcurrentSession(native(() => this.native.concurrent()), this.handlers);
  }

  /** Sets what the user asked for, which policies read as `$.task`. Make it of what the user wrote, and of nothing else. */
  setTask(task: unknown): void {
    native(() => this.native.setTask(stringifyJson(task)));
  }

  /** The labels, facts and counts of the session. */
  get state(): JsonObject {
    return readFlagged(native(() => this.native.state())) as JsonObject;
  }

  /** Aborts the run: running tools are cancelled, and nothing new starts. */
  abort(reason: string): void {
    this.native.abort(reason);
  }

  /** Begins a run, and returns its configuration as policies leave it. Throws `RunEndedError` if they end it. */
  begin(config: ModelConfig = {}): ModelConfig {
    return configOf(readFlagged(native(() => this.native.begin(stringifyJson(config)))));
  }
}

/** How to run a call of a concurrent session. */
export interface ConcurrentCallOptions extends CallOptions {
  /** The tool of another call of this session makes the call, and waits for it: it does not wait for earlier calls. */
  nested?: boolean;
}

/** A session whose calls run at the same time. Each sees what the calls before it changed. */
export class ConcurrentSession extends AgentRun<NativeConcurrentSession> {
  /** Evaluates one call, runs it with the tool if the policies allow it, and returns its outcome. Ids of calls must differ. */
  async call(call: ToolCall, tool: Tool | Tools, options: ConcurrentCallOptions = {}): Promise<Outcome> {
    const text = callText(call);
    const start = (): string => this.native.call(host, text, options.nested ?? false);
    const handlers = { ...this.handlers, execute: toolHandler(tool) };
    return outcomeOf(await operate(start, handlers, options.signal));
  }

  /** Resumes a suspended call with the answers to its request. What was approved runs once, in whatever process. */
  async resumeCall(
    call: ToolCall,
    request: ApprovalRequest,
    answers: readonly ApprovalResponse[],
    tool: Tool | Tools,
    options: CallOptions = {},
  ): Promise<Outcome> {
    const texts = [callText(call), stringifyJson(request), stringifyJson(answers)] as const;
    const handlers = { ...this.handlers, execute: toolHandler(tool) };
    return outcomeOf(await operate(() => this.native.resumeCall(host, ...texts), handlers, options.signal));
  }

  /** Decides a call in the present state of the session, and executes, counts and records nothing. Rules of `layers` are not evaluated. */
  decide(call: ToolCall): Decision {
    const text = callText(call);
    return decisionOf(native(() => this.native.decide(text)), call);
  }

  /** Begins a run, and returns its configuration as policies leave it. Rejects with `RunEndedError` if they end it. */
  async begin(config: ModelConfig = {}): Promise<ModelConfig> {
    const text = stringifyJson(config);
    return configOf(await operate(() => this.native.begin(host, text), this.handlers));
  }

  /**
   * Decides whether the run continues with a model call, before its configuration is known, and reserves the call in budgets for the next
   * `beforeModel`. Rejects with `RunEndedError` if the run ends here.
   */
  async reserveModelCall(): Promise<void> {
    configOf(await operate(() => this.native.reserveModelCall(host), this.handlers));
  }

  /** The request with this id, as it was given out. */
  async findRequest(approvalId: string): Promise<ApprovalRequest | null> {
    const request = await operate(() => this.native.findRequest(host, approvalId), this.handlers);
    return request as unknown as ApprovalRequest | null;
  }

  /** The labels, facts and counts of the session. */
  get state(): JsonObject {
    return readFlagged(this.native.state()) as JsonObject;
  }
}
