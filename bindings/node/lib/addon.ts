// Finds and loads the native part: a package of its own for each platform.

import { CallgateError } from './errors';
import { missingPackage, platformFile } from './platform';
import type { NativeRun } from './run';

/** The operations of this JavaScript environment. */
export interface NativeHost {
  step(operation: number): string;
  reply(operation: number, request: number, reply: string): string;
  abandon(operation: number): void;
  takeEvents(): string[];
  loadEngine(options: string): Promise<NativeEngine>;
}

export interface NativeHistory {
  write(dialect?: string): string;
  forProvider(dialect?: string): string;
  append(messages: string): void;
  approvalRequests(): string;
  appendApprovalResponse(response: string): void;
}

export interface NativeConcurrentSession extends NativeRun {
  call(host: NativeHost, call: string, nested: boolean): string;
  decide(call: string): string;
  resumeCall(host: NativeHost, call: string, request: string, answers: string): string;
  findRequest(host: NativeHost, approvalId: string): string;
  state(): string;
  begin(host: NativeHost, config: string): string;
  reserveModelCall(host: NativeHost): string;
}

export interface NativeSession extends NativeRun {
  call(host: NativeHost, call: string): string;
  callRound(host: NativeHost, calls: string): string;
  evaluateRound(host: NativeHost, calls: string): string;
  runRound(host: NativeHost, history: NativeHistory): string;
  resume(host: NativeHost, history: NativeHistory): string;
  concurrent(): NativeConcurrentSession;
  setTask(task: string): void;
  state(): string;
  abort(reason: string): void;
  begin(config: string): string;
}

export interface NativeEngine {
  readonly number: number;
  readonly revision: string;
  policyKinds(): string[];
  decide(call: string): string;
  session(options: string): NativeSession;
  approvals(host: NativeHost, command: string): string;
  watch(): void;
  unwatch(): void;
  status(): string;
  confirm(revision: string): void;
}

export interface Addon {
  Host: new (wake: (operation: number) => void) => NativeHost;
  NativeHistory: { read(dialect: string, document: string): NativeHistory };
}

function load(): Addon {
  const file = platformFile('callgate.node');
  if (file === undefined) {
    throw new CallgateError('unsupported', `callgate can't be loaded: ${missingPackage()}`);
  }
  return require(file) as Addon;
}

/** The native part. */
export const addon: Addon = load();
