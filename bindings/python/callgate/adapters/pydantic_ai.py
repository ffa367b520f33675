"""Pydantic AI: every call of a toolset is evaluated, and approvals are deferred tool calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from .._callgate import Outcome, ToolCall
from .._policies import refuse_model_policies
from ..approvals import Answer
from ..engine import Engine
from ..errors import StateError
from ..session import Session
from ._results import to_json

__all__ = ["CallgateToolset"]

SessionSource = Session | Callable[[RunContext[Any]], Session]

#: How Pydantic AI's tools steer the run. They are not failures of a call.
CONTROL_FLOW = (ModelRetry, ApprovalRequired, CallDeferred)


@dataclass
class CallgateToolset(WrapperToolset[Any]):
    """A toolset whose every call is evaluated in a session.

    `session`: the session, or a function that returns the one of a run, such as `lambda run: engine.session(run.deps.conversation)`;
    it must return the same session for all calls of a conversation.

    A call that needs approval ends the run with `DeferredToolRequests`, which the agent's `output_type` must contain. Its metadata has
    the approval request. Answer it with `DeferredToolResults`: `ToolApproved()`, with `override_args` if the policy allows to change
    them, or `ToolDenied(message)`. With a state store it runs exactly once, also after a restart.
    """

    session: SessionSource
    #: Kinds of policies that act on the model, and that you apply yourself; rules with others of this kind are refused.
    applied_elsewhere: Sequence[str] = ()
    #: The engine whose policies can be applied.
    _checked: Engine | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.wrapped, AbstractToolset):
            raise StateError(f"`CallgateToolset` wraps a toolset, not `{type(self.wrapped).__name__}`")
        if not isinstance(self.session, Session) and not callable(self.session):
            raise StateError("`session` must be a `Session`, or a function of the run context that returns one")
        if isinstance(self.session, Session):
            refuse_model_policies(self.session.engine, self.applied_elsewhere)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        session = self._session(ctx)
        if not ctx.tool_call_id:
            raise StateError(f"the call of `{name}` has no id; Callgate can't tell it from others")
        given = to_json(tool_args)
        requested = _requested(ctx, tool, given)
        call = ToolCall(name, requested, id=ctx.tool_call_id)
        returned: list[Any] = []

        async def run(final: ToolCall) -> Any:
            arguments = tool_args if final.input == given else tool.args_validator.validate_python(final.input)
            returned.append(await super(CallgateToolset, self).call_tool(name, arguments, ctx, tool))
            return to_json(returned[-1])

        found = await session.driver_or_request(call, run, CONTROL_FLOW).run_async()
        outcome, request = (found, found.approval) if isinstance(found, Outcome) else (None, found)
        if request is not None and (ctx.tool_call_approved or outcome is None):
            answers = [Answer(True, edited_input=None if given == requested else given)] if ctx.tool_call_approved else []
            outcome = await session.resume_driver(call, request, answers, run, CONTROL_FLOW).run_async()
        return _result(outcome, returned)

    def _session(self, ctx: RunContext[Any]) -> Session:
        if isinstance(self.session, Session):
            return self.session
        session = self.session(ctx)
        if not isinstance(session, Session):
            raise StateError("the function that finds the session of a run returned no session")
        if session.engine is not self._checked:
            refuse_model_policies(session.engine, self.applied_elsewhere)
            self._checked = session.engine
        return session


def _requested(ctx: RunContext[Any], tool: ToolsetTool[Any], given: Any) -> Any:
    """The arguments before an approver replaced them: those that the model sent, with the tool's defaults."""
    if ctx.tool_call_approved:
        for message in reversed(ctx.messages):
            if isinstance(message, ModelResponse):
                for part in message.parts:
                    if isinstance(part, ToolCallPart) and part.tool_call_id == ctx.tool_call_id:
                        return to_json(tool.args_validator.validate_python(part.args_as_dict()))
    return given


def _result(outcome: Outcome | None, returned: list[Any]) -> Any:
    if outcome is None:
        raise StateError("the call has no outcome")
    if outcome.is_suspended:
        raise ApprovalRequired(metadata={"callgate": outcome.approval})
    if not outcome.is_ok:
        raise ToolFailed(outcome.text or outcome.message)
    if returned and not outcome.is_edited and to_json(returned[-1]) == outcome.output:
        return returned[-1]
    return outcome.text if outcome.is_edited else outcome.output
