// Runs sessions with the official TypeScript clients, several concurrently. Argument and output are as for client.py; the mode `sdk` is
// the client before its second major version.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import * as modern from "@modelcontextprotocol/client";
import { StdioClientTransport as ModernTransport } from "@modelcontextprotocol/client/stdio";
import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import * as legacy from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";

const capabilities = (elicits) => ({ sampling: {}, ...(elicits && { elicitation: { form: {}, url: {} } }), roots: { listChanged: true } });

const ANSWERS = {
  "sampling/createMessage": () => ({ role: "assistant", content: { type: "text", text: "as I was asked" }, model: "m", stopReason: "endTurn" }),
  "elicitation/create": ({ params }) => {
    if (params.mode === "url") return { action: "accept" };
    return { action: "accept", content: params.message.includes("Callgate") ? { decision: "approve" } : { name: "Ada", check: true } };
  },
  "roots/list": () => ({ roots: [{ uri: "file:///somewhere", name: "somewhere" }] }),
};
const SCHEMAS = {
  "sampling/createMessage": legacy.CreateMessageRequestSchema,
  "elicitation/create": legacy.ElicitRequestSchema,
  "roots/list": legacy.ListRootsRequestSchema,
};

class Session {
  seen = {};
  wake = () => {};

  constructor({ mode, elicits, command: [command, ...args] }) {
    const options = { capabilities: capabilities(elicits) };
    const info = { name: "client", version: "1" };
    const isLegacy = mode === "sdk";
    this.client = isLegacy
      ? new LegacyClient(info, options)
      : new modern.Client(info, { ...options, versionNegotiation: { mode } });
    for (const [method, answer] of Object.entries(ANSWERS)) {
      if (method === "elicitation/create" && !elicits) continue;
      this.client.setRequestHandler(isLegacy ? SCHEMAS[method] : method, async (request) => answer(request));
    }
    this.transport = new (isLegacy ? LegacyTransport : ModernTransport)({ command, args });
  }

  note(method) {
    this.seen[method] = (this.seen[method] ?? 0) + 1;
    this.wake();
  }

  async waitFor(method, count) {
    while ((this.seen[method] ?? 0) < count) await new Promise((wake) => (this.wake = wake));
  }

  request(step, options = {}) {
    const { request: method, params } = step;
    options = { timeout: 60000, ...options };
    if (step.progress) options.onprogress ??= () => {};
    if (method === "tools/call") {
      return this.client instanceof LegacyClient ? this.client.callTool(params, undefined, options) : this.client.callTool(params, options);
    }
    if (method === "tools/list") return this.client.listTools(params);
    return this.client.request({ method, ...(params && { params }) }, z.looseObject({}), options);
  }

  async perform(step) {
    if (step.together) return Promise.all(step.together.map((one) => this.runStep(one)));
    if (step.wait) return this.waitFor(step.wait, step.count ?? 1);
    if (step.approve) {
      const [asked] = JSON.stringify(this.lastResult).match(/approval_[0-9a-f]{8}-\d+(?:_\d+)?/);
      const [command, ...args] = step.approve.map((part) => (part === "<id>" ? asked : part));
      return spawnSync(command, args).status;
    }
    if (step.notify) return this.client.notification({ method: step.notify });
    if (step.listen) {
      const heard = await this.client.listen({ toolsListChanged: true, resourceSubscriptions: [step.listen] });
      await this.request(step.then);
      await this.waitFor("notifications/resources/updated", 1);
      return heard.close();
    }
    if (!step.cancelled) return this.request(step);
    const controller = new AbortController();
    return new Promise((resolve, reject) => {
      const onprogress = () => controller.abort("enough");
      this.request(step, { onprogress, signal: controller.signal }).then(resolve, reject);
    });
  }

  async runStep(step) {
    try {
      return (await this.perform(step)) ?? null;
    } catch (error) {
      return `${error.name} ${error.code}: ${error.message}`;
    }
  }

  async run(script) {
    await this.client.connect(this.transport);
    const hear = this.transport.onmessage;
    this.transport.onmessage = (message, extra) => {
      hear(message, extra);
      if (message.method) this.note(message.method);
    };
    const results = [];
    for (const step of script) results.push((this.lastResult = await this.runStep(step)));
    await this.client.close();
    return results;
  }
}

const late = setTimeout(() => (console.error("a session timed out"), process.exit(1)), 120000);
const plans = JSON.parse(readFileSync(process.argv[2], "utf8"));
const results = [];
// Bounded for small machines.
const waiting = plans.entries();
const runPlans = async () => {
  for (const [number, plan] of waiting) results[number] = await new Session(plan).run(plan.script);
};
await Promise.all([1, 2, 3, 4].map(runPlans));
console.log(JSON.stringify(results));
clearTimeout(late);
