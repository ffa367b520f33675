// Resumes the messages of an agent, as a new process does.

import { text } from 'node:stream/consumers';
import { run, scripted } from './ai-sdk-agent.mjs';
import { shopEngine, shopTools } from './shop.mjs';

const { messages, ...options } = JSON.parse(await text(process.stdin));
const { ran, tools } = shopTools();
const { outputs } = await run(await shopEngine(options), scripted(), tools, { messages });
console.log(JSON.stringify({ ran, outputs }));
