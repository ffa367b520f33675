// An agent of LangChain with a scripted model.

import { interrupt } from '@langchain/langgraph';
import { guardMiddleware } from 'callgate/langchain';
import { createAgent, createMiddleware, FakeToolCallingModel, tool, ToolMessage } from 'langchain';

/** The calls of each turn, in LangChain's form. */
export const turns = (...calls) => [
  ...calls.map((turn, number) =>
    turn.map(({ tool: name, input }, index) => ({ name, args: input, id: `c${number}-${index}`, type: 'tool_call' })),
  ),
  [],
];

export function agent(engine, calls, tools, checkpointer) {
  const schema = { type: 'object', properties: {}, additionalProperties: true };
  const made = Object.entries(tools).map(([name, run]) => tool(run, { name, description: name, schema }));
  const middleware = [guardMiddleware(engine, { createMiddleware, interrupt, ToolMessage }, { name: 'chat' })];
  return createAgent({ model: new FakeToolCallingModel({ toolCalls: calls }), tools: made, middleware, checkpointer });
}

export const toolMessages = ({ messages }) => messages.filter(message => message.type === 'tool' || message.getType?.() === 'tool');
