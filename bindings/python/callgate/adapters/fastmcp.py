"""FastMCP: every tool call that reaches a server is evaluated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mcp.types
from fastmcp.server.dependencies import get_access_token
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult

from .._callgate import Outcome, ToolCall
from ..engine import Engine
from ..errors import ToolError
from ..session import Session
from ._results import to_json
from ._sessions import Sessions

__all__ = ["CallgateMiddleware"]

CallContext = MiddlewareContext[mcp.types.CallToolRequestParams]


class CallgateMiddleware(Middleware):
    """Evaluates every tool call of a FastMCP server against the policies of an engine.

    `caller`: a function of the middleware context that returns the name of the caller; by default the client and subject of
    the verified access token, or else the MCP session. `context`: what the host vouches for, or a function that returns it. `server`: the name of the server
    in policies. `applied_elsewhere`: kinds of policies that act on a model, which a server does not see; rules with others are refused.

    A call that needs approval returns an error result: the caller makes the same call again once it was approved, with
    `engine.answer(…)` or `callgate approvals approve`. It then runs once.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        caller: Callable[[CallContext], str] | None = None,
        context: Mapping[str, Any] | Callable[[CallContext], Mapping[str, Any] | None] | None = None,
        server: str | None = None,
        applied_elsewhere: Sequence[str] = (),
    ) -> None:
        self._engine = engine
        self._caller = caller or _default_caller
        self._context = context
        self._server = server
        self._sessions = Sessions(engine, self._open_session, applied_elsewhere)

    async def on_call_tool(
        self, context: CallContext, call_next: CallNext[mcp.types.CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        message = context.message
        arguments = dict(message.arguments or {})
        call = ToolCall(message.name, arguments, server=self._server, context=self._call_context(context))
        returned: list[ToolResult] = []

        async def run(final: ToolCall) -> Any:
            changed = message if final.input == arguments else message.model_copy(update={"arguments": final.input})
            returned.append(await call_next(context.copy(message=changed)))
            result = returned[-1]
            if result.is_error:
                raise ToolError(_text(result))
            return _document(result)

        caller = self._caller(context)
        session = self._sessions.get(caller, caller)
        return _result(await session.acall(call, run), returned)

    def _call_context(self, context: CallContext) -> dict[str, Any] | None:
        found = self._context(context) if callable(self._context) else self._context
        return None if found is None else dict(found)

    def _open_session(self, caller: str, *, has_unknown_past: bool) -> Session:
        return self._engine.session(f"fastmcp:{caller}", requester=caller, has_unknown_past=has_unknown_past)


def _default_caller(context: CallContext) -> str:
    token = get_access_token()
    if token is not None:
        # Users of one client are different callers.
        claims = token.claims or {}
        return "client:" + json.dumps([token.client_id, claims.get("iss"), claims.get("sub")])
    fastmcp_context = context.fastmcp_context
    return f"session:{fastmcp_context.session_id}" if fastmcp_context is not None else "session"


def _document(result: ToolResult) -> dict[str, Any]:
    """The result as MCP has it, which policies read."""
    document: dict[str, Any] = {"content": to_json(result.content)}
    if result.structured_content is not None:
        document["structuredContent"] = to_json(result.structured_content)
    return document


def _text(result: ToolResult) -> str:
    texts = [block.text for block in result.content if isinstance(block, mcp.types.TextContent)]
    return "\n".join(texts) or "the tool failed"


def _result(outcome: Outcome, returned: list[ToolResult]) -> ToolResult:
    if outcome.is_suspended:
        return ToolResult(
            content=f"Not run: pending approval. {outcome.message}\nOnce it is approved, make the same call with the same arguments "
            "again; until then it stays pending.",
            is_error=True,
        )
    if not outcome.is_ok:
        return ToolResult(content=outcome.text or outcome.message, is_error=True)
    output = outcome.output
    if returned and not outcome.is_edited and output == _document(returned[-1]):
        return returned[-1]
    if isinstance(output, dict) and isinstance(output.get("content"), list):
        content = mcp.types.CallToolResult.model_validate({"content": output["content"]}).content
        return ToolResult(content=content, structured_content=output.get("structuredContent"))
    return ToolResult(content=outcome.text or "")
