// Checks messages against the schema that the AI SDK publishes. Reads one JSON object a line, `{name, dialect, document}`, and
// prints the rejected messages; the exit status is 1 if there are any.
import { readFileSync } from 'node:fs';
import { modelMessageSchema } from 'ai';

const wrong = [
  { role: 'tool', content: 'text' },
  { role: 'assistant', content: [{ type: 'tool-call', toolName: 'no id', input: {} }] },
  { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'a', toolName: 'b', output: { type: 'denied' } }] },
];
for (const message of wrong) {
  if (modelMessageSchema.safeParse(message).success) {
    console.log(`the check accepts an invalid message: ${JSON.stringify(message)}`);
    process.exit(1);
  }
}

let count = 0;
let failed = 0;
for (const line of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const { name, document } = JSON.parse(line);
  count += 1;
  const messages = Array.isArray(document) ? document : document.messages;
  for (const message of messages) {
    const parsed = modelMessageSchema.safeParse(message);
    if (!parsed.success) {
      failed += 1;
      console.log(`${name} in ai-sdk is rejected:\n${parsed.error.message.slice(0, 800)}\n${JSON.stringify(message, null, 1)}\n`);
    }
  }
}
console.log(`${count} checked, ${failed} rejected`);
process.exit(failed ? 1 : 0);
