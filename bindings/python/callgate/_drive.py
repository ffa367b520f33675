"""Drives operations of the engine: runs tools, waits for timers and wakes, in a thread or in an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from ._callgate import Operation, StoreRequest, ToolCall, ToolRequest
from .errors import ToolError

Tool = Callable[[ToolCall], Any]

_log = logging.getLogger("callgate")


@dataclass(frozen=True, slots=True)
class ToolResponse:
    """A result of a tool with more than its output; tools may return it in place of the output."""

    output: Any
    #: No tool was called: the output is a placeholder without meaning.
    dry: bool = False
    #: The call is not complete: the output asks for more input, or says where the result will be. It is never cached.
    interim: bool = False
    #: The output is complete only for this call, because parts of it are elsewhere. It is never cached.
    single_use: bool = False


class Driver:
    """The tool of one operation, and the exceptions that are not errors of the tool."""

    __slots__ = ("operation", "tool", "propagate", "error")

    def __init__(self, operation: Operation, tool: Tool | None, propagate: tuple[type[BaseException], ...]) -> None:
        self.operation = operation
        self.tool = tool
        self.propagate = propagate
        self.error: Exception | None = None

    def run(self) -> Any:
        """Runs the operation in this thread."""
        operation = self.operation
        try:
            event = operation.step()
            while True:
                if type(event) is ToolRequest:
                    event = self._run_tool(event)
                elif type(event) is StoreRequest:
                    event = self._run_store(event)
                elif event is None:
                    operation.block()
                    event = operation.step()
                else:
                    return event
        except BaseException:
            operation.close()
            raise

    async def run_async(self) -> Any:
        """Runs the operation in this task."""
        operation = self.operation
        try:
            event = operation.step()
            while True:
                if type(event) is ToolRequest:
                    event = await self._await_tool(event)
                elif type(event) is StoreRequest:
                    event = await self._await_store(event)
                elif event is None:
                    await _wait(operation)
                    event = operation.step()
                else:
                    return event
        except BaseException:
            operation.close()
            raise

    def _run_tool(self, request: ToolRequest) -> Any:
        timeout = self.operation.timeout()
        try:
            if timeout is None:
                output = self._call(request)
            else:
                output = _run_in_thread(lambda: self._call(request), timeout)
        except _TimedOut:
            return self._expire(request)
        except self.propagate:
            raise
        except Exception as error:
            return self._fail(request, error)
        if _is_awaitable(output):
            if inspect.iscoroutine(output):
                output.close()
            raise TypeError("the tool is asynchronous; use the asynchronous form: `acall`, `arun_round` or `aresume`")
        return self._succeed(request, output)

    async def _await_tool(self, request: ToolRequest) -> Any:
        timeout = self.operation.timeout()
        try:
            if timeout is None:
                output = self._call(request)
                if _is_awaitable(output):
                    output = await output
            else:
                output = await _run_until(self, request, timeout)
        except _TimedOut:
            return self._expire(request)
        except self.propagate:
            raise
        except Exception as error:
            return self._fail(request, error)
        return self._succeed(request, output)

    def _succeed(self, request: ToolRequest, output: Any) -> Any:
        if type(output) is ToolResponse:
            flags = (output.dry, output.interim, output.single_use)
            return self.operation.succeed(request, output.output, flags)
        return self.operation.succeed(request, output)

    def _call(self, request: ToolRequest) -> Any:
        if self.tool is None:
            raise ToolError("no tool is available here")
        return self.tool(request.call)

    def _fail(self, request: ToolRequest, error: Exception) -> Any:
        self.error = error
        if isinstance(error, ToolError):
            return self.operation.fail(request, error.message, error.kind)
        return self.operation.fail(request, _message(error), type(error).__name__)

    def _run_store(self, request: StoreRequest) -> Any:
        try:
            result = request.method(*request.arguments)
        except Exception as error:
            return self._store_fail(request, error)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise TypeError("the store is asynchronous; use the asynchronous forms, such as `acall` and `aresume`")
        return self.operation.store_succeed(request, result)

    async def _await_store(self, request: StoreRequest) -> Any:
        import anyio

        result: Any = None
        finished = False
        with anyio.move_on_after(self.operation.timeout()):
            try:
                result = request.method(*request.arguments)
                if inspect.isawaitable(result):
                    result = await result
            except Exception as error:
                return self._store_fail(request, error)
            finished = True
        if finished:
            return self.operation.store_succeed(request, result)
        return self.operation.store_fail(request, "it did not answer in time")

    def _store_fail(self, request: StoreRequest, error: Exception) -> Any:
        # The message may have credentials, which neither a model nor a log of decisions may see.
        _log.error("a store failed, and counts as unavailable", exc_info=error)
        return self.operation.store_fail(request, type(error).__name__)

    def _expire(self, request: ToolRequest) -> Any:
        event = self.operation.step()
        if event is None and not request.is_abandoned:
            return self.operation.fail(request, "the tool did not return in time", "timeout")
        return event


#: What most tools return: nothing to await, which `inspect` takes longer to see.
_VALUES = frozenset({str, dict, list, int, float, bool, tuple, type(None), ToolResponse})


def _is_awaitable(output: Any) -> bool:
    return type(output) not in _VALUES and inspect.isawaitable(output)


def _message(error: Exception) -> str:
    """The message of an error, or else its class."""
    kind = type(error).__name__
    try:
        message = str(error) or kind
        message.encode()
    except Exception:
        return kind
    return message


class _TimedOut(Exception):
    """The deadline of a tool is over."""


def _run_in_thread(run: Callable[[], Any], timeout: float) -> Any:
    """Runs a function in a thread of its own, which is left behind if the time is over."""
    result: list[Callable[[], Any]] = []
    context = contextvars.copy_context()

    def target() -> None:
        try:
            output = context.run(run)
        except BaseException as error:
            raised = error
            result.append(lambda: _raise(raised))
        else:
            result.append(lambda: output)

    thread = threading.Thread(target=target, name="callgate-tool", daemon=True)
    thread.start()
    thread.join(timeout)
    if not result:
        raise _TimedOut
    return result[0]()


def _raise(error: BaseException) -> Any:
    raise error


async def _run_until(driver: Driver, request: ToolRequest, timeout: float) -> Any:
    """Runs a tool, and cancels it if the time is over. A function that blocks runs in a thread, which is left behind."""
    import anyio
    import anyio.to_thread

    finished = False
    output: Any = None
    with anyio.move_on_after(timeout) as scope:
        if _returns_awaitable(driver.tool):
            output = driver._call(request)
        else:
            output = await anyio.to_thread.run_sync(driver._call, request, abandon_on_cancel=True)
        if inspect.isawaitable(output):
            output = await output
        finished = True
    if not finished and scope.cancelled_caught:
        raise _TimedOut
    return output


def _returns_awaitable(tool: Any) -> bool:
    return inspect.iscoroutinefunction(tool) or inspect.iscoroutinefunction(getattr(tool, "__call__", None))


async def _wait(operation: Operation) -> None:
    """Waits until the operation can run on: in asyncio, or else in trio."""
    timeout = operation.timeout()
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        await _wait_in_trio(operation, timeout)
        return
    woken: asyncio.Event = asyncio.Event()
    if not operation.notify(lambda: loop.call_soon_threadsafe(woken.set)):
        return
    try:
        async with asyncio.timeout(timeout):
            await woken.wait()
    except TimeoutError:
        pass


async def _wait_in_trio(operation: Operation, timeout: float | None) -> None:
    import trio

    token = trio.lowlevel.current_trio_token()
    woken = trio.Event()
    if not operation.notify(lambda: token.run_sync_soon(woken.set)):
        return
    with trio.move_on_after(float("inf") if timeout is None else timeout):
        await woken.wait()


def run(operation: Operation, tool: Tool | None = None, propagate: tuple[type[BaseException], ...] = ()) -> Any:
    return Driver(operation, tool, propagate).run()


def run_async(
    operation: Operation, tool: Tool | None = None, propagate: tuple[type[BaseException], ...] = ()
) -> Coroutine[Any, Any, Any]:
    return Driver(operation, tool, propagate).run_async()
