// A server with every feature that the conformance suite checks, over streamable HTTP. Prints `listening on port N`.
//
// The test copies it next to the installed packages, so that Node resolves its modules.
import { randomUUID } from "node:crypto";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const text = (said) => ({ type: "text", text: said });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const embedded = (uri, mimeType, said) => ({ type: "resource", resource: { uri, mimeType, text: said } });
const pause = () => new Promise((done) => setTimeout(done, 50));
const object = (properties = {}) => ({ type: "object", properties, required: Object.keys(properties) });

const DEFAULTS = {
  type: "object",
  properties: {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  },
};
const titled = (title) => [1, 2, 3].map((number) => ({ const: `value${number}`, title: `${title} ${number}` }));
const plain = (name) => [1, 2, 3].map((number) => `${name}${number}`);
const ENUMS = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: plain("option") },
    titledSingle: { type: "string", oneOf: titled("Option") },
    legacyEnum: { type: "string", enum: plain("opt"), enumNames: ["Option One", "Option Two", "Option Three"] },
    untitledMulti: { type: "array", items: { type: "string", enum: plain("option") } },
    titledMulti: { type: "array", items: { anyOf: titled("Choice") } },
  },
};
const USER = object({ username: { type: "string", description: "User's response" }, email: { type: "string", description: "User's email address" } });

const asks = (schema, said) => async (extra, given) => {
  const params = { message: said ?? given.message, requestedSchema: schema };
  const answer = await extra.sendRequest({ method: "elicitation/create", params }, types.ElicitResultSchema);
  return [text(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`)];
};

const TOOLS = {
  test_simple_text: () => [text("This is a simple text response for testing.")],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  test_embedded_resource: () => [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")],
  test_multiple_content_types: () => [
    text("Multiple content types test:"),
    image,
    embedded("test://mixed-content-resource", "application/json", JSON.stringify({ test: "data", value: 123 })),
  ],
  test_tool_with_logging: async (extra) => {
    for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await extra.sendNotification({ method: "notifications/message", params: { level: "info", data } });
      await pause();
    }
    return [text("It has logged.")];
  },
  test_tool_with_progress: async (extra) => {
    for (const progress of [0, 50, 100]) {
      const params = { progressToken: extra._meta?.progressToken ?? 0, progress, total: 100 };
      await extra.sendNotification({ method: "notifications/progress", params });
      await pause();
    }
    return [text("It is done.")];
  },
  test_error_handling: () => { throw new Error("This tool intentionally returns an error for testing"); },
  test_sampling: async (extra, { prompt }) => {
    const params = { messages: [{ role: "user", content: text(prompt) }], maxTokens: 100 };
    const answer = await extra.sendRequest({ method: "sampling/createMessage", params }, types.CreateMessageResultSchema);
    return [text(`LLM response: ${answer.content.text}`)];
  },
  test_elicitation: asks(USER),
  test_elicitation_sep1034_defaults: asks(DEFAULTS, "Check the defaults"),
  test_elicitation_sep1330_enums: asks(ENUMS, "Choose"),
};
const ARGUMENTS = { test_sampling: { prompt: { type: "string" } }, test_elicitation: { message: { type: "string" } } };

const RESOURCES = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "It is watched." },
};

const PROMPTS = {
  test_simple_prompt: [[], () => [text("This is a simple prompt for testing.")]],
  test_prompt_with_arguments: [["arg1", "arg2"], ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)]],
  test_prompt_with_embedded_resource: [
    ["resourceUri"],
    ({ resourceUri }) => [
      embedded(resourceUri, "text/plain", "Embedded resource content for testing."),
      text("Please process the embedded resource above."),
    ],
  ],
  test_prompt_with_image: [[], () => [image, text("Please analyze the image above.")]],
};

const described = (name) => ({ name, description: `For the suite: ${name}` });

function server() {
  const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };
  const made = new Server({ name: "conforming", version: "1.0.0" }, { capabilities });
  const on = (schema, answer) => made.setRequestHandler(schema, answer);
  const unknown = (what) => { throw new types.McpError(types.ErrorCode.InvalidParams, `there is no ${what}`); };
  on(types.ListToolsRequestSchema, () => ({
    tools: Object.keys(TOOLS).map((name) => ({ ...described(name), inputSchema: object(ARGUMENTS[name]) })),
  }));
  on(types.CallToolRequestSchema, async ({ params }, extra) => {
    const tool = TOOLS[params.name] ?? unknown("such tool");
    try {
      return { content: await tool(extra, params.arguments ?? {}) };
    } catch (error) {
      return { isError: true, content: [text(error.message)] };
    }
  });
  on(types.ListResourcesRequestSchema, () => ({
    resources: Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({ uri, mimeType, ...described(uri) })),
  }));
  on(types.ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ uriTemplate: "test://template/{id}/data", mimeType: "application/json", ...described("template") }],
  }));
  on(types.ReadResourceRequestSchema, ({ params: { uri } }) => {
    const id = /^test:\/\/template\/(.+)\/data$/.exec(uri)?.[1];
    const data = { id, templateTest: true, data: `Data for ID: ${id}` };
    const content = id ? { mimeType: "application/json", text: JSON.stringify(data) } : RESOURCES[uri] ?? unknown("such resource");
    return { contents: [{ uri, ...content }] };
  });
  on(types.SubscribeRequestSchema, () => ({}));
  on(types.UnsubscribeRequestSchema, () => ({}));
  on(types.SetLevelRequestSchema, () => ({}));
  on(types.CompleteRequestSchema, () => ({ completion: { values: ["test1", "test2"], total: 2, hasMore: false } }));
  on(types.ListPromptsRequestSchema, () => ({
    prompts: Object.entries(PROMPTS).map(([name, [names]]) => ({
      ...described(name),
      arguments: names.map((argument) => ({ ...described(argument), required: true })),
    })),
  }));
  on(types.GetPromptRequestSchema, ({ params }) => {
    const [, contents] = PROMPTS[params.name] ?? unknown("such prompt");
    return { messages: contents(params.arguments ?? {}).map((content) => ({ role: "user", content })) };
  });
  return made;
}

const sessions = new Map();
const app = createMcpExpressApp();
app.all("/mcp", async (request, response) => {
  const name = request.headers["mcp-session-id"];
  let transport = sessions.get(name);
  if (name && !transport) return response.status(404).json({ jsonrpc: "2.0", id: null, error: { code: -32001, message: "no such session" } });
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
      onsessionclosed: (id) => sessions.delete(id),
    });
    await server().connect(transport);
  }
  await transport.handleRequest(request, response, request.body);
});
const listening = app.listen(0, "127.0.0.1", () => console.error(`listening on port ${listening.address().port}`));
