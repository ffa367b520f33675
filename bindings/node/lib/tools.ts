// Runs tools for operations.

import type { JsonObject } from './json';
import { NotJsonError, stringifyJson } from './json';
import { describeError, JsonReply, type RequestHandler } from './operations';
import type { RunningCall, Tool, ToolContext, Tools } from './types';

class Context implements ToolContext {
  constructor(
    readonly call: RunningCall,
    private readonly makeSignal: () => AbortSignal,
  ) {}

  get signal(): AbortSignal {
    return this.makeSignal();
  }
}

/** The handler that runs a tool, or one of several by name. */
export function toolHandler(tools: Tool | Tools | undefined): RequestHandler {
  return (request: JsonObject, signal) => {
    const call = request['call'] as unknown as RunningCall;
    const tool = typeof tools === 'function' ? tools : ownTool(tools, call.tool);
    if (tool === undefined) {
      return { error: { message: `there is no tool \`${call.tool}\``, kind: 'unknown_tool' } };
    }
    try {
      const result = tool(call.input, new Context(call, signal));
      if (typeof (result as PromiseLike<unknown> | undefined)?.then === 'function') {
        return (result as PromiseLike<unknown>).then(reply, failure);
      }
      return reply(result);
    } catch (error) {
      return failure(error);
    }
  };
}

/** By own property only: a model can call a tool `constructor`. */
function ownTool(tools: Tools | undefined, name: string): Tool | undefined {
  return tools !== undefined && Object.hasOwn(tools, name) ? tools[name] : undefined;
}

function reply(output: unknown): unknown {
  try {
    // Written here, so that what is not JSON is the error of this tool.
    return new JsonReply(`{"output":${stringifyJson(output)}}`);
  } catch (error) {
    const message = error instanceof NotJsonError ? error.message : String(error);
    return { error: { message: `the tool returned what is not JSON: ${message}`, kind: 'invalid_result' } };
  }
}

function failure(error: unknown): unknown {
  return { error: describeError(error) };
}
