// The configuration of a model call of TanStack AI, as policies read and change it.

import { CallgateError } from './errors';
import type { ModelConfig } from './run';

/** The members of TanStack AI's configuration that policies change. */
export interface ChatConfig {
  systemPrompts: readonly (string | { content: string })[];
  tools: readonly { name: string }[];
  metadata?: Record<string, unknown> | undefined;
  modelOptions?: Record<string, unknown> | undefined;
}

/** Where `modelOptions` of a provider has the sampling parameters, as in `{ maxTokens: 'max_output_tokens' }`. */
export interface SamplingNames {
  temperature?: string;
  topP?: string;
  maxTokens?: string;
}

type Parameter = keyof SamplingNames;

const PARAMETERS: readonly Parameter[] = ['temperature', 'topP', 'maxTokens'];

/** All names of a parameter in the options of TanStack AI's adapters, at the top or in `options` (Ollama). */
const KNOWN_NAMES: Record<Parameter, readonly string[]> = {
  temperature: ['temperature'],
  topP: ['top_p', 'topP'],
  maxTokens: ['max_output_tokens', 'max_tokens', 'max_completion_tokens', 'maxOutputTokens', 'maxCompletionTokens', 'maxTokens', 'num_predict'],
};

const SNAKE_CASE = { temperature: 'temperature', topP: 'top_p' };

/** The names that a parameter gets which the chat does not set, by the name of the adapter. */
const PROVIDERS: Record<string, SamplingNames> = {
  anthropic: { ...SNAKE_CASE, maxTokens: 'max_tokens' },
  byteplus: { ...SNAKE_CASE, maxTokens: 'max_tokens' },
  gemini: { temperature: 'temperature', topP: 'topP', maxTokens: 'maxOutputTokens' },
  grok: { ...SNAKE_CASE, maxTokens: 'max_output_tokens' },
  groq: { ...SNAKE_CASE, maxTokens: 'max_completion_tokens' },
  llmgateway: { ...SNAKE_CASE, maxTokens: 'max_tokens' },
  mistral: { ...SNAKE_CASE, maxTokens: 'max_tokens' },
  ollama: { temperature: 'options.temperature', topP: 'options.top_p', maxTokens: 'options.num_predict' },
  openai: { ...SNAKE_CASE, maxTokens: 'max_output_tokens' },
  openrouter: { temperature: 'temperature', topP: 'topP', maxTokens: 'maxCompletionTokens' },
  'vercel-gateway': { ...SNAKE_CASE, maxTokens: 'max_tokens' },
};

type Members = Record<string, unknown>;

/** The configuration of one chat, from one model call to the next: TanStack AI keeps what middleware returns. */
export class ChatConfiguration {
  /** What policies change before each model call, and what was returned the last time. */
  private base: ChatConfig | undefined;
  private returned: ChatConfig | undefined;

  constructor(
    private readonly provider: string,
    private readonly names: SamplingNames,
    private readonly server: string | undefined,
  ) {}

  /** The configuration without the changes of policies before earlier model calls. */
  present(config: ChatConfig): ChatConfig {
    if (this.base === undefined || this.returned === undefined) {
      return config;
    }
    const { base, returned } = this;
    return {
      systemPrompts: restoreList(config.systemPrompts, base.systemPrompts, returned.systemPrompts, prompt => prompt),
      tools: restoreList(config.tools, base.tools, returned.tools, tool => tool.name),
      metadata: restoreMembers(config.metadata, base.metadata, returned.metadata),
      modelOptions: restoreMembers(config.modelOptions, base.modelOptions, returned.modelOptions),
    };
  }

  /** What policies read. */
  toModelConfig({ systemPrompts, tools, modelOptions }: ChatConfig): ModelConfig {
    const config: ModelConfig = {
      systemPrompts: systemPrompts.map(contentOf),
      tools: tools.map(({ name }) => (this.server === undefined ? { name } : { name, server: this.server })),
    };
    for (const parameter of PARAMETERS) {
      const value = this.find(parameter, modelOptions)[0]?.value;
      if (value !== undefined) {
        config[parameter] = value;
      }
    }
    return config;
  }

  /** The configuration with the changes of policies. Those of the start of the chat stay for all model calls. */
  changed(present: ChatConfig, before: ModelConfig, after: ModelConfig): ChatConfig {
    const unused = [...present.systemPrompts];
    const systemPrompts = (after.systemPrompts ?? []).map(content => {
      const index = unused.findIndex(prompt => contentOf(prompt) === content);
      return unused.splice(index, index < 0 ? 0 : 1)[0] ?? content;
    });
    const shown = new Set(after.tools?.map(({ name }) => name));
    const result: ChatConfig = {
      systemPrompts,
      tools: present.tools.filter(({ name }) => shown.has(name)),
      metadata: withMembers(present.metadata, after.metadata),
      modelOptions: withMembers(this.withSampling(present.modelOptions, before, after), after.providerOptions),
    };
    this.base = this.base === undefined ? result : present;
    this.returned = result;
    return result;
  }

  /** Nothing changes this configuration. */
  keep(config: ChatConfig): void {
    this.base = config;
    this.returned = config;
  }

  private withSampling(options: Members | undefined, before: ModelConfig, after: ModelConfig): Members | undefined {
    let changed = options;
    for (const parameter of PARAMETERS) {
      const value = after[parameter];
      if (value === undefined || value === before[parameter]) {
        continue;
      }
      const found = this.find(parameter, options).map(({ path }) => path);
      for (const path of found.length > 0 ? found : [this.nameOf(parameter)]) {
        changed = withValue(changed ?? {}, path, value);
      }
    }
    return changed;
  }

  /** Where the options have a parameter. */
  private find(parameter: Parameter, options: Members | undefined): { path: string; value: number }[] {
    const name = this.names[parameter];
    const known = KNOWN_NAMES[parameter];
    const paths = name === undefined ? [...known, ...known.map(known => `options.${known}`)] : [name];
    return paths.flatMap(path => {
      const value = path.split('.').reduce<unknown>((members, key) => (members as Members | undefined)?.[key], options);
      return typeof value === 'number' ? [{ path, value }] : [];
    });
  }

  private nameOf(parameter: Parameter): string {
    const name = this.names[parameter] ?? PROVIDERS[this.provider]?.[parameter];
    if (name === undefined) {
      throw new CallgateError(
        'unsupported',
        `a \`model\` policy sets ${parameter}, and the name of this option for the provider \`${this.provider}\` is unknown; ` +
          `write it in \`samplingNames\` of the middleware, such as \`{ ${parameter}: '${KNOWN_NAMES[parameter][0]}' }\``,
      );
    }
    return name;
  }
}

/** The members that are not the same. */
export function difference(before: ChatConfig, after: ChatConfig): Partial<ChatConfig> | undefined {
  const changes: Partial<ChatConfig> = {};
  for (const member of ['systemPrompts', 'tools'] as const) {
    if (!hasSameItems<unknown>(before[member], after[member])) {
      (changes as Members)[member] = after[member];
    }
  }
  for (const member of ['metadata', 'modelOptions'] as const) {
    if (!hasSameMembers(before[member], after[member])) {
      changes[member] = after[member];
    }
  }
  return Object.keys(changes).length > 0 ? changes : undefined;
}

function contentOf(prompt: string | { content: string }): string {
  return typeof prompt === 'string' ? prompt : prompt.content;
}

function hasSameItems<T>(one: readonly T[], other: readonly T[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}

function hasSameMembers(one: Members = {}, other: Members = {}): boolean {
  return [...Object.keys(one), ...Object.keys(other)].every(key => one[key] === other[key]);
}

/** Removes what was added to the base, and adds what was removed from it. Changes of other middleware stay. */
function restoreList<T>(now: readonly T[], base: readonly T[], returned: readonly T[], key: (item: T) => unknown): readonly T[] {
  if (hasSameItems(now.map(key), returned.map(key))) {
    return base;
  }
  const [present, known, last] = [now, base, returned].map(items => new Set(items.map(key))) as [Set<unknown>, Set<unknown>, Set<unknown>];
  const removed = base.filter(item => !last.has(key(item)) && !present.has(key(item)));
  return [...removed, ...now.filter(item => known.has(key(item)) || !last.has(key(item)))];
}

function restoreMembers(now: Members | undefined, base: Members | undefined, returned: Members | undefined): Members | undefined {
  if (now === returned) {
    return base;
  }
  const restored: Members = { ...now };
  for (const [key, value] of Object.entries(returned ?? {})) {
    if (restored[key] === value && base?.[key] !== value) {
      restored[key] = base?.[key];
    }
  }
  return Object.fromEntries(Object.entries(restored).filter(([, value]) => value !== undefined));
}

function withMembers(members: Members | undefined, added: Members = {}): Members | undefined {
  return Object.keys(added).length === 0 ? members : { ...members, ...added };
}

function withValue(members: Members, path: string, value: number): Members {
  const [first = '', ...rest] = path.split('.');
  return { ...members, [first]: rest.length === 0 ? value : withValue((members[first] as Members) ?? {}, rest.join('.'), value) };
}
