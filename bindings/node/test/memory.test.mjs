// A process needs as much memory after many calls as after few: what a call allocates is freed when it ends.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

/** Calls until the heap, the compiled code and the caches have their size. */
const WARM_UP = 50_000;
const CALLS = 150_000;
/**
 * How much may stay of each call, in bytes: less than the ids of calls. The size of a process changes by some megabytes by chance; the exact
 * test of sessions is `tests/allocations.rs`.
 */
const TOLERANCE = 80;

test('calls leave nothing in memory', async () => {
  const flags = ['--expose-gc', '--min-semi-space-size=1', '--max-semi-space-size=1'];
  const program = [...flags, 'memory-calls.mjs', String(WARM_UP), String(CALLS)];
  const { stdout } = await promisify(execFile)(process.execPath, program);
  const kept = JSON.parse(stdout);
  assert.ok(kept.heap < TOLERANCE && kept.process < TOLERANCE, `of each call stay: ${stdout}`);
  assert.equal(kept.operations, 0, 'operations that have not ended for tools that trace them');
});
