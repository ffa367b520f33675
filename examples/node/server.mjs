// A support desk with refunds: the chat of an agent in the browser, with approvals in the user interface of the AI SDK.
//
// usage: npm install && npm start
//
// Large refunds wait for the user of the page. End the server while one waits, and start it again: the answer counts, and every refund runs
// once.

import { createServer } from 'node:http';
import { join } from 'node:path';
import { createAgentUIStreamResponse } from 'ai';
import { CallRefusedError } from 'callgate/ai-sdk';
import { build } from 'esbuild';
import { openDesk } from './agent.mjs';

const PAGE = '<!doctype html><meta charset="utf-8"><title>Support desk</title><div id="desk"></div><script src="/page.js"></script>';
const LARGEST_BODY = 1 << 20;

/** The page with React, as one script. */
async function bundlePage() {
  const entry = join(import.meta.dirname, 'page.jsx');
  const options = { bundle: true, write: false, jsx: 'automatic', minify: true, format: 'iife' };
  const { outputFiles } = await build({ entryPoints: [entry], define: { 'process.env.NODE_ENV': '"production"' }, ...options });
  return outputFiles[0].text;
}

/** Whether a page of this server sends the request, and not another site through the user's browser. */
function isOwn({ headers: { host, origin } }) {
  const names = [`127.0.0.1:${server.address().port}`, `localhost:${server.address().port}`];
  return names.includes(host) && (origin === undefined || origin === `http://${host}`);
}

async function readBody(request) {
  let body = '';
  for await (const part of request.setEncoding('utf8')) {
    body += part;
    if (body.length > LARGEST_BODY) throw new Error('the conversation is too long');
  }
  return JSON.parse(body);
}

/** Sends a response of the web platform. */
async function send(answer, response) {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  for await (const part of answer.body) response.write(part);
  response.end();
}

const desk = await openDesk(process.env.DESK_DIRECTORY ?? 'support-desk');
const script = await bundlePage();
const server = createServer(async (request, response) => {
  const respond = (type, text) => response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(text);
  try {
    if (!isOwn(request)) response.writeHead(403).end();
    else if (request.method === 'POST' && request.url === '/api/chat') {
      const { id, messages } = await readBody(request);
      // The message of a refused call is for the model, and the page may show it.
      const onError = error => (error instanceof CallRefusedError ? error.message : 'the tool failed');
      await send(await createAgentUIStreamResponse({ agent: desk.agent(id), uiMessages: messages, onError }), response);
    } else if (request.url === '/page.js') respond('text/javascript', script);
    else respond('text/html', PAGE);
  } catch (error) {
    console.error(error);
    if (!response.headersSent) response.writeHead(400);
    response.end();
  }
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`the support desk is at http://127.0.0.1:${server.address().port}`);
});
