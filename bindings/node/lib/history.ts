// Histories: the messages of a conversation in the form of a provider, with approval requests and answers.

import { addon, type NativeHistory } from './addon';
import { native } from './errors';
import { type JsonValue, readFlagged, stringifyJson } from './json';
import type { ApprovalRequest, ApprovalResponse } from './types';

/** The forms of messages. */
export type Dialect = 'ai-sdk' | 'anthropic' | 'gemini' | 'openai-chat' | 'openai-responses';

/** The messages of a conversation. Rounds add results and approval requests to it. */
export class History {
  /** @internal */
  readonly native: NativeHistory;

  private constructor(native: NativeHistory) {
    this.native = native;
  }

  /** Reads the messages of a provider: an array, or a whole request. */
  static read(dialect: Dialect, messages: unknown): History {
    return new History(native(() => addon.NativeHistory.read(dialect, stringifyJson(messages))));
  }

  /** The messages for storage, with approval requests, answers and the sealed state of the session. */
  write(dialect?: Dialect): JsonValue {
    return readFlagged(native(() => this.native.write(dialect)));
  }

  /** The messages that a provider accepts. */
  forProvider(dialect?: Dialect): JsonValue {
    return readFlagged(native(() => this.native.forProvider(dialect)));
  }

  /** Appends messages in the form in which the history was read. */
  append(...messages: unknown[]): void {
    native(() => this.native.append(stringifyJson(messages)));
  }

  /** The approval requests of calls that have no result. */
  approvalRequests(): ApprovalRequest[] {
    return readFlagged(this.native.approvalRequests()) as unknown as ApprovalRequest[];
  }

  /** Appends an answer to an approval request. */
  appendApprovalResponse(response: ApprovalResponse & { approvalId: string }): void {
    native(() => this.native.appendApprovalResponse(stringifyJson(response)));
  }
}
