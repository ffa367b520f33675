// Resumes an interrupted agent from the checkpoints of a file, as a new process does: `node langchain-resume.mjs CHECKPOINTS STATE TIME`.

import { readFileSync } from 'node:fs';
import { deserialize } from 'node:v8';
import { Command, MemorySaver } from '@langchain/langgraph';
import { agent, toolMessages, turns } from './langchain-agent.mjs';
import { shopEngine, shopTools } from './shop.mjs';

const [checkpoints, state, time] = process.argv.slice(2);
const { ran, tools } = shopTools();
const checkpointer = Object.assign(new MemorySaver(), deserialize(readFileSync(checkpoints)));
const engine = await shopEngine({ state, ...(time === undefined ? {} : { time }) });
const config = { configurable: { thread_id: 'ticket 7' } };
const result = await agent(engine, turns(), tools, checkpointer).invoke(new Command({ resume: { approved: true } }), config);
console.log(JSON.stringify({ ran, contents: toolMessages(result).map(({ content }) => content) }));
