"""OpenAI Agents SDK: every call of a function tool is evaluated, and approvals are those of the run's state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from agents import FunctionTool, RunContextWrapper, Tool
from agents.tool_context import ToolContext

from .._callgate import Outcome, ToolCall
from .._policies import refuse_model_policies
from ..approvals import Answer
from ..engine import Engine
from ..errors import StateError, ToolError, UnsupportedError
from ..session import Session
from ._results import to_json

__all__ = ["guard_tools"]

SessionSource = Session | Callable[[RunContextWrapper[Any]], Session]


def guard_tools(
    tools: Iterable[Tool], session: SessionSource, *, applied_elsewhere: Sequence[str] = ()
) -> list[FunctionTool]:
    """The same tools, whose every call is evaluated in a session.

    `session`: the session, or a function that returns the one of a run context, such as
    `lambda run: engine.session(run.context.conversation)`; it must return the same session for all calls of a conversation.

    A call that needs approval appears in `result.interruptions`. Answer it in the run's state with `state.approve(item)` or
    `state.reject(item)`, and run the agent with the state again. With a state store it runs exactly once, also after a restart.
    Raises `UnsupportedError` for tools that OpenAI runs, or that have no function, and for rules with policies that act on the model, unless
    you apply them yourself and list their kinds in `applied_elsewhere`.
    """
    if not isinstance(session, Session) and not callable(session):
        raise UnsupportedError("`guard_tools` needs a `Session`, or a function of the run context that returns one")
    if isinstance(session, Session):
        refuse_model_policies(session.engine, applied_elsewhere)
    return [_guarded(tool, session, applied_elsewhere) for tool in tools]


def _guarded(tool: Tool, source: SessionSource, applied_elsewhere: Sequence[str]) -> FunctionTool:
    if not isinstance(tool, FunctionTool):
        name = getattr(tool, "name", type(tool).__name__)
        raise UnsupportedError(f"`{name}` is not a function tool: Callgate can't evaluate calls that don't run here")
    guarded = _GuardedTool(tool, source, applied_elsewhere)
    return replace(tool, on_invoke_tool=guarded.invoke, needs_approval=guarded.needs_approval)


class _GuardedTool:
    def __init__(self, tool: FunctionTool, source: SessionSource, applied_elsewhere: Sequence[str]) -> None:
        self.tool = tool
        self.source = source
        self.applied_elsewhere = applied_elsewhere
        #: The engine whose policies can be applied.
        self.checked: Engine | None = None

    def session(self, context: RunContextWrapper[Any]) -> Session:
        if isinstance(self.source, Session):
            return self.source
        session = self.source(context)
        if not isinstance(session, Session):
            raise StateError(f"the function that finds the session of `{self.tool.name}` returned no session")
        if session.engine is not self.checked:
            refuse_model_policies(session.engine, self.applied_elsewhere)
            self.checked = session.engine
        return session

    async def needs_approval(self, context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        own = self.tool.needs_approval
        if own is True or (callable(own) and await own(context, arguments, call_id)):
            return True
        call = ToolCall(self.tool.name, arguments, id=call_id)
        session = self.session(context)
        if await session.afind_request(f"approval_{call_id}") is not None:
            return True
        if not session.decide(call).needs_approval:
            return False
        # Records the request, from when on it can expire.
        return (await session.acall(call, _not_yet)).is_suspended

    async def invoke(self, context: ToolContext[Any], arguments: str) -> Any:
        try:
            parsed = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            # Policies deny what is not an object.
            parsed = arguments
        call = ToolCall(self.tool.name, parsed, id=context.tool_call_id)
        session = self.session(context)
        returned: list[Any] = []

        async def run(final: ToolCall) -> Any:
            text = arguments if final.input == parsed else json.dumps(final.input)
            returned.append(await self.tool.on_invoke_tool(context, text))
            return to_json(returned[-1])

        found = await session.acall_or_request(call, run)
        outcome, request = (found, found.approval) if isinstance(found, Outcome) else (None, found)
        if request is not None and context.is_tool_approved(self.tool.name, call.id) is True:
            outcome = await session.aresume_call(call, request, Answer(True), run)
        elif request is not None and outcome is None:
            outcome = await session.aresume_call(call, request, [], run)
        return _output(outcome, returned)


async def _not_yet(_: ToolCall) -> Any:
    raise ToolError("the call is not approved yet")


def _output(outcome: Outcome | None, returned: list[Any]) -> Any:
    if outcome is None:
        raise StateError("the call has no outcome")
    if outcome.is_suspended:
        return f"Not run: pending approval. {outcome.message}"
    if outcome.is_ok and returned and not outcome.is_edited and to_json(returned[-1]) == outcome.output:
        return returned[-1]
    return outcome.text
