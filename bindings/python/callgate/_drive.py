"""Drives operations of the engine: runs tools, hooks and methods of stores, and waits, in a thread or in an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from ._callgate import AroundTurn, MethodRequest, Operation, ToolCall, ToolRequest
from .errors import InvalidValueError, ToolError

Tool = Callable[[ToolCall], Any]
#: The hook because of which calls can't be synchronous, and the one because of which they can't be asynchronous.
HookForms = tuple[str | None, str | None]

_USE_ASYNCHRONOUS = "use the asynchronous forms, such as `acall` and `aresume`"

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

    __slots__ = ("_done", "_events", "_turns", "error", "hook_forms", "operation", "propagate", "tool")

    def __init__(
        self,
        operation: Operation,
        tool: Tool | None,
        propagate: tuple[type[BaseException], ...],
        hook_forms: HookForms = (None, None),
    ) -> None:
        self.operation = operation
        self.tool = tool
        self.propagate = propagate
        self.hook_forms = hook_forms
        self.error: Exception | None = None
        #: What the operation asked for, and nobody has done yet.
        self._events: deque[Any] = deque()
        #: The result of the operation, once it has one.
        self._done: list[Any] = []
        #: The turns of `around` hooks that wait for the result of `next`.
        self._turns: dict[int, AroundTurn] = {}

    def run(self) -> Any:
        """Runs the operation in this thread."""
        try:
            if self.hook_forms[0] is not None:
                raise TypeError(f"the hook `{self.hook_forms[0]}` is asynchronous; {_USE_ASYNCHRONOUS}")
            while not self._done:
                self._proceed(self._next_event())
        except BaseException:
            self.operation.close()
            raise
        return self._done[0]

    async def run_async(self) -> Any:
        """Runs the operation in this task."""
        try:
            if self.hook_forms[1] is not None:
                raise TypeError(
                    f"`around` of the hook `{self.hook_forms[1]}` is synchronous, and would block the event loop; make it "
                    "`async def`, or use the synchronous forms"
                )
            while not self._done:
                await self._proceed_async(self._next_event())
        except BaseException:
            self.operation.close()
            raise
        return self._done[0]

    def _next_event(self) -> Any:
        return self._events.popleft() if self._events else self.operation.step()

    def _proceed(self, event: Any) -> None:
        """Does what the operation asks for."""
        kind = type(event)
        if kind is ToolRequest:
            self._events.append(self._run_tool(event))
        elif kind is MethodRequest:
            self._events.append(self._run_method(event))
        elif kind is AroundTurn:
            self._run_around(event)
        elif event is not None:
            self._done.append(event)
        elif not self._events:
            self.operation.block()

    async def _proceed_async(self, event: Any) -> None:
        kind = type(event)
        if kind is ToolRequest:
            self._events.append(await self._await_tool(event))
        elif kind is MethodRequest:
            self._events.append(await self._await_method(event))
        elif kind is AroundTurn:
            await self._await_around(event)
        elif event is not None:
            self._done.append(event)
        elif not self._events:
            await _wait(self.operation)

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
        return self.operation.fail(request, *_error_of(error))

    def _run_method(self, request: MethodRequest) -> Any:
        try:
            result = request.method(*request.arguments)
        except Exception as error:
            return self._method_failed(request, error)
        if _is_awaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise TypeError(f"{request.owner} is asynchronous; {_USE_ASYNCHRONOUS}")
        return self.operation.method_succeed(request, result)

    async def _await_method(self, request: MethodRequest) -> Any:
        import anyio

        result: Any = None
        finished = False
        with anyio.move_on_after(self.operation.timeout() if request.has_deadline else None):
            try:
                result = request.method(*request.arguments)
                if _is_awaitable(result):
                    result = await result
            except Exception as error:
                return self._method_failed(request, error)
            finished = True
        if finished:
            return self.operation.method_succeed(request, result)
        return self.operation.method_fail(request, "it did not answer in time")

    def _method_failed(self, request: MethodRequest, error: Exception) -> Any:
        # The message may have credentials, which neither a model nor a log of decisions may see.
        _log.error("%s failed", request.owner, exc_info=error)
        return self.operation.method_fail(request, type(error).__name__)

    def _run_around(self, turn: AroundTurn) -> None:
        if turn.is_next:
            self._turns[turn.id] = turn
            return
        around = _Around(self, turn)

        def proceed(*changed: Any) -> Any:
            around.start_next(changed)
            while not around.has_result():
                self._proceed(self._next_event())
            return around.take_result()

        with around:
            around.output = turn.method(turn.call, proceed)

    async def _await_around(self, turn: AroundTurn) -> None:
        if turn.is_next:
            self._turns[turn.id] = turn
            return
        around = _Around(self, turn)

        async def proceed(*changed: Any) -> Any:
            around.start_next(changed)
            while not around.has_result():
                await self._proceed_async(self._next_event())
            return around.take_result()

        with around:
            around.output = await turn.method(turn.call, proceed)

    def _expire(self, request: ToolRequest) -> Any:
        event = self.operation.step()
        if event is None and not request.is_abandoned:
            return self.operation.fail(request, "the tool did not return in time", "timeout")
        return event


class _Abandoned(BaseException):
    """The operation has a result, and does not wait for this hook any more."""


class _Around:
    """One run of an `around` hook."""

    __slots__ = ("driver", "id", "output", "turn")

    def __init__(self, driver: Driver, turn: AroundTurn) -> None:
        self.driver = driver
        self.id = turn.id
        #: What the hook returned.
        self.output: Any = None
        #: The hook's turn; `None` while the layers inside it run.
        self.turn: AroundTurn | None = turn

    def _end_turn(self) -> AroundTurn:
        turn, self.turn = self.turn, None
        if turn is None:
            raise RuntimeError("`next` of the hook is running already")
        return turn

    def start_next(self, changed: tuple[Any, ...]) -> None:
        """`next` was called, with nothing, with other arguments, or with these and options of the tool."""
        turn = self._end_turn()
        try:
            self.driver._events.append(self.driver.operation.around_next(turn, *changed))
        except InvalidValueError:
            self.turn = turn
            raise

    def has_result(self) -> bool:
        """Whether the layers inside the hook have ended."""
        self.turn = self.driver._turns.pop(self.id, None)
        if self.turn is None and self.driver._done:
            raise _Abandoned
        return self.turn is not None

    def take_result(self) -> Any:
        turn = self.turn
        error = turn.error if turn is not None else None
        if error is not None:
            raise ToolError(*error)
        return turn.output if turn is not None else None

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        """Reports how the hook ended, unless its exception is not the error of the call."""
        driver = self.driver
        if error is not None and (isinstance(error, driver.propagate) or not isinstance(error, (Exception, _Abandoned))):
            return False
        if driver._done:
            return True
        turn = self._end_turn()
        if error is None:
            driver._events.append(driver.operation.around_succeed(turn, self.output))
        elif isinstance(error, Exception):
            driver._events.append(driver.operation.around_fail(turn, *_error_of(error)))
        return True


#: What most tools return: nothing to await, which `inspect` takes longer to see.
_VALUES = frozenset({str, dict, list, int, float, bool, tuple, type(None), ToolResponse})


def _is_awaitable(output: Any) -> bool:
    return type(output) not in _VALUES and inspect.isawaitable(output)


def _error_of(error: Exception) -> tuple[str, str | None]:
    """The message and the kind of the error of a call."""
    if isinstance(error, ToolError):
        return error.message, error.kind
    return _message(error), type(error).__name__


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
