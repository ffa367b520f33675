// One chat of TanStack AI as a run of a session: what the hooks of the middleware do with it.

import { CallgateError } from './errors';
import type { GuardedConversation } from './guard';
import { type ModelConfig, type RunEnd, RunEndedError, type Usage } from './run';
import { type ChatConfig, ChatConfiguration, difference, type SamplingNames } from './tanstack-ai-config';
import { ChatStream, type StreamEvent } from './tanstack-ai-stream';

/** What the adapter uses of the context that TanStack AI passes to all hooks of one chat. */
export interface ChatContext {
  phase: string;
  provider: string;
  context: unknown;
  signal?: AbortSignal;
  abort(reason?: string): void;
  emitCustomEvent(name: string, value: Record<string, any>): void;
}

/** What a chat needs of its middleware. */
export interface ChatSettings {
  samplingNames: SamplingNames;
  server: string | undefined;
  /** Whether rules may have policies of this kind. */
  mayHave: (kind: 'model' | 'stream') => boolean;
  /** Takes the conversation back when the chat has ended. */
  release: (conversation: GuardedConversation) => void;
}

/** One chat. */
export class Chat {
  private readonly configuration: ChatConfiguration;
  private readonly stream: ChatStream;
  private readonly hidden = new Set<string>();
  private isInterrupted = false;
  private isEnded = false;
  /** Why policies have ended the chat. */
  stopReason: string | undefined;

  constructor(
    readonly conversation: GuardedConversation,
    private readonly context: ChatContext,
    private readonly settings: ChatSettings,
  ) {
    this.configuration = new ChatConfiguration(context.provider, settings.samplingNames, settings.server);
    this.stream = new ChatStream(conversation.session, () => settings.mayHave('stream'));
  }

  /** Begins the run. If policies end it, TanStack AI calls no model. */
  async begin(config: ChatConfig): Promise<Partial<ChatConfig> | undefined> {
    const before = this.configuration.toModelConfig(config);
    try {
      const after = await this.conversation.session.begin(before);
      await this.conversation.session.reserveModelCall();
      return this.changes(config, config, before, after);
    } catch (error) {
      this.stop(error);
      return undefined;
    }
  }

  /** The configuration of the next model call. TanStack AI would call the model whatever is returned, so an ended run throws. */
  async beforeModel(config: ChatConfig): Promise<Partial<ChatConfig> | undefined> {
    const present = this.configuration.present(config);
    const before = this.configuration.toModelConfig(present);
    try {
      const after = await this.conversation.session.beforeModel(before);
      return this.changes(config, present, before, after);
    } catch (error) {
      this.stop(error);
      throw error;
    }
  }

  /** Whether another model call may follow. */
  async mayContinue(): Promise<boolean> {
    try {
      await this.conversation.session.reserveModelCall();
      return true;
    } catch (error) {
      if (!(error instanceof RunEndedError && error.end.end === 'finished')) {
        this.stop(error);
      }
      return false;
    }
  }

  /** The events to pass on instead of this one; `undefined` if it is passed on as it is. */
  async push(event: StreamEvent): Promise<StreamEvent[] | undefined> {
    if (event.type === 'CUSTOM' && String(event['name']).startsWith('structured-output.')) {
      this.refuseStructuredOutput();
    }
    let passed: StreamEvent[] | undefined;
    try {
      passed = this.stream.push(event);
    } catch (error) {
      this.stop(error);
      return this.stream.close();
    }
    // A chat that waits for its user ends with these two events, and without a hook.
    this.isInterrupted ||= event['outcome']?.type === 'interrupt';
    if (this.isInterrupted && event.type === 'MESSAGES_SNAPSHOT') {
      await this.end({ end: 'finished', reason: 'interrupt' });
    }
    return passed;
  }

  /** Refuses a result that TanStack AI takes from the text of the model before any policy has filtered it. */
  refuseStructuredOutput(): void {
    if (this.settings.mayHave('stream')) {
      throw new CallgateError(
        'unsupported',
        'the rules have a policy of the kind `stream`, which does not reach structured output: TanStack AI reads `outputSchema` from what ' +
          'the model wrote. Remove `outputSchema` from this chat, or the policy',
      );
    }
  }

  /** Evaluates calls of hidden tools, which TanStack AI refuses without asking middleware: they are denied and recorded. */
  async recordHiddenCalls(calls: readonly { name: string; arguments: string }[]): Promise<void> {
    for (const call of calls.filter(({ name }) => this.hidden.has(name))) {
      let input: unknown;
      try {
        input = JSON.parse(call.arguments === '' ? '{}' : call.arguments);
      } catch {
        continue;
      }
      await this.conversation.run({ id: '', tool: call.name, input }, () => {
        throw new CallgateError('unsupported', 'the model was not offered this tool');
      });
    }
  }

  count(usage: Partial<Usage>): void {
    const whole = (value: unknown): number => (Number.isFinite(value) ? Math.max(0, Math.ceil(value as number)) : 0);
    const { promptTokens, completionTokens, totalTokens, cost } = usage;
    const counted: Usage = { promptTokens: whole(promptTokens), completionTokens: whole(completionTokens) };
    if (Number.isFinite(totalTokens)) {
      counted.totalTokens = whole(totalTokens);
    }
    if (Number.isFinite(cost)) {
      counted.cost = cost as number;
    }
    this.conversation.session.reportUsage(counted);
  }

  async end(end: RunEnd): Promise<void> {
    if (this.isEnded) {
      return;
    }
    this.isEnded = true;
    for (const failure of await this.conversation.session.end(end)) {
      process.emitWarning(failure);
    }
    this.settings.release(this.conversation);
  }

  /** What TanStack AI changes in its configuration. */
  private changes(config: ChatConfig, present: ChatConfig, before: ModelConfig, after: ModelConfig): Partial<ChatConfig> | undefined {
    if (!this.settings.mayHave('model')) {
      this.configuration.keep(present);
      return undefined;
    }
    const changed = this.configuration.changed(present, before, after);
    const shown = new Set(changed.tools.map(({ name }) => name));
    for (const { name } of present.tools) {
      this.hidden[shown.has(name) ? 'delete' : 'add'](name);
    }
    return difference(config, changed);
  }

  /** Ends the chat because policies have ended its run. Rethrows every other error. */
  private stop(error: unknown): void {
    if (!(error instanceof RunEndedError)) {
      throw error;
    }
    const { end } = error;
    this.stopReason = end.end === 'failed' ? end.error : ((end.end === 'finished' ? end.content : undefined) ?? end.reason ?? 'finished');
    this.context.abort(this.stopReason);
  }
}
