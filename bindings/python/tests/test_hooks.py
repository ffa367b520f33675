"""Hooks: what they may do with a call, in synchronous and asynchronous forms."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from callgate import Engine, InvalidValueError, ToolCall, ToolError
from callgate.hooks import Annotate, Block, Edit, Halt, RequireApproval, Skip
from conftest import RULES

SMALL = {"tool": "refund", "id": "small", "input": {"order": "A1", "amount": 40}}
LIMIT = "policies: [{ id: at-most-100, match: { tool: refund, where: { path: $.input.amount, gt: 100 } }, deny: {} }]"

Next = Callable[..., Any]
AsyncNext = Callable[..., Awaitable[Any]]


class Hook:
    id = "host"

    def __init__(self, action: Any) -> None:
        self.action = action
        self.outcomes: list[dict[str, Any]] = []

    def before(self, call: ToolCall) -> Any:
        return self.action(call) if callable(self.action) else self.action

    def after(self, outcome: dict[str, Any]) -> None:
        self.outcomes.append(outcome)


@pytest.mark.parametrize(
    ("action", "kind", "text"),
    [
        (None, "executed", '{"order":"A1","amount":40}'),
        (Edit({"order": "A1", "amount": 7}), "executed", '{"order":"A1","amount":7}'),
        (Edit({"order": "A1", "amount": 700}), "suspended", None),
        (Skip("from the hook"), "answered", "from the hook"),
        (Annotate({"seen": True}), "executed", '{"order":"A1","amount":40}'),
        (RequireApproval("sure?"), "suspended", None),
        (Block("not today"), "denied", "not today"),
        (Halt("enough"), "halted", "enough"),
        (lambda _: 1 / 0, "denied", "the hook `host` failed"),
        ("run", "denied", "the hook `host` failed"),
        (Edit({"order": object()}), "denied", "the hook `host` failed"),
    ],
)
def test_hooks_restrict_edit_and_answer_calls(
    action: Any, kind: str, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    hook = Hook(action)
    engine = Engine.from_text(RULES, hooks=[hook])
    outcome = engine.session().call(SMALL, lambda call: call.input)
    assert (outcome.kind, outcome.text) == (kind, text)
    # What is wrong with a hook is for the programmer.
    is_logged = [record.getMessage() for record in caplog.records if record.exc_info] == ["the hook `host` failed"]
    assert is_logged == (text == "the hook `host` failed")
    if kind != "suspended":
        assert [seen["outcome"] for seen in hook.outcomes] == [kind]


def test_a_hook_without_methods_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="no method"):
        Engine.from_text(RULES, hooks=[object()])


def test_a_hook_replaces_errors() -> None:
    class Fallback:
        def on_error(self, call: ToolCall, message: str) -> Any:
            return Skip("fallback") if message == "down" else Block("other words")

    session = Engine.from_text("policies: []", hooks=[Fallback()]).session()
    tool = lambda message: lambda _: (_ for _ in ()).throw(ToolError(message))  # noqa: E731
    assert session.call({**SMALL, "id": "1"}, tool("down")).output == "fallback"
    assert session.call({**SMALL, "id": "2"}, tool("broken")).error == "other words"


class Log:
    """An asynchronous hook that waits in each of its methods."""

    id = "log"

    def __init__(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.sleep = sleep
        self.seen: list[str] = []

    async def before(self, call: ToolCall) -> Any:
        await self.sleep(0)
        self.seen.append(f"before {call.tool}")
        return Edit({**call.input, "amount": 7})

    async def around(self, call: ToolCall, next: AsyncNext) -> Any:
        await self.sleep(0)
        result = await next()
        self.seen.append(f"around {result}")
        return {"amount": result}

    async def on_error(self, call: ToolCall, message: str) -> Any:
        await self.sleep(0)
        self.seen.append(f"on_error {message}")
        return Skip("recovered")

    async def after(self, outcome: dict[str, Any]) -> None:
        await self.sleep(0)
        self.seen.append(f"after {outcome['outcome']}")


@pytest.mark.parametrize("library", ["asyncio", "trio"])
def test_asynchronous_hooks_are_awaited(library: str) -> None:
    log = Log(asyncio.sleep if library == "asyncio" else trio.sleep)
    session = Engine.from_text(LIMIT, hooks=[log]).session()

    async def tool(call: ToolCall) -> Any:
        await log.sleep(0)
        if call.id == "broken":
            raise ToolError("down")
        return call.input["amount"]

    async def run() -> list[Any]:
        return [await session.acall({**SMALL, "id": call}, tool) for call in ("fine", "broken")]

    fine, broken = asyncio.run(run()) if library == "asyncio" else trio.run(run)
    assert (fine.output, broken.kind, broken.output) == ({"amount": 7}, "recovered", "recovered")
    assert log.seen == [
        "before refund",
        "around 7",
        "after executed",
        "before refund",
        "on_error down",
        "after recovered",
    ]


def test_an_asynchronous_hook_that_raises_denies_the_call() -> None:
    class Broken:
        async def before(self, call: ToolCall) -> Any:
            raise ValueError("a secret")

    session = Engine.from_text(LIMIT, hooks=[Broken()]).session()
    outcome = asyncio.run(session.acall(SMALL, lambda _: pytest.fail("it ran")))
    assert (outcome.kind, "the hook `" in outcome.message, "secret" in outcome.message) == ("denied", True, False)


def test_a_form_that_a_hook_can_not_run_in_raises_before_anything_runs() -> None:
    class Asynchronous:
        async def after(self, outcome: dict[str, Any]) -> None:
            pass

    class Blocking:
        def around(self, call: ToolCall, next: Next) -> Any:
            return next()

    tool = lambda _: pytest.fail("it ran")  # noqa: E731
    with pytest.raises(TypeError, match="the hook `.*Asynchronous` is asynchronous; use the asynchronous forms"):
        Engine.from_text(LIMIT, hooks=[Asynchronous()]).session().call(SMALL, tool)
    with pytest.raises(TypeError, match="would block the event loop"):
        asyncio.run(Engine.from_text(LIMIT, hooks=[Blocking()]).session().acall(SMALL, tool))


def test_a_hook_that_turns_out_to_be_asynchronous_runs_nothing() -> None:
    async def before(call: ToolCall) -> Any:
        return None

    class Hidden:
        def before(self, call: ToolCall) -> Any:
            return before(call)

    session = Engine.from_text(LIMIT, hooks=[Hidden()]).session()
    with pytest.raises(TypeError, match="asynchronous"):
        session.call(SMALL, lambda _: pytest.fail("it ran"))


class Around:
    def __init__(self, around: Callable[[ToolCall, Next], Any]) -> None:
        self.around = around


def test_around_hooks_nest_and_run_the_tool_once_several_times_or_never() -> None:
    ran: list[Any] = []

    def tool(call: ToolCall) -> Any:
        ran.append(call.input["amount"])
        return call.input["amount"]

    def outcome(*hooks: Callable[[ToolCall, Next], Any]) -> Any:
        ran.clear()
        return Engine.from_text(LIMIT, hooks=[Around(hook) for hook in hooks]).session().call(SMALL, tool)

    assert outcome(lambda _, next: ["outer", next()], lambda _, next: ["inner", next()]).output == ["outer", ["inner", 40]]
    assert outcome(lambda call, next: [next(), next({**call.input, "amount": 9})]).output == [40, 9] and ran == [40, 9]
    assert outcome(lambda *_: "from a cache").output == "from a cache" and ran == []


def test_other_arguments_of_an_around_hook_pass_the_policies() -> None:
    session = Engine.from_text(LIMIT, hooks=[Around(lambda call, next: next({**call.input, "amount": 500}))]).session()
    outcome = session.call(SMALL, lambda _: pytest.fail("it ran"))
    assert outcome.kind == "failed" and "`at-most-100`" in (outcome.error or "")


def test_an_around_hook_sees_the_error_of_the_tool_and_its_own_is_that_of_the_call() -> None:
    def fall_back(call: ToolCall, next: Next) -> Any:
        try:
            return next()
        except ToolError as error:
            return f"instead of {error.kind}: {error.message}"

    def broken(call: ToolCall) -> Any:
        raise ToolError("down", "unavailable")

    session = Engine.from_text(LIMIT, hooks=[Around(fall_back)]).session()
    assert session.call(SMALL, broken).output == "instead of unavailable: down"
    for around, error in [
        (lambda call, next: 1 / 0, "division by zero"),
        (lambda call, next: next({"amount": object()}), "is not JSON"),
        (lambda call, next: object(), "the hook's result is not JSON"),
    ]:
        outcome = Engine.from_text(LIMIT, hooks=[Around(around)]).session().call(SMALL, lambda _: 1)
        assert outcome.kind == "failed" and error in (outcome.error or "")


def test_around_hooks_of_the_calls_of_a_round_do_not_mix() -> None:
    def around(call: ToolCall, next: Next) -> Any:
        return [call.id, next()]

    session = Engine.from_text(LIMIT, hooks=[Around(around), Around(around)]).session()
    calls = [{"tool": "refund", "id": str(amount), "input": {"amount": amount}} for amount in range(20)]
    outcomes = session.run_calls(calls, lambda call: call.input["amount"]).outcomes
    assert [outcome.output for outcome in outcomes] == [[str(n), [str(n), n]] for n in range(20)]


def test_a_run_that_is_aborted_ends_the_hooks_of_its_call() -> None:
    ended: list[str] = []

    async def around(call: ToolCall, next: AsyncNext) -> Any:
        try:
            return await next()
        finally:
            ended.append(call.id)

    async def run() -> Any:
        rules = "policies: [{ id: again, match: refund, retry: { attempts: 2, backoff: { initial: 1h, max: 1h }, idempotent: true } }]"
        session = Engine.from_text(rules, hooks=[Around(around)]).session()

        async def tool(_: ToolCall) -> Any:
            asyncio.get_running_loop().call_later(0.01, session.abort, "enough")
            raise ToolError("down")

        return await session.acall(SMALL, tool)

    assert asyncio.run(run()).kind == "aborted" and ended == ["small"]


def test_next_can_not_run_twice_at_once() -> None:
    async def around(call: ToolCall, next: AsyncNext) -> Any:
        return await asyncio.gather(next(), next())

    async def tool(_: ToolCall) -> Any:
        await asyncio.sleep(0.01)

    session = Engine.from_text(LIMIT, hooks=[Around(around)]).session()
    with pytest.raises(RuntimeError, match="`next` of the hook is running already"):
        asyncio.run(session.acall(SMALL, tool))


def test_a_partial_of_an_asynchronous_function_is_a_hook() -> None:
    async def before(reason: str, call: ToolCall) -> Any:
        return Block(reason)

    class Partial:
        def __init__(self) -> None:
            self.before = functools.partial(before, "no")

    outcome = asyncio.run(Engine.from_text(LIMIT, hooks=[Partial()]).session().acall(SMALL, lambda _: 1))
    assert (outcome.kind, outcome.message) == ("denied", "no")
