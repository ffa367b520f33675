// The stream of a chat of TanStack AI: passes its events through the policies, as chunks, and turns the chunks that come out into events.

import type { JsonValue } from './json';
import type { Chunk } from './run';
import type { ConcurrentSession } from './session';

/** An event of the protocol AG-UI. */
export interface StreamEvent {
  type: string;
  [member: string]: any;
}

type TextKind = 'text' | 'reasoning';

/** The events that have a piece of a text. Some adapters stream reasoning as steps. */
const TEXTS: Record<string, TextKind> = {
  TEXT_MESSAGE_CONTENT: 'text',
  TEXT_MESSAGE_CHUNK: 'text',
  REASONING_MESSAGE_CONTENT: 'reasoning',
  REASONING_MESSAGE_CHUNK: 'reasoning',
  THINKING_TEXT_MESSAGE_CONTENT: 'reasoning',
  STEP_FINISHED: 'reasoning',
};

/** The events that begin and end a text. */
const STARTS: Record<string, TextKind> = {
  TEXT_MESSAGE_START: 'text',
  REASONING_MESSAGE_START: 'reasoning',
  THINKING_TEXT_MESSAGE_START: 'reasoning',
};
const ENDS: Record<string, TextKind> = {
  TEXT_MESSAGE_END: 'text',
  REASONING_MESSAGE_END: 'reasoning',
  THINKING_TEXT_MESSAGE_END: 'reasoning',
};

/** Members of a snapshot's messages that are not the model's text. */
const OTHER_MEMBERS = new Set(['id', 'type', 'role', 'name', 'toolCalls', 'toolCallId', 'signature', 'encryptedValue']);

/** A text of the stream. */
interface StreamText {
  /** The last event of the text. */
  event: StreamEvent;
  /** What was passed on so far. */
  passed: string;
}

/** The events of one chat. */
export class ChatStream {
  /** Events that are passed through the policies by their number, so that every member comes out as it was. */
  private readonly waiting = new Map<number, StreamEvent>();
  private next = 0;
  private readonly texts = new Map<string, StreamText>();
  /** Texts of which more may come. */
  private readonly open = new Set<string>();
  /** Texts whose beginning was passed on and whose end was not, with the events that end them. */
  private readonly shown = new Map<string, StreamEvent>();

  /** `mayFilter`: rules may filter the stream, so that nothing may pass beside them. */
  constructor(
    private readonly session: ConcurrentSession,
    private readonly mayFilter: () => boolean,
  ) {}

  /** The events to pass on now; `undefined` if this event is passed on as it is. Throws `RunEndedError` if a policy ends the run. */
  push(event: StreamEvent): StreamEvent[] | undefined {
    const kind = TEXTS[event.type];
    if (kind !== undefined && typeof event['delta'] === 'string' && event['delta'] !== '') {
      return this.pushText(event, kind, event['delta']);
    }
    if (this.mayFilter()) {
      if (kind !== undefined && event['content'] !== undefined) {
        const { content: _, ...others } = event;
        const passed = this.texts.get(textKey(kind, event))?.passed;
        return this.pushOther({ ...others, ...(passed === undefined ? {} : { content: passed }) } as StreamEvent);
      }
      if (event.type === 'RAW') {
        return [];
      }
      if (event.type === 'MESSAGES_SNAPSHOT') {
        return [...this.rest(), { ...event, messages: this.filtered(event['messages'], 'text') }];
      }
    }
    const passed = this.pushOther(event);
    return passed.length === 1 && passed[0] === event ? undefined : passed;
  }

  /** What ends the messages that readers of the stream have begun to read. */
  close(): StreamEvent[] {
    const ends = [...this.shown.values()];
    this.shown.clear();
    return ends;
  }

  private pushOther(event: StreamEvent): StreamEvent[] {
    const passed: StreamEvent[] = [];
    const ended = ENDS[event.type];
    if (ended !== undefined) {
      this.open.delete(textKey(ended, event));
      // Steps repeat the reasoning, and have no end of their own.
      const steps = [...this.texts].filter(([, text]) => ended === 'reasoning' && text.event.type === 'STEP_FINISHED');
      steps.forEach(([key]) => this.open.delete(key));
    }
    // What is held back of a text may belong to another piece of it, which can't come any more.
    if ((ended !== undefined && this.open.size === 0) || event.type === 'RUN_ERROR') {
      passed.push(...this.rest());
    }
    passed.push(...this.toEvents(this.session.chunk(this.toChunk(event))));
    if (event.type === 'RUN_FINISHED') {
      this.open.clear();
      this.texts.clear();
    }
    return passed;
  }

  private pushText(event: StreamEvent, kind: TextKind, delta: string): StreamEvent[] | undefined {
    const key = textKey(kind, event);
    const id = idOf(event);
    const text = this.texts.get(key) ?? { event, passed: '' };
    this.texts.set(key, { ...text, event });
    this.open.add(key);
    const passed = this.toEvents(this.session.chunk({ type: kind, id, delta }));
    const content = event['content'];
    const isSame = passed.length === 1 && passed[0]!['delta'] === delta && textKey(kind, passed[0]!) === key;
    return isSame && (content === undefined || content === this.texts.get(key)?.passed) ? undefined : passed;
  }

  private toChunk(event: StreamEvent): Chunk {
    const number = this.next;
    this.next += 1;
    this.waiting.set(number, event);
    if (event.type === 'RUN_FINISHED') {
      // Its usage is counted when TanStack AI reports it. No chunk waits longer than this one.
      const reason = event['finishReason'];
      return { type: 'finished', reason: typeof reason === 'string' ? reason : null, usage: null };
    }
    return { type: 'other', value: { number } };
  }

  private rest(): StreamEvent[] {
    return this.toEvents(this.session.restOfStream());
  }

  private toEvents(chunks: readonly Chunk[]): StreamEvent[] {
    const events: StreamEvent[] = [];
    for (const chunk of chunks) {
      if (chunk.type === 'text' || chunk.type === 'reasoning') {
        events.push(this.textEvent(chunk.type, chunk.id, chunk.delta));
        continue;
      }
      const number = chunk.type === 'other' ? (chunk.value as { number: number }).number : this.next - 1;
      const event = this.waiting.get(number);
      this.waiting.delete(number);
      if (event !== undefined) {
        this.show(event);
        events.push(event);
      }
    }
    return events;
  }

  /** Notes that readers see a message begin or end. */
  private show(event: StreamEvent): void {
    const [start, end] = [STARTS[event.type], ENDS[event.type]];
    if (start !== undefined) {
      const key = textKey(start, event);
      this.shown.set(key, endOf(event));
      this.texts.delete(key);
    } else if (end !== undefined) {
      this.shown.delete(textKey(end, event));
    }
  }

  private textEvent(kind: TextKind, id: string, delta: string): StreamEvent {
    const key = `${kind}:${id}`;
    const text = this.texts.get(key) ?? { event: { type: 'TEXT_MESSAGE_CONTENT', messageId: id }, passed: '' };
    text.passed += delta;
    this.texts.set(key, text);
    // The members that repeat the text are those of the model.
    const { content, rawEvent: _, ...event } = text.event;
    return { ...event, delta, ...(content === undefined ? {} : { content: text.passed }) } as StreamEvent;
  }

  /** The messages of a snapshot, whose texts TanStack AI has kept as the model wrote them. */
  private filtered(value: unknown, kind: TextKind, isModels = false): unknown {
    if (typeof value === 'string') {
      return isModels ? this.filterText(value, kind) : value;
    }
    if (Array.isArray(value)) {
      return value.map(item => this.filtered(item, kind, isModels));
    }
    if (typeof value !== 'object' || value === null || ![Object.prototype, null].includes(Object.getPrototypeOf(value))) {
      return value;
    }
    const { role, type } = value as { role?: JsonValue; type?: JsonValue };
    const isOf = typeof role === 'string' ? role === 'assistant' || role === 'reasoning' : isModels;
    if (typeof type === 'string' && type.startsWith('tool')) {
      return value;
    }
    const kindOf = role === 'reasoning' || type === 'thinking' ? 'reasoning' : kind;
    const members = Object.entries(value).map(([key, member]) => [key, OTHER_MEMBERS.has(key) ? member : this.filtered(member, kindOf, isOf)]);
    return Object.fromEntries(members);
  }

  /** A whole text, while nothing is held back. */
  private filterText(text: string, kind: TextKind): string {
    const chunks = [...this.session.chunk({ type: kind, id: 'snapshot', delta: text }), ...this.session.restOfStream()];
    return chunks.map(chunk => (chunk.type === kind ? chunk.delta : '')).join('');
  }
}

function idOf(event: StreamEvent): string {
  return String(event['messageId'] ?? event['stepId'] ?? event['stepName'] ?? '');
}

function textKey(kind: TextKind, event: StreamEvent): string {
  return `${kind}:${idOf(event)}`;
}

/** What ends a message that this event begins. */
function endOf({ type, timestamp, messageId }: StreamEvent): StreamEvent {
  return { type: type.replace('_START', '_END'), timestamp, messageId };
}
