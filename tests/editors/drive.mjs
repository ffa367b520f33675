// Drives the YAML language server as an editor does: opens each document that it reads from a line of stdin, and prints one line
// per document with the diagnostics, completions and hover texts at the given positions.
//
// In: { "uri", "text", "complete": [[line, character]], "hover": [[line, character]] }; lines and characters from 0.
// Out: { "diagnostics": [[line, message]], "complete": [[[label, documentation]]], "hover": [text] }.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";

const require = createRequire(import.meta.url);
const rpc = require("vscode-jsonrpc/node");
const home = dirname(require.resolve("yaml-language-server/package.json"));
const server = spawn(process.execPath, [join(home, "bin/yaml-language-server"), "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(server.stdout),
  new rpc.StreamMessageWriter(server.stdin),
);

const settings = JSON.parse(process.argv[2]);
const waiting = new Map();
connection.onNotification("textDocument/publishDiagnostics", ({ uri, diagnostics }) => waiting.get(uri)?.(diagnostics));
connection.onRequest("workspace/configuration", ({ items }) => items.map(({ section }) => settings[section] ?? null));
connection.onRequest("client/registerCapability", () => null);
connection.listen();

await connection.sendRequest("initialize", {
  processId: process.pid,
  rootUri: null,
  workspaceFolders: null,
  capabilities: {
    textDocument: {
      completion: { completionItem: { snippetSupport: true, documentationFormat: ["markdown"] } },
      hover: { contentFormat: ["markdown"] },
      publishDiagnostics: { relatedInformation: true },
    },
    workspace: { configuration: true },
  },
});
await connection.sendNotification("initialized", {});
await connection.sendNotification("workspace/didChangeConfiguration", { settings });

for await (const line of createInterface({ input: process.stdin })) {
  const { uri, text, complete = [], hover = [] } = JSON.parse(line);
  const found = new Promise((resolve) => waiting.set(uri, resolve));
  await connection.sendNotification("textDocument/didOpen", { textDocument: { uri, languageId: "yaml", version: 1, text } });
  const diagnostics = (await found).map(({ range, message }) => [range.start.line, message]);
  const at = ([line, character]) => ({ textDocument: { uri }, position: { line, character } });
  const completed = [];
  for (const position of complete) {
    const list = await connection.sendRequest("textDocument/completion", at(position));
    completed.push((list?.items ?? list ?? []).map(({ label, documentation }) => [label, documentation?.value ?? documentation ?? ""]));
  }
  const hovered = [];
  for (const position of hover) {
    const answer = await connection.sendRequest("textDocument/hover", at(position));
    hovered.push(answer?.contents?.value ?? "");
  }
  console.log(JSON.stringify({ diagnostics, complete: completed, hover: hovered }));
}
await connection.sendRequest("shutdown");
await connection.sendNotification("exit");
connection.dispose();
