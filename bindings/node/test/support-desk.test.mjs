// The example application of `examples/node`, as its page uses it: with the chat of the AI SDK, and a server that ends in between.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Chat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';

const EXAMPLE = join(dirname(fileURLToPath(import.meta.url)), 'support-desk/server.mjs');
const directory = mkdtempSync(join(tmpdir(), 'callgate-'));
const journal = () => readFileSync(join(directory, 'journal.txt'), 'utf8').trim().split('\n');

/** Starts the server; `stop` ends it. */
function start() {
  const server = spawn(process.execPath, [EXAMPLE], { env: { ...process.env, PORT: '0', DESK_DIRECTORY: directory } });
  const stop = () => new Promise(resolve => server.once('exit', resolve).kill());
  return new Promise((resolve, reject) => {
    let printed = '';
    const read = part => {
      printed += part;
      const url = /http:\S+/.exec(printed)?.[0];
      if (url !== undefined) resolve({ url, stop });
    };
    server.stdout.on('data', read);
    server.stderr.on('data', part => (printed += part));
    server.once('exit', () => reject(new Error(printed)));
  });
}

/** The chat of the page, with the messages that it stored. */
function openChat(url, messages = []) {
  return new Chat({
    id: 'ticket-17',
    messages: JSON.parse(JSON.stringify(messages)),
    transport: new DefaultChatTransport({ api: `${url}/api/chat` }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: error => assert.fail(error),
  });
}

const calls = chat => chat.messages.flatMap(({ parts }) => parts).filter(({ type }) => type.startsWith('tool-'));

async function settled(chat, condition) {
  while (!(condition() && chat.status === 'ready')) {
    await new Promise(resolve => setTimeout(resolve, 10));
  }
}

test('the application asks its user, and continues in another process, where each refund runs once', { timeout: 60_000 }, async () => {
  const first = await start();
  const chat = openChat(first.url);
  await chat.sendMessage({ text: 'Refund my orders.' });
  const [order, removal, small, large] = calls(chat);
  assert.deepEqual(order.output, { order: 'A2', buyer: '[email]', total: 290 });
  assert.equal(removal.errorText, 'Not run (denied): Customers are never deleted');
  assert.equal(small.output, 'refunded 40');
  assert.equal(large.state, 'approval-requested');
  assert.deepEqual(journal(), ['refund 40 for A1']);
  await first.stop();

  const second = await start();
  const resumed = openChat(second.url, chat.messages);
  const answered = { id: large.approval.id, approved: true };
  await resumed.addToolApprovalResponse(answered);
  await settled(resumed, () => calls(resumed)[3].state === 'output-available');
  assert.equal(calls(resumed)[3].output, 'refunded 250');
  assert.deepEqual(journal(), ['refund 40 for A1', 'refund 250 for A2']);

  // The same answer again, as from a second tab.
  const tab = openChat(second.url, chat.messages);
  await tab.addToolApprovalResponse(answered);
  await settled(tab, () => calls(tab)[3].state === 'output-available');
  assert.equal(journal().length, 2);
  await second.stop();
});

test('the page is served, and other sites can send nothing', { timeout: 60_000 }, async () => {
  const { url, stop } = await start();
  assert.match(await (await fetch(url)).text(), /<script src="\/page.js">/);
  assert.match(await (await fetch(`${url}/page.js`)).text(), /Support desk/);
  const foreign = { method: 'POST', body: '{}', headers: { origin: 'http://elsewhere.example' } };
  assert.equal((await fetch(`${url}/api/chat`, foreign)).status, 403);
  await stop();
});
