// Compiled against the declarations: outcomes are told apart by `outcome`.

import { Engine, type Outcome, RulesError } from 'callgate';
import { guardTools } from 'callgate/ai-sdk';

export function describe(outcome: Outcome): string {
  switch (outcome.outcome) {
    case 'suspended':
      return outcome.approval.approvalId;
    case 'executed':
    case 'cached':
    case 'answered':
    case 'recovered':
      return JSON.stringify(outcome.output);
    default:
      return outcome.reason.message;
  }
}

export async function main(): Promise<string> {
  const engine = await Engine.load('policies', { keys: '5a'.repeat(32) }).catch((error: unknown) => {
    throw error instanceof RulesError ? new Error(error.diagnostics[0]?.help) : error;
  });
  const session = engine.session({ name: 'chat 7', context: { principal: 'ana' } });
  const tools = guardTools(engine, { refund: { execute: ({ amount }: { amount: number }) => amount } }, { name: 'chat 7' });
  return describe(await session.call({ tool: 'refund', input: { amount: 5 } }, tools.refund.execute));
}
