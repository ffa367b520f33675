// A scripted model of TanStack AI.

import assert from 'node:assert/strict';

/** A model that makes these calls, one list for each turn, and then answers. */
export function scripted(...turns) {
  let turn = 0;
  const requests = [];
  async function* chatStream(request) {
    requests.push(request);
    const calls = turns[turn];
    turn += 1;
    const base = { timestamp: 0, model: 'scripted' };
    const run = { ...base, runId: `r${turn}`, threadId: 't' };
    yield { ...run, type: 'RUN_STARTED' };
    for (const [index, { tool, input }] of (calls ?? []).entries()) {
      const call = { ...base, toolCallId: `c${turn}-${index}`, toolCallName: tool, toolName: tool };
      yield { ...call, type: 'TOOL_CALL_START', index };
      yield { ...call, type: 'TOOL_CALL_ARGS', delta: JSON.stringify(input), args: JSON.stringify(input) };
      yield { ...call, type: 'TOOL_CALL_END', input };
    }
    if (calls === undefined) {
      yield { ...base, type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' };
      yield { ...base, type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'done', content: 'done' };
      yield { ...base, type: 'TEXT_MESSAGE_END', messageId: 'm' };
    }
    yield { ...run, type: 'RUN_FINISHED', finishReason: calls === undefined ? 'stop' : 'tool_calls' };
  }
  return { kind: 'text', name: 'scripted', model: 'scripted', requests, chatStream, structuredOutput: () => assert.fail() };
}
