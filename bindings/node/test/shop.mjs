// The rules, tools and scripted models that the tests of the adapters share.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Engine } from 'callgate';

export const KEYS = '5a'.repeat(32);
export const RULES = readFileSync(join(dirname(fileURLToPath(import.meta.url)), 'rules.yaml'), 'utf8');

/** An engine with the rules of the shop. */
export function shopEngine(options = {}) {
  return Engine.fromText(RULES, { keys: KEYS, ...options });
}

/** The calls that the model makes, by the name of a test. */
export const CALLS = {
  allowed: { tool: 'refund', input: { amount: 40 } },
  denied: { tool: 'delete_customer', input: { name: 'bob' } },
  edited: { tool: 'search', input: { query: 'shoes' } },
  redacted: { tool: 'card', input: {} },
  limited: { tool: 'mail', input: {} },
  pending: { tool: 'refund', input: { amount: 250 } },
};

/** The tools, and what they were called with. */
export function shopTools() {
  const ran = [];
  const tool = (name, run) => input => {
    ran.push([name, input]);
    return run(input);
  };
  const tools = {
    refund: tool('refund', ({ amount }) => ({ refunded: amount })),
    delete_customer: tool('delete_customer', () => 'deleted'),
    search: tool('search', ({ query, limit }) => ({ found: `${query} ${limit}` })),
    card: tool('card', () => ({ number: 'card 4111 1111 1111 1111' })),
    mail: tool('mail', () => ({ sent: true })),
  };
  return { ran, tools };
}
