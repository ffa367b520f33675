// Compiled against the declarations as CommonJS.

import callgate = require('callgate');

export async function main(): Promise<callgate.Decision> {
  const engine = await callgate.Engine.fromText('policies: []');
  return engine.decide({ tool: 'refund', input: { amount: 5n } });
}
