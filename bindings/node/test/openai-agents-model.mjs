// A scripted model of the OpenAI Agents SDK.

import assert from 'node:assert/strict';
import { setTracingDisabled, Usage } from '@openai/agents';

setTracingDisabled(true);

/** A model that makes these calls, one list for each turn, and then answers. */
export function scripted(...turns) {
  let turn = 0;
  const requests = [];
  const getResponse = async request => {
    requests.push(request);
    const calls = turns[turn];
    turn += 1;
    const output =
      calls === undefined
        ? [{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'done' }] }]
        : calls.map(({ tool: name, input }, index) => ({
            type: 'function_call',
            callId: `c${turn}-${index}`,
            name,
            arguments: JSON.stringify(input),
            status: 'completed',
          }));
    return { usage: new Usage(), output, responseId: `r${turn}` };
  };
  return { getResponse, requests, getStreamedResponse: () => assert.fail('not streamed') };
}
