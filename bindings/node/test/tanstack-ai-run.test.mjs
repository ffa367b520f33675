// Policies for the model in chats of TanStack AI: `model`, `stream` and `budget`, and the run that a chat is.

import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { chat, toolDefinition } from '@tanstack/ai';
import { Engine } from 'callgate';
import { guardMiddleware } from 'callgate/tanstack-ai';
import { z } from 'zod';
import { scripted } from './tanstack-ai-model.mjs';

const KEYS = '5a'.repeat(32);
const NAMES = { temperature: 'temperature', topP: 'top_p', maxTokens: 'max_tokens' };
const CALL = { tool: 'look', input: {} };

const engineOf = (policies, options = {}) => Engine.fromText(`policies: [${policies}]`, { keys: KEYS, ...options });

function tool(name, run = () => ({ found: 1 })) {
  return toolDefinition({ name, description: name, inputSchema: z.looseObject({}) }).server(run);
}

/** Middleware that notes what reaches it, after that of Callgate. */
function watcher() {
  const seen = { chunks: [], ends: [] };
  const end = kind => (_, info) => void seen.ends.push([kind, info.reason ?? info.finishReason ?? info.error?.message]);
  const onChunk = (_, chunk) => void seen.chunks.push({ ...chunk });
  return { seen, name: 'watcher', onChunk, onFinish: end('finish'), onAbort: end('abort'), onError: end('error') };
}

/** Runs a chat. Returns the chunks, those that later middleware saw, the end, and what the chat threw. */
async function run(guard, model, options = {}) {
  const watching = watcher();
  const { before = [], ...rest } = options;
  const chunks = [];
  let thrown;
  try {
    const messages = [{ role: 'user', content: 'go' }];
    const stream = chat({ adapter: model, messages, tools: [tool('look')], middleware: [...before, guard, watching], debug: false, ...rest });
    for await (const chunk of stream) {
      chunks.push(chunk);
    }
  } catch (error) {
    thrown = error;
  }
  return { chunks, seen: watching.seen.chunks, ends: watching.seen.ends, thrown };
}

const guarding = (engine, options = {}) => guardMiddleware(engine, { requester: 'ana', samplingNames: NAMES, ...options });

const textOf = (chunks, type = 'TEXT_MESSAGE_CONTENT') => chunks.filter(chunk => chunk.type === type).map(({ delta }) => delta).join('');

test('model policies change prompts, sampling, metadata and options of each model call, once', async () => {
  const engine = await engineOf(`
    { id: start, model: { on: init, system_prompts: { prepend: Be kind. } } },
    { id: each, model: { system_prompts: { append: "At most {{ context.limit }} euros." }, temperature: { max: 0.3 }, max_tokens: { set: 50 },
      metadata: { team: red }, provider_options: { seed: 7 } } }`);
  const model = scripted([CALL], [CALL]);
  // Its changes stay, too.
  const other = { name: 'other', onConfig: ({ phase, iteration }, { systemPrompts }) =>
    phase === 'beforeModel' && iteration === 1 ? { systemPrompts: [...systemPrompts, 'Be short.'] } : undefined };
  const { ends } = await run(guarding(engine, { context: { limit: 40 } }), model, {
    before: [other], systemPrompts: [{ content: 'Help.' }], metadata: { chat: 1 }, modelOptions: { temperature: 0.9, top_p: 0.5 } });
  const limit = 'At most 40 euros.';
  assert.deepEqual(model.requests.map(({ systemPrompts }) => systemPrompts), [
    ['Be kind.', { content: 'Help.' }, limit],
    ['Be kind.', { content: 'Help.' }, 'Be short.', limit],
    ['Be kind.', { content: 'Help.' }, 'Be short.', limit],
  ]);
  for (const { modelOptions, metadata } of model.requests) {
    assert.deepEqual(modelOptions, { temperature: 0.3, top_p: 0.5, max_tokens: 50, seed: 7 });
    assert.deepEqual(metadata, { chat: 1, team: 'red' });
  }
  assert.deepEqual(ends, [['finish', 'stop']]);
});

test('sampling parameters have the names of the provider, and an unknown provider is refused', async () => {
  const engine = await engineOf('{ id: cap, model: { max_tokens: { set: 50 } } }');
  const adapter = name => ({ ...scripted(), name });
  for (const [name, modelOptions] of [['anthropic', { max_tokens: 50 }], ['openai', { max_output_tokens: 50 }], ['ollama', { options: { num_predict: 50 } }]]) {
    const model = adapter(name);
    await run(guardMiddleware(engine, { requester: 'ana' }), model);
    assert.deepEqual(model.requests[0].modelOptions, modelOptions);
  }
  const bounded = await engineOf('{ id: cap, model: { max_tokens: { max: 50 } } }');
  const own = scripted();
  await run(guardMiddleware(bounded, { requester: 'ana' }), own, { modelOptions: { max_completion_tokens: 900 } });
  assert.deepEqual(own.requests[0].modelOptions, { max_completion_tokens: 50 });
  const unknown = adapter('own');
  const { thrown } = await run(guardMiddleware(engine, { requester: 'ana' }), unknown);
  assert.match(thrown.message, /name of this option for the provider `own` is unknown; write it in `samplingNames`/);
  assert.equal(unknown.requests.length, 0);
});

test('hidden tools are not offered, and their calls are denied and recorded', async () => {
  const outcomes = [];
  const engine = await engineOf('{ id: hide, model: { tools: { hide: pay } } }', { onEvent: event => outcomes.push(event) });
  const paid = [];
  const tools = [tool('look'), tool('pay', input => paid.push(input))];
  const model = scripted([{ tool: 'pay', input: { amount: 1 } }]);
  await run(guarding(engine), model, { tools });
  assert.deepEqual(model.requests.map(({ tools }) => tools.map(({ name }) => name)), [['look'], ['look']]);
  assert.deepEqual(paid, []);
  assert.match(JSON.stringify(model.requests[1].messages), /Unknown tool: pay/);
  await new Promise(resolve => setTimeout(resolve, 50));
  assert.match(JSON.stringify(outcomes), /not_offered/);
});

test('stream policies redact text across chunks, and nothing beside it has the text', async () => {
  const engine = await engineOf('{ id: mask, stream: { redact: email } }');
  const step = { type: 'STEP_FINISHED', stepId: 's', stepName: 's', timestamp: 0, content: 'ana@example.com' };
  const raw = { type: 'RAW', event: { text: 'ana@example.com' } };
  const pieces = ['Write to ana@exa', 'mple.com now, or to bob@', 'example.com'];
  const model = scripted({ text: pieces, reasoning: pieces, events: [step, raw], calls: [CALL] });
  const { chunks, seen, ends } = await run(guarding(engine), model);
  const wanted = 'Write to [email] now, or to [email]';
  for (const all of [chunks, seen]) {
    assert.equal(textOf(all, 'REASONING_MESSAGE_CONTENT'), wanted);
    assert.equal(textOf(all), `${wanted}done`);
    assert.doesNotMatch(JSON.stringify(all), /example|ana@|bob@/);
  }
  const types = seen.map(({ type }) => type).filter((type, index, all) => type !== all[index - 1]);
  const message = kind => ['START', 'CONTENT', 'END'].map(part => `${kind}_${part}`);
  const call = ['START', 'ARGS', 'END'].map(part => `TOOL_CALL_${part}`);
  assert.deepEqual(types.slice(0, 12), ['RUN_STARTED', ...message('REASONING_MESSAGE'), ...message('TEXT_MESSAGE'), 'STEP_FINISHED', ...call, 'RUN_FINISHED']);
  const { content } = seen.findLast(({ type, content }) => type === 'TEXT_MESSAGE_CONTENT' && content?.startsWith('Write'));
  assert.equal(content, wanted);
  assert.deepEqual(ends, [['finish', 'stop']]);
});

test('what adapters repeat beside a piece of text is what was passed on of this turn', async () => {
  const engine = await engineOf('{ id: clean, stream: { drop: { patterns: /darn/, unit: chunk } } }');
  const piece = (delta, content) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'n', delta, content });
  const events = [piece('oh ', 'oh '), piece('darn ', 'oh darn '), piece('sir', 'oh darn sir')];
  const { seen } = await run(guarding(engine), scripted({ events, calls: [CALL] }, { events }));
  const contents = seen.filter(({ messageId }) => messageId === 'n').map(({ delta, content }) => [delta, content]);
  const wanted = [['oh ', 'oh '], ['sir', 'oh sir']];
  assert.deepEqual(contents, [...wanted, ...wanted]);
});

test('texts that are streamed in parallel are filtered each by itself', async () => {
  const engine = await engineOf('{ id: mask, stream: { redact: email } }');
  const event = (type, messageId, delta) => ({ type: `TEXT_MESSAGE_${type}`, messageId, ...(delta && { delta }) });
  const events = [event('START', 'b'), event('CONTENT', 'a', 'ana@exam'), event('CONTENT', 'b', 'hello'), event('END', 'b'),
    event('CONTENT', 'a', 'ple.com'), event('END', 'a')];
  const { seen } = await run(guarding(engine), scripted({ events }));
  const of = id => seen.filter(({ messageId }) => messageId === id);
  assert.deepEqual([textOf(of('a')), textOf(of('b'))], ['[email]', 'hello']);
  for (const id of ['a', 'b']) {
    assert.equal(of(id).at(-1).type, 'TEXT_MESSAGE_END');
  }
});

test('held text comes out at the end of its message, and before an error', async () => {
  const engine = await engineOf('{ id: mask, stream: { redact: email } }');
  const order = [];
  const first = { name: 'first', onChunk: (_, { type }) => void order.push(`in ${type}`) };
  const last = { name: 'last', onChunk: (_, { type }) => void order.push(`out ${type}`) };
  const guard = guarding(engine);
  const open = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'n', delta: 'hello' };
  // Anthropic streams reasoning as steps, too, which have no end.
  const step = { type: 'STEP_FINISHED', stepId: 's', stepName: 's', delta: 'hmm' };
  const reasoning = ['START', 'END'].map(part => ({ type: `REASONING_MESSAGE_${part}`, messageId: 'r' }));
  const custom = { type: 'CUSTOM', name: 'x', value: {} };
  const events = [custom, step, ...reasoning, custom, open, { type: 'RUN_ERROR', message: 'no answer' }];
  const stream = chat({ adapter: scripted({ text: ['hello'], events }), messages: [{ role: 'user', content: 'go' }], middleware: [first, guard, last] });
  await assert.rejects(async () => {
    for await (const { type } of stream) {
      if (type === 'RUN_ERROR') {
        throw new Error('seen');
      }
    }
  }, /seen/);
  assert.deepEqual(order, ['in RUN_STARTED', 'out RUN_STARTED', 'in TEXT_MESSAGE_START', 'out TEXT_MESSAGE_START', 'in TEXT_MESSAGE_CONTENT',
    'in TEXT_MESSAGE_END', 'out TEXT_MESSAGE_CONTENT', 'out TEXT_MESSAGE_END', 'in CUSTOM', 'out CUSTOM', 'in STEP_FINISHED',
    'in REASONING_MESSAGE_START', 'in REASONING_MESSAGE_END', 'out STEP_FINISHED', 'out REASONING_MESSAGE_START', 'out REASONING_MESSAGE_END',
    'in CUSTOM', 'out CUSTOM', 'in TEXT_MESSAGE_CONTENT', 'in RUN_ERROR', 'out TEXT_MESSAGE_CONTENT', 'out RUN_ERROR']);
});

test('without stream policies every chunk is passed on as it is', async () => {
  const engine = await engineOf('');
  const text = ['ana@exam', 'ple.com'];
  const first = [];
  const before = [{ name: 'first', onChunk: (_, chunk) => void first.push(chunk) }];
  const second = [];
  const after = { name: 'second', onChunk: (_, chunk) => void second.push(chunk) };
  const middleware = [...before, guarding(engine), after];
  for await (const _ of chat({ adapter: scripted({ text, calls: [CALL] }), messages: [{ role: 'user', content: 'go' }], tools: [tool('look')], middleware })) {
    // Only what middleware sees counts.
  }
  assert.equal(first.length, second.length);
  assert.ok(first.every((chunk, index) => chunk === second[index]));
});

test('a policy that ends the stream aborts the chat, and open messages end', async () => {
  const engine = await engineOf('{ id: long, match: { where: { path: $.session.chunkIndex, gte: 4, absent: no_match } }, halt: { message: Too long } }');
  const model = scripted({ text: ['one', 'two', 'three', 'four'], calls: [CALL] });
  const { chunks, ends } = await run(guarding(engine), model);
  assert.equal(textOf(chunks), 'one');
  assert.equal(chunks.at(-1).type, 'TEXT_MESSAGE_END');
  assert.deepEqual(ends, [['abort', 'Too long']]);
  assert.equal(model.requests.length, 1);
});

test('a used-up budget ends the run before the next model call, and usage counts once', async () => {
  for (const [tokens, calls] of [[30, 2], [21, 2], [20, 1]]) {
    for (const [onExceed, end] of [['halt', 'abort'], ['finish', 'finish']]) {
      const engine = await engineOf(`{ id: cap, budget: { tokens: ${tokens}, on_exceed: ${onExceed} } }`);
      const usage = { promptTokens: 15, completionTokens: 5, totalTokens: 20 };
      const turn = { calls: [CALL], usage };
      const model = scripted(turn, turn, turn, turn);
      const { ends, thrown } = await run(guarding(engine), model);
      assert.equal(model.requests.length, calls, `${tokens} tokens`);
      assert.deepEqual([ends.map(([kind]) => kind), thrown], [[end], undefined]);
    }
  }
});

test('a budget that is used up when the chat begins lets no model call begin', async () => {
  const engine = await engineOf('{ id: once, budget: { iterations: 1, per: conversation } }');
  const model = scripted({ text: ['first'] });
  assert.deepEqual((await run(guarding(engine), model)).ends, [['finish', 'stop']]);
  const { chunks, ends, thrown } = await run(guarding(engine), model);
  assert.deepEqual([chunks, ends.map(([kind]) => kind), thrown, model.requests.length], [[], ['abort'], undefined, 1]);
});

test('a model call that does not follow is not counted', async () => {
  const engine = await engineOf('{ id: two, budget: { iterations: 2, per: conversation } }');
  const model = scripted([CALL], { text: ['second'] });
  // TanStack AI stops by itself after the first one.
  await run(guarding(engine), model, { agentLoopStrategy: ({ iterationCount }) => iterationCount < 1 });
  assert.deepEqual((await run(guarding(engine), model)).ends, [['finish', 'stop']]);
  assert.equal(model.requests.length, 2);
});

test('chats at once with one middleware do not mix', async () => {
  const engine = await engineOf('{ id: mask, stream: { redact: email } }, { id: cap, budget: { tokens: 30 } }');
  const guard = guarding(engine);
  const usage = { promptTokens: 10, completionTokens: 10, totalTokens: 20 };
  const texts = ['ana@example.com', 'bob@example.org'].map(text => [...text]);
  const models = texts.map(text => scripted({ text, usage, calls: [CALL] }));
  const all = await Promise.all(models.map(model => run(guard, model)));
  for (const [index, { chunks, ends }] of all.entries()) {
    assert.equal(textOf(chunks), '[email]done');
    assert.deepEqual([ends, models[index].requests.length], [[['finish', 'stop']], 2]);
  }
});

test('the next chat begins a new run, after an end, an abort, an error of the model and a halt', async () => {
  const engine = await engineOf(`
    { id: bad, match: bad, halt: { message: Stop } },
    { id: cap, budget: { iterations: 1 } }, { id: mask, stream: { redact: email } }`);
  const guard = guarding(engine);
  const controller = new AbortController();
  const abort = { name: 'abort', onChunk: (_, { type }) => void (type === 'TEXT_MESSAGE_CONTENT' && controller.abort('enough')) };
  const texts = [];
  const open = [{ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'to ana@' }];
  const chats = [
    [scripted({ text: ['hello'] }), {}, 'finish', 'stop'],
    [scripted({ text: ['hello', 'more'] }), { before: [abort], abortController: controller }, 'abort', 'enough'],
    [scripted({ events: open, error: 'no answer' }), {}, 'error', 'no answer'],
    [scripted([{ tool: 'bad', input: {} }]), { tools: [tool('bad')] }, 'abort', /Stop/],
    [scripted({ text: ['example.com'] }), {}, 'finish', 'stop'],
  ];
  for (const [model, options, kind, reason] of chats) {
    const { ends, chunks } = await run(guard, model, options);
    assert.deepEqual(ends.map(([kind]) => kind), [kind]);
    assert.match(ends[0][1], new RegExp(reason));
    texts.push(textOf(chunks));
  }
  // What was held back when a chat broke off does not come out in the next one.
  assert.deepEqual(texts, ['hello', '', '', '', 'example.com']);
});

const TAINT = `{ id: taint, match: look, label: { add: [seen] } },
  { id: stop, match: { tool: send, where: { path: "$.session.labels[*]", eq: seen } }, deny: { message: Tainted } }`;
const SEND = { tool: 'send', input: {} };

test('labels of a chat reach the next one of the same requester', async () => {
  const guard = guarding(await engineOf(TAINT));
  const sent = [];
  const tools = [tool('look'), tool('send', input => sent.push(input))];
  await run(guard, scripted([SEND], [CALL]), { tools });
  await run(guard, scripted([SEND]), { tools });
  assert.equal(sent.length, 1);
});

test('labels hold in a chat that begins while another runs, or after one whose reader went away', async () => {
  const guard = guarding(await engineOf(TAINT));
  const sent = [];
  const tools = [tool('look'), tool('send', input => sent.push(input))];
  const messages = [{ role: 'user', content: 'go' }];
  for await (const chunk of chat({ adapter: scripted([CALL], [SEND]), messages, tools, middleware: [guard], debug: false })) {
    if (chunk.type === 'TOOL_CALL_RESULT') {
      await run(guard, scripted([SEND]), { tools });
      break;
    }
  }
  await run(guard, scripted([SEND]), { tools });
  assert.deepEqual(sent, []);
});

test('a chat that waits for its user ends its run, and the snapshot of its messages is redacted', async () => {
  const guard = guarding(await engineOf(`{ id: mask, stream: { redact: email } }, ${TAINT}`));
  const ask = toolDefinition({ name: 'ask', description: 'ask', inputSchema: z.looseObject({}), needsApproval: true }).server(() => 1);
  const sent = [];
  const tools = [ask, tool('look'), tool('send', input => sent.push(input))];
  const { chunks, ends } = await run(guard, scripted([CALL], { text: ['to ana@example.com'], calls: [{ tool: 'ask', input: {} }] }), { tools });
  // TanStack AI calls no hook for this end.
  assert.deepEqual(ends, []);
  const snapshot = chunks.find(({ type }) => type === 'MESSAGES_SNAPSHOT');
  assert.match(JSON.stringify(snapshot), /to \[email\]/);
  assert.doesNotMatch(JSON.stringify(chunks), /ana@/);
  await run(guard, scripted([SEND]), { tools });
  assert.deepEqual(sent, []);
});

test('structured output is refused with stream policies, and its model call passes the others', async () => {
  const outputSchema = z.object({ answer: z.string() });
  const structured = model => {
    const structuredOutput = async request => {
      model.structured = request.chatOptions;
      return { data: { answer: 'x' }, rawText: '{"answer":"x"}' };
    };
    return { ...model, structuredOutput };
  };
  const ask = (guard, adapter) => chat({ adapter, messages: [{ role: 'user', content: 'go' }], outputSchema, middleware: [guard] });
  const filtering = await engineOf('{ id: mask, stream: { redact: email } }');
  const refused = scripted();
  await assert.rejects(ask(guarding(filtering), structured(refused)), /kind `stream`, which does not reach structured output/);
  assert.equal(refused.structured, undefined);
  const engine = await engineOf('{ id: kind, model: { system_prompts: { append: Be kind. } } }');
  const model = scripted();
  const adapter = structured(model);
  assert.deepEqual(await ask(guarding(engine), adapter), { answer: 'x' });
  assert.deepEqual(model.structured.systemPrompts, ['Be kind.']);
  // Nothing but an error keeps TanStack AI from this call.
  const once = await engineOf('{ id: once, budget: { iterations: 1 } }');
  const tools = [tool('look')];
  const options = { messages: [{ role: 'user', content: 'go' }], outputSchema, tools, middleware: [guarding(once)] };
  const second = scripted();
  await assert.rejects(chat({ ...options, adapter: structured(second) }), { code: 'run_ended' });
  assert.equal(second.structured, undefined);
});

test('budgets of a shared state count the usage of all chats', async () => {
  const state = `file:${join(mkdtempSync(join(tmpdir(), 'callgate-')), 'state.db')}`;
  const cap = '{ id: cap, budget: { tokens: 30, per: conversation } }';
  const usage = { promptTokens: 15, completionTokens: 5, totalTokens: 20 };
  const requests = [];
  for (let index = 0; index < 3; index += 1) {
    const model = scripted({ text: ['x'], usage });
    await run(guarding(await engineOf(cap, { state })), model);
    requests.push(model.requests.length);
  }
  assert.deepEqual(requests, [1, 1, 0]);
});
