"""Measures what Callgate adds to a call, beside the same calls without it, and prints tables in Markdown.

usage: python bindings/python/benches/overhead.py [calls] [frameworks] [memory]

Install a release wheel first, and for `frameworks` the packages of tests/python/requirements.txt. Times are CPU time of the process, which
other programs of the machine change little: the least and the median of 15 runs. `memory` makes a million calls.
"""

import asyncio
import gc
import resource
import statistics
import sys
import threading
import time

from callgate import Engine, ToolCall, guard

RULES = """
policies:
  - id: customers-stay
    match: delete_customer
    deny: { message: Customers are never deleted }
  - id: at-most-1000
    match: { tool: refund, where: { path: $.input.amount, gt: 1000 } }
    deny: { message: At most 1000 }
  - id: large-refunds-need-approval
    match: { tool: refund, where: { path: $.input.amount, gt: 100 } }
    approval: { message: "Refund {{ input.amount }}?" }
  - id: no-foreign-currency
    match: { tool: refund, where: { path: $.input.currency, in: [USD, CHF] } }
    deny: { message: Only EUR }
  - id: refunds-are-permitted
    match: refund
    allow: {}
"""
ARGUMENTS = {"order": "A1", "amount": 40, "currency": "EUR", "note": "x" * 190}


RUNS = 15


def measure(name, run, count):
    """Prints the least and the median of the CPU time of one call."""
    run(count // 5)
    times = []
    for _ in range(RUNS):
        started = time.process_time()
        run(count)
        times.append((time.process_time() - started) / count * 1e6)
    print(f"| {name} | {min(times):.1f} µs | {statistics.median(times):.1f} µs |", flush=True)


def heading(title):
    print(f"\n| {title} | least | median |\n| --- | --- | --- |", flush=True)


def repeated(function):
    def run(count):
        for _ in range(count):
            function()

    return run


def refund(order: str, amount: int, currency: str, note: str) -> str:
    """Refunds an order."""
    return "refunded"


def engine_calls():
    heading("calls of the package")
    engine = Engine.from_text(RULES)
    session = engine.session()
    call = ToolCall("refund", ARGUMENTS, id="c")
    as_dict = {"id": "c", "tool": "refund", "input": ARGUMENTS}
    measure("`engine.decide`, with a `ToolCall`", repeated(lambda: engine.decide(call)), 20000)
    measure("`engine.decide`, with a dict", repeated(lambda: engine.decide(as_dict)), 20000)
    measure("`session.call`", repeated(lambda: session.call(as_dict, lambda call: "refunded")), 5000)
    guarded = guard(engine)(refund)
    measure("a plain function", repeated(lambda: refund(**ARGUMENTS)), 50000)
    measure("the same with `@guard`", repeated(lambda: guarded(**ARGUMENTS)), 5000)

    async def tool(call):
        return "refunded"

    async def several(count):
        for _ in range(count):
            await session.acall(as_dict, tool)

    measure("`session.acall`", lambda count: asyncio.run(several(count)), 5000)
    threads = []

    async def waiting(call):
        threads.append(threading.active_count())
        await asyncio.sleep(0.001)
        return "refunded"

    async def at_once(count):
        for _ in range(count // 1000):
            await asyncio.gather(*(session.acall(as_dict, waiting) for _ in range(1000)))

    measure("`session.acall`, 1,000 at once, whose tools wait 1 ms", lambda count: asyncio.run(at_once(max(count, 1000))), 5000)
    print(f"\nThreads during 1,000 calls at once: {max(threads)}", flush=True)


def memory():
    """Prints the memory of the process after each 250,000 of a million calls."""
    session = Engine.from_text(RULES).session()
    print("\n| calls | memory in use |\n| --- | --- |")
    for calls in range(0, 1_000_001, 250_000):
        gc.collect()
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        print(f"| {calls:,} | {pages * resource.getpagesize() / 2**20:.1f} MiB |", flush=True)
        if calls < 1_000_000:
            for number in range(250_000):
                call = {"id": f"c{number % 1000}", "tool": "refund", "input": ARGUMENTS}
                session.call(call, lambda call: {"refunded": call.input["amount"]})


def langchain_calls():
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    from callgate.adapters.langchain import CallgateMiddleware

    calls = 50

    class Model(BaseChatModel):
        @property
        def _llm_type(self):
            return "scripted"

        def bind_tools(self, tools, **_):
            return self

        def _generate(self, messages, *_, **__):
            if isinstance(messages[-1], ToolMessage):
                message = AIMessage(content="done")
            else:
                requests = [{"name": "refund", "args": ARGUMENTS, "id": f"c{n}"} for n in range(calls)]
                message = AIMessage(content="", tool_calls=requests)
            return ChatResult(generations=[ChatGeneration(message=message)])

    class Pass(AgentMiddleware):
        async def awrap_tool_call(self, request, handler):
            return await handler(request)

    def loop(middleware):
        agent = create_agent(Model(), [refund], middleware=middleware)

        async def several(count):
            for _ in range(max(1, count // calls)):
                await agent.ainvoke({"messages": [("user", "go")]})

        return lambda count: asyncio.run(several(max(count, calls)))

    heading("one call of a LangChain agent")
    measure("without middleware", loop([]), 200)
    measure("with a middleware of LangChain that does nothing", loop([Pass()]), 200)
    measure("with Callgate", loop([CallgateMiddleware(Engine.from_text(RULES))]), 200)


def pydantic_calls():
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

    from callgate.adapters.pydantic_ai import CallgateToolset

    calls = 50

    def model(messages, _):
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("refund", ARGUMENTS, tool_call_id=f"c{n}") for n in range(calls)])

    def loop(toolset):
        agent = Agent(FunctionModel(model), toolsets=[toolset])

        async def several(count):
            for _ in range(max(1, count // calls)):
                await agent.run("go")

        return lambda count: asyncio.run(several(max(count, calls)))

    tools = FunctionToolset([refund])
    heading("one call of a Pydantic AI agent")
    measure("without a wrapper", loop(tools), 200)
    measure("with a toolset wrapper of Pydantic AI that does nothing", loop(WrapperToolset(tools)), 200)
    measure("with Callgate", loop(CallgateToolset(tools, Engine.from_text(RULES).session())), 200)


def openai_calls():
    import json

    from agents import Agent, Model, ModelResponse, Runner, ToolGuardrailFunctionOutput, Usage, function_tool
    from agents import set_tracing_disabled, tool_input_guardrail
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from callgate.adapters.openai_agents import guard_tools

    calls = 50
    set_tracing_disabled(True)
    arguments = json.dumps(ARGUMENTS)

    class Scripted(Model):
        async def get_response(self, system_instructions, input, *_, **__):
            if isinstance(input, str) or len(input) == 1:
                request = {"arguments": arguments, "name": "refund", "type": "function_call"}
                output = [ResponseFunctionToolCall(call_id=f"c{n}", **request) for n in range(calls)]
            else:
                content = [ResponseOutputText(annotations=[], text="done", type="output_text")]
                message = {"id": "m", "role": "assistant", "status": "completed", "type": "message"}
                output = [ResponseOutputMessage(content=content, **message)]
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        def stream_response(self, *_, **__):
            raise NotImplementedError

    @tool_input_guardrail
    def permit(_):
        return ToolGuardrailFunctionOutput.allow()

    async def needs_none(*_):
        return False

    def loop(tools):
        agent = Agent(name="shop", model=Scripted(), tools=tools)

        async def several(count):
            for _ in range(max(1, count // calls)):
                await Runner.run(agent, "go")

        return lambda count: asyncio.run(several(max(count, calls)))

    tool = function_tool(refund)
    heading("one call of an agent of the OpenAI Agents SDK")
    measure("without Callgate", loop([tool]), 200)
    measure("with a tool guardrail of the SDK that permits", loop([function_tool(refund, tool_input_guardrails=[permit])]), 200)
    measure("with the SDK's own `needs_approval`, a function", loop([function_tool(refund, needs_approval=needs_none)]), 200)
    measure("with Callgate", loop(guard_tools([tool], Engine.from_text(RULES).session())), 200)


FRAMEWORKS = [langchain_calls, pydantic_calls, openai_calls]
PARTS = {"calls": [engine_calls], "frameworks": FRAMEWORKS, "memory": [memory]}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        for part in PARTS[name]:
            part()
