// Decisions and outcomes as the native part writes them: JSON arrays without the names of members that repeat.

import { type JsonValue, readFlagged } from './json';
import type { Decision, Effect, Outcome, PolicyTrace, ToolCall } from './types';

/** How many items a decision has before its policies. */
const DECISION_ITEMS = 6;
/** How many items a policy has. */
const POLICY_ITEMS = 5;

const SHADOW = 1;
const UNDECIDED = 2;

/** The decision on a call, whose arguments it has if no policy changed them. */
export function decisionOf(text: string, call: ToolCall): Decision {
  const items = readFlagged(text) as JsonValue[];
  const [input] = items[5] as JsonValue[];
  return {
    effect: items[0] as Effect,
    reason: { policy: items[3] as string | null, code: items[1] as string, message: items[2] as string },
    input: input === undefined ? (call.input as JsonValue) : input,
    pending: items[4] as string[],
    policies: policiesOf(items, DECISION_ITEMS),
  };
}

/** An outcome. */
export function outcomeOf(value: JsonValue): Outcome {
  const items = value as JsonValue[];
  const outcome = items[0] as unknown as Outcome;
  outcome.policies = policiesOf(items, 1);
  return outcome;
}

function policiesOf(items: readonly JsonValue[], start: number): PolicyTrace[] {
  const policies: PolicyTrace[] = [];
  for (let index = start; index < items.length; index += POLICY_ITEMS) {
    policies.push(policyOf(items, index));
  }
  return policies;
}

function policyOf(items: readonly JsonValue[], index: number): PolicyTrace {
  const remarks = items[index + 4];
  const [bits, printed] = Array.isArray(remarks) ? (remarks as [number, string[]]) : [remarks as number, undefined];
  const policy: PolicyTrace = {
    id: items[index] as string,
    kind: items[index + 1] as string,
    phase: items[index + 2] as PolicyTrace['phase'],
    verdict: items[index + 3] as PolicyTrace['verdict'],
    shadow: (bits & SHADOW) !== 0,
  };
  if ((bits & UNDECIDED) !== 0) {
    policy.undecided = true;
  }
  if (printed !== undefined) {
    policy.printed = printed;
  }
  return policy;
}
