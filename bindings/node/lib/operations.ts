// Drives the operations of the native part: carries out what they ask for, and resolves their promises.

import { AsyncResource } from 'node:async_hooks';

import { addon, type NativeHost } from './addon';
import { fromFailure, fromThrown } from './errors';
import { type JsonObject, type JsonValue, readFlagged, stringifyJson } from './json';

/** A reply that is written as JSON already. */
export class JsonReply {
  constructor(readonly text: string) {}
}

/** Carries out one kind of request, whose members it gets. A result that is not a promise is replied at once. */
export type RequestHandler = (request: JsonObject, signal: () => AbortSignal) => unknown;

/** The handlers of an operation, by the kind of request. */
export type RequestHandlers = Readonly<Record<string, RequestHandler>>;

/** A request, or the number of one that is cancelled. */
type Message = [request: number, kind: string, members: JsonObject | undefined] | [request: number];

/** The number of the operation, and its messages. */
type Step = [operation: number, messages: Message[]];

/** How many operations are under way. While there are any, the process stays alive. */
let underWay = 0;
const keepAlive = setInterval(() => {}, 2 ** 31 - 1);
keepAlive.unref();

const running = new Map<number, Operation>();
let eventListener: (lines: string[]) => void = () => {};

/** The operations of this thread. */
export const host: NativeHost = new addon.Host(number => {
  if (number === 0) {
    eventListener(host.takeEvents());
  } else {
    running.get(number)?.wake();
  }
});

/** Sets what receives the events of all engines. */
export function listenToEvents(listener: (lines: string[]) => void): void {
  eventListener = listener;
}

/** Runs an operation, which `start` starts. Aborting the signal gives it up, and rejects with the signal's reason. */
export function operate(start: () => string, handlers: RequestHandlers, signal?: AbortSignal): Promise<JsonValue> {
  if (signal?.aborted === true) {
    return Promise.reject(signal.reason);
  }
  let step: string;
  try {
    step = start();
  } catch (thrown) {
    return Promise.reject(fromThrown(thrown));
  }
  if (step[0] === 'd') {
    return Promise.resolve(readFlagged(step, 1));
  }
  if (step[0] === 'e') {
    return Promise.reject(fromFailure(readFlagged(step, 1) as JsonObject));
  }
  return new Promise((resolve, reject) => {
    new Operation(handlers, resolve, reject).begin(readFlagged(step, 1) as unknown as Step, signal);
  });
}

class Operation {
  private number = 0;
  private hasEnded = false;
  /** Of the requests whose signal was asked for. */
  private controllers: Map<number, AbortController> | undefined;
  /** The asynchronous context of the caller, for what is carried out when another thread wakes the operation. */
  private readonly context = new AsyncResource('CallgateOperation', { requireManualDestroy: true });
  private signal: AbortSignal | undefined;

  constructor(
    private readonly handlers: RequestHandlers,
    private readonly resolve: (value: JsonValue) => void,
    private readonly reject: (error: unknown) => void,
  ) {}

  begin([operation, messages]: Step, signal: AbortSignal | undefined): void {
    this.number = operation;
    running.set(this.number, this);
    underWay += 1;
    if (underWay === 1) {
      keepAlive.ref();
    }
    this.signal = signal;
    signal?.addEventListener('abort', this.abort, { once: true });
    this.handleAll(messages);
  }

  wake(): void {
    this.context.runInAsyncScope(() => this.take(host.step(this.number)));
  }

  private readonly abort = (): void => {
    if (!this.hasEnded) {
      const reason: unknown = this.signal?.reason;
      host.abandon(this.number);
      this.end(() => reason);
      this.reject(reason);
    }
  };

  /** `reason` makes the reason of signals that are aborted now. */
  private end(reason: () => unknown): void {
    this.hasEnded = true;
    running.delete(this.number);
    underWay -= 1;
    if (underWay === 0) {
      keepAlive.unref();
    }
    // Without it, hooks of `async_hooks`, as tracing tools have, remember every operation.
    this.context.emitDestroy();
    this.signal?.removeEventListener('abort', this.abort);
    for (const controller of this.controllers?.values() ?? []) {
      controller.abort(reason());
    }
  }

  private take(step: string): void {
    if (this.hasEnded || step === '') {
      return;
    }
    switch (step[0]) {
      case 'd':
        this.end(stopped);
        this.resolve(readFlagged(step, 1));
        break;
      case 'e':
        this.end(stopped);
        this.reject(fromFailure(readFlagged(step, 1) as JsonObject));
        break;
      default:
        this.handleAll((readFlagged(step, 1) as unknown as Step)[1]);
    }
  }

  private handleAll(messages: Message[]): void {
    for (const message of messages) {
      if (this.hasEnded) {
        return;
      }
      const [request, kind, members] = message;
      if (kind === undefined) {
        this.controllers?.get(request)?.abort(stopped());
        this.controllers?.delete(request);
      } else {
        this.handle(request, kind, members as JsonObject);
      }
    }
  }

  private handle(request: number, kind: string, members: JsonObject): void {
    const signal = (): AbortSignal => {
      this.controllers ??= new Map();
      let controller = this.controllers.get(request);
      if (controller === undefined) {
        controller = new AbortController();
        this.controllers.set(request, controller);
      }
      return controller.signal;
    };
    let result: unknown;
    try {
      const handler = this.handlers[kind];
      if (handler === undefined) {
        throw new Error(`nothing handles \`${kind}\``);
      }
      result = handler(members, signal);
    } catch (error) {
      this.reply(request, { threw: describeError(error) });
      return;
    }
    if (isThenable(result)) {
      result.then(
        value => this.reply(request, value),
        error => this.reply(request, { threw: describeError(error) }),
      );
    } else {
      this.reply(request, result);
    }
  }

  private reply(request: number, value: unknown): void {
    this.controllers?.delete(request);
    if (this.hasEnded) {
      return;
    }
    let text: string;
    try {
      text = value instanceof JsonReply ? value.text : stringifyJson(value);
    } catch (error) {
      text = stringifyJson({ threw: describeError(error) });
    }
    this.take(host.reply(this.number, request, text));
  }
}

/** Why the signal of a tool is aborted whose call has ended. */
function stopped(): Error {
  return new Error('the call was stopped, for example by a timeout');
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as PromiseLike<unknown>).then === 'function';
}

/** What policies and the model see of an error: its message, and a kind. */
export function describeError(error: unknown): { message: string; kind?: string } {
  if (!(error instanceof Error)) {
    return { message: typeof error === 'string' ? error : 'the tool failed' };
  }
  const { kind, code } = error as { kind?: unknown; code?: unknown };
  const named = [kind, code].find(value => typeof value === 'string');
  return named === undefined ? { message: error.message } : { message: error.message, kind: named as string };
}
