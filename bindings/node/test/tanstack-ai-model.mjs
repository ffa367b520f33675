// A scripted model of TanStack AI.

import assert from 'node:assert/strict';

/**
 * A model that takes these turns, and then answers. A turn is a list of calls, or has `calls`, the pieces of a `text` and of its
 * `reasoning`, the `usage`, an `error`, or more `events`.
 */
export function scripted(...turns) {
  let turn = 0;
  const requests = [];
  async function* chatStream(request) {
    requests.push(request);
    const script = turns[turn] ?? { text: ['done'] };
    const { calls = [], text = [], reasoning = [], events = [], usage, error } = Array.isArray(script) ? { calls: script } : script;
    turn += 1;
    const base = { timestamp: 0, model: 'scripted' };
    const run = { ...base, runId: `r${turn}`, threadId: 't' };
    yield { ...run, type: 'RUN_STARTED' };
    yield* pieces('REASONING_MESSAGE', { ...base, messageId: 'r' }, reasoning);
    yield* pieces('TEXT_MESSAGE', { ...base, messageId: 'm', role: 'assistant' }, text);
    yield* events;
    if (error !== undefined) {
      throw new Error(error);
    }
    for (const [index, { tool, input }] of calls.entries()) {
      const call = { ...base, toolCallId: `c${turn}-${index}`, toolCallName: tool, toolName: tool };
      yield { ...call, type: 'TOOL_CALL_START', index };
      yield { ...call, type: 'TOOL_CALL_ARGS', delta: JSON.stringify(input), args: JSON.stringify(input) };
      yield { ...call, type: 'TOOL_CALL_END', input };
    }
    yield { ...run, type: 'RUN_FINISHED', finishReason: calls.length === 0 ? 'stop' : 'tool_calls', ...(usage && { usage }) };
  }
  return { kind: 'text', name: 'scripted', model: 'scripted', requests, chatStream, structuredOutput: () => assert.fail() };
}

/** A text in pieces, with what adapters repeat beside each. */
function* pieces(type, event, deltas) {
  let content = '';
  if (deltas.length > 0) {
    yield { ...event, type: `${type}_START` };
    for (const delta of deltas) {
      content += delta;
      yield { ...event, type: `${type}_CONTENT`, delta, content, rawEvent: { delta, content } };
    }
    yield { ...event, type: `${type}_END` };
  }
}
