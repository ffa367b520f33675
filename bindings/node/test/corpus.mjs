// Plays the cases and histories of standard input, one a line, and prints their outcomes, one a line.

import { text } from 'node:stream/consumers';
import { Engine, History, parseJson, stringifyJson } from 'callgate';

const KEYS = '5a'.repeat(32);

async function play({ rules, tools, layers, rounds }) {
  const engine = await Engine.fromText(rules, { keys: KEYS, tools, time: '2026-01-01T12:00:00Z' });
  const session = engine.session({ layers });
  const outcomes = [];
  for (const { task, calls } of rounds) {
    if (task !== null) {
      session.setTask(task);
    }
    const tool = (_, { call }) => {
      const { recorded } = calls.find(({ call: { id } }) => id === call.id) ?? {};
      if (recorded?.error !== undefined) {
        throw Object.assign(new Error(recorded.error.message), { kind: recorded.error.kind ?? undefined });
      }
      return recorded?.output ?? null;
    };
    const members = ({ id, tool, input, server, context }) => ({ id, tool, input, server: server ?? undefined, context: context ?? undefined });
    outcomes.push(...(await session.callRound(calls.map(({ call }) => members(call)), tool)));
  }
  return { outcomes, session: session.state };
}

async function playHistory({ rules, dialect, messages, output }) {
  const engine = await Engine.fromText(rules, { keys: KEYS, time: '2026-01-01T12:00:00Z' });
  const history = History.read(dialect, messages);
  const { outcomes } = await engine.session({ name: 's' }).runRound(history, () => output);
  return { outcomes, messages: history.write() };
}

for (const line of (await text(process.stdin)).split('\n')) {
  if (line !== '') {
    const read = parseJson(line);
    console.log(stringifyJson(await ('messages' in read ? playHistory(read) : play(read))));
  }
}
