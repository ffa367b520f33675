"""LangChain and LangGraph: every tool call of `create_agent` is evaluated, and approvals are interrupts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command, interrupt

from .._callgate import Outcome, ToolCall
from .._drive import Tool
from ..approvals import Answer
from ..engine import Engine
from ..errors import AnswerError, StateError, ToolError
from ..session import Session
from ._sessions import Sessions

__all__ = ["CallgateMiddleware", "read_answer"]

ToolResult = ToolMessage | Command[Any]
Context = Mapping[str, Any] | Callable[[ToolCallRequest], Mapping[str, Any] | None] | None


class CallgateMiddleware(AgentMiddleware[Any, Any, Any]):
    """Evaluates every tool call against the policies of an engine.

    Put it first in `middleware`: then its decision is about the arguments that the model sent, and no other middleware runs a tool
    that it denies. `context`: what the host vouches for, such as `{"principal": …}`, or a function of the request that returns it. Calls
    that share a `thread_id` share a session. `applied_elsewhere`: kinds of policies that act on the model and that you apply with a session of
    your own; rules with others of this kind are refused.

    A call that needs approval interrupts the graph with `{"type": "callgate.approval", "request": …}`, for which the agent needs a
    checkpointer. Resume it with `Command(resume=…)`: `True`, `False`, `{"approved": …, "reason": …, "edited_input": …}`, or what
    `engine.sign_answer` returns. For calls that are approved exactly once, also after a crash or a restart, the engine needs a state
    store.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        context: Context = None,
        session_name: str = "langgraph",
        applied_elsewhere: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._engine = engine
        self._context = context
        self._session_name = session_name
        self._sessions = Sessions(engine, self._open_session, applied_elsewhere)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolResult]) -> ToolResult:
        run = _Run(request)
        session, call = self._session(request), run.call

        def tool(final: ToolCall) -> Any:
            return run.take(handler(run.changed(final)))

        found = session.call_or_request(call, tool)
        outcome, pending = (found, None) if isinstance(found, Outcome) else (None, found)
        answers: list[dict[str, Any]] = []
        while pending or (outcome is not None and outcome.is_suspended):
            pending = pending or (outcome.approval if outcome is not None else None) or {}
            answers.append(_ask(pending))
            outcome = session.resume_call(call, pending, answers, tool)
            pending = None
        return run.result(outcome)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        run = _Run(request)
        session, call = self._session(request), run.call

        async def tool(final: ToolCall) -> Any:
            return run.take(await handler(run.changed(final)))

        found = await session.acall_or_request(call, tool)
        outcome, pending = (found, None) if isinstance(found, Outcome) else (None, found)
        answers: list[dict[str, Any]] = []
        while pending or (outcome is not None and outcome.is_suspended):
            pending = pending or (outcome.approval if outcome is not None else None) or {}
            answers.append(_ask(pending))
            outcome = await session.aresume_call(call, pending, answers, tool)
            pending = None
        return run.result(outcome)

    def _session(self, request: ToolCallRequest) -> Session:
        config = getattr(request.runtime, "config", None) or {}
        thread = config.get("configurable", {}).get("thread_id")
        context = self._context(request) if callable(self._context) else self._context
        # Who is somebody else has another session: nobody inherits the state of others.
        key = (thread, repr(sorted(context.items())) if context else None)
        if thread is None:
            # Without a thread there is nothing that calls share.
            return self._open_session(None, context, has_unknown_past=False)
        return self._sessions.get(key, f"{self._session_name}:{thread}", context)

    def _open_session(
        self, name: str | None, context: Mapping[str, Any] | None, *, has_unknown_past: bool
    ) -> Session:
        return self._engine.session(
            name, context=context, has_unknown_past=has_unknown_past, propagate=(GraphBubbleUp,)
        )


class _Run:
    """One tool call of the graph, and the message that its tool returned."""

    def __init__(self, request: ToolCallRequest) -> None:
        call_id = request.tool_call.get("id")
        if not call_id:
            raise StateError("the model's tool call has no id; Callgate can't tell it from others")
        self.request = request
        self.call = ToolCall(request.tool_call["name"], request.tool_call["args"], id=call_id)
        self.returned: ToolResult | None = None
        self.content: Any = None

    def changed(self, final: ToolCall) -> ToolCallRequest:
        """The request with the final arguments."""
        return self.request.override(tool_call={**self.request.tool_call, "args": final.input})

    def take(self, returned: ToolResult) -> Any:
        """Keeps what the tool returned, and returns what policies see of it."""
        self.returned = returned
        message = self._message(returned)
        if message is None:
            return None
        self.content = message.content
        if message.status == "error":
            raise ToolError(message.text if isinstance(message.text, str) else str(message.content))
        return message.content

    def _message(self, returned: ToolResult | None) -> ToolMessage | None:
        if isinstance(returned, ToolMessage):
            return returned
        update = returned.update if isinstance(returned, Command) else None
        messages = update.get("messages", []) if isinstance(update, Mapping) else []
        own = (item for item in messages if isinstance(item, ToolMessage) and item.tool_call_id == self.call.id)
        return next(own, None)

    def result(self, outcome: Outcome | None) -> ToolResult:
        """The message for the model."""
        if outcome is None:
            raise StateError("the call has no outcome")
        if not outcome.is_ok:
            return self._new_message(outcome, "error")
        if self.returned is None:
            return self._new_message(outcome, "success")
        if not outcome.is_edited and outcome.output == self.content:
            return self.returned
        message = self._message(self.returned)
        if message is None:
            # What was changed is not part of what the tool returned.
            return self._new_message(outcome, "success")
        # The artifact and other members have what the policies redacted in the content.
        fresh = message.model_copy(update={"content": _content(outcome), "artifact": None})
        if isinstance(self.returned, ToolMessage):
            return fresh
        messages = [fresh if item is message else item for item in self.returned.update["messages"]]  # type: ignore[index]
        return Command(
            graph=self.returned.graph,
            update={**self.returned.update, "messages": messages},  # type: ignore[dict-item]
            resume=self.returned.resume,
            goto=self.returned.goto,
        )

    def _new_message(self, outcome: Outcome, status: Any) -> ToolMessage:
        return ToolMessage(
            content=_content(outcome), name=self.call.tool, tool_call_id=self.call.id, status=status
        )


def _content(outcome: Outcome) -> Any:
    output = outcome.output
    if isinstance(output, list) and not outcome.is_edited and all(isinstance(item, (str, dict)) for item in output):
        return output
    return outcome.text or ""


def _ask(request: dict[str, Any]) -> dict[str, Any]:
    """Interrupts the graph, and returns the answer when it is resumed. What is not an answer interrupts it again."""
    shown = {key: value for key, value in request.items() if key != "type"}
    payload: dict[str, Any] = {"type": "callgate.approval", "request": shown}
    while True:
        answer = interrupt(payload)
        try:
            return read_answer(shown, answer)
        except AnswerError as error:
            payload = {**payload, "problem": str(error)}


def read_answer(request: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    """Reads the value of `Command(resume=…)`.

    Raises `AnswerError` for anything that is not clearly an approval or a denial.
    """
    if isinstance(answer, bool):
        return Answer(answer).to_dict(request)
    if isinstance(answer, Mapping):
        if "approvalId" in answer:
            return dict(answer)
        unknown = answer.keys() - {"approved", "reason", "edited_input", "cancel"}
        if isinstance(answer.get("approved"), bool) and not unknown:
            return Answer(**answer).to_dict(request)
    raise AnswerError("resume with `True`, `False` or `{'approved': …, 'reason': …, 'edited_input': …}`")
