"""Measures what Callgate adds to a call, beside the same calls without it. Install a release wheel and the frameworks first.

usage: python bindings/python/benches/overhead.py
"""

import asyncio
import statistics
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


def measure(name, run, count):
    """Prints the median of the time of one call."""
    run(count // 10)
    times = []
    for _ in range(9):
        started = time.perf_counter()
        run(count)
        times.append((time.perf_counter() - started) / count * 1e6)
    print(f"| {name} | {statistics.median(times):.1f} µs |", flush=True)


def repeated(function):
    def run(count):
        for _ in range(count):
            function()

    return run


def refund(order: str, amount: int, currency: str, note: str) -> str:
    """Refunds an order."""
    return "refunded"


def engine_calls():
    engine = Engine.from_text(RULES)
    session = engine.session()
    call = ToolCall("refund", ARGUMENTS, id="c")
    measure("`engine.decide`, the call converted before", repeated(lambda: engine.decide(call)), 20000)
    measure(
        "`engine.decide`, with the conversion of the arguments",
        repeated(lambda: engine.decide(ToolCall("refund", ARGUMENTS, id="c"))),
        20000,
    )
    measure(
        "`session.call`, with conversion and tool",
        repeated(lambda: session.call(ToolCall("refund", ARGUMENTS), lambda call: "refunded")),
        5000,
    )
    guarded = guard(engine)(refund)
    measure("a plain function", repeated(lambda: refund(**ARGUMENTS)), 50000)
    measure("the same with `@guard`", repeated(lambda: guarded(**ARGUMENTS)), 5000)

    async def tool(call):
        return "refunded"

    async def several(count):
        for _ in range(count):
            await session.acall(ToolCall("refund", ARGUMENTS), tool)

    measure("`session.acall`", lambda count: asyncio.run(several(count)), 5000)

    async def at_once(count):
        for _ in range(count // 1000):
            await asyncio.gather(*(session.acall(ToolCall("refund", ARGUMENTS), tool) for _ in range(1000)))

    measure("`session.acall`, 1,000 at once", lambda count: asyncio.run(at_once(max(count, 1000))), 5000)


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

    measure("LangChain, a call of the agent without middleware", loop([]), 200)
    measure("the same with a middleware that does nothing", loop([Pass()]), 200)
    measure("the same with Callgate", loop([CallgateMiddleware(Engine.from_text(RULES))]), 200)


if __name__ == "__main__":
    print("| what | time |\n| --- | --- |")
    engine_calls()
    langchain_calls()
