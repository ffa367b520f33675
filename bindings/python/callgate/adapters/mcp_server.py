"""Servers of the MCP Python SDK (`MCPServer` and the low-level `Server`): every tool call that reaches a server is evaluated."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.request_state import authenticated_principal
from mcp_types import CallToolResult, TextContent
from mcp_types.methods import is_input_required

from .._callgate import Outcome, ToolCall
from .._drive import ToolResponse
from ..engine import Engine
from ..errors import ToolError
from ..session import Session
from ._results import to_json
from ._sessions import Sessions

__all__ = ["CallgateMiddleware"]

RequestContext = ServerRequestContext[Any, Any]


class CallgateMiddleware:
    """Evaluates every tool call of a server against the policies of an engine: `MCPServer(…, middleware=[CallgateMiddleware(engine)])`.

    `caller`: a function of the request context that returns the name of the caller; by default the verified principal of the request,
    or else the connection, which over HTTP may be as short as one request. `context`: what the host vouches for, or a function that returns it. `server`: the name of the server in
    policies. `applied_elsewhere`: kinds of policies that act on a model, which a server does not see; rules with others are refused.

    A call that needs approval returns an error result: the caller makes the same call again once it was approved, with
    `engine.answer(…)` or `callgate approvals approve`. It then runs once.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        caller: Callable[[RequestContext], str] | None = None,
        context: Mapping[str, Any] | Callable[[RequestContext], Mapping[str, Any] | None] | None = None,
        server: str | None = None,
        applied_elsewhere: Sequence[str] = (),
    ) -> None:
        self._engine = engine
        self._caller = caller or self._default_caller
        self._connections: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._context = context
        self._server = server
        self._sessions = Sessions(engine, self._open_session, applied_elsewhere)

    async def __call__(self, ctx: RequestContext, call_next: CallNext) -> HandlerResult:
        if ctx.method != "tools/call" or ctx.request_id is None:
            return await call_next(ctx)
        params = dict(ctx.params or {})
        # What has another form is not called: the SDK reports it, or a policy denies it.
        arguments = params.get("arguments")
        found = self._context(ctx) if callable(self._context) else self._context
        call = ToolCall(
            str(params.get("name", "")),
            {} if arguments is None else arguments,
            server=self._server,
            context=None if found is None else dict(found),
        )
        returned: list[tuple[Any, Any]] = []

        async def run(final: ToolCall) -> Any:
            is_unchanged = final.input == ({} if arguments is None else arguments)
            changed = ctx if is_unchanged else replace(ctx, params={**params, "arguments": final.input})
            result = await call_next(changed)
            document = _document(result)
            returned.append((result, document))
            if document.get("isError"):
                raise ToolError(_text(document))
            return ToolResponse(document, interim=is_input_required(document))

        caller = self._caller(ctx)
        session = self._sessions.get(caller, caller)
        return _result(await session.acall(call, run), returned)

    def _default_caller(self, ctx: RequestContext) -> str:
        principal = authenticated_principal(ctx)
        if principal is not None:
            return f"principal:{principal}"
        return self._connections.setdefault(ctx.session, f"connection:{uuid.uuid4()}")

    def _open_session(self, caller: str, *, has_unknown_past: bool) -> Session:
        return self._engine.session(f"mcp:{caller}", requester=caller, has_unknown_past=has_unknown_past)


def _document(result: Any) -> dict[str, Any]:
    if hasattr(result, "model_dump"):
        result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    document = to_json(result)
    return document if isinstance(document, dict) else {"content": []}


def _text(document: Mapping[str, Any]) -> str:
    texts = [block["text"] for block in document.get("content", []) if block.get("type") == "text"]
    return "\n".join(texts) or "the tool failed"


def _result(outcome: Outcome, returned: list[tuple[Any, Any]]) -> HandlerResult:
    if outcome.is_suspended:
        return _message(
            f"Not run: pending approval. {outcome.message}\nOnce it is approved, make the same call with the same arguments "
            "again; until then it stays pending.",
            is_error=True,
        )
    if not outcome.is_ok:
        return _message(outcome.text or outcome.message, is_error=True)
    output = outcome.output
    if returned and not outcome.is_edited and output == returned[-1][1]:
        unchanged: HandlerResult = returned[-1][0]
        return unchanged
    if isinstance(output, dict) and isinstance(output.get("content"), list) and not outcome.is_edited:
        return output
    return _message(outcome.text or "", is_error=False)


def _message(text: str, *, is_error: bool) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)
