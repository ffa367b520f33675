"""Sessions: one run of an agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _callgate
from ._callgate import Decision, History, Operation, Outcome, ToolCall
from ._drive import Driver, Tool
from .approvals import Answer, answers_of
from .model import Chunk, ModelConfig, Usage, chunk_to_dict, chunks_of, config_of

if TYPE_CHECKING:
    from .engine import Engine

__all__ = ["IgnoredAnswer", "Round", "Session"]

Call = ToolCall | Mapping[str, Any]
Answers = Answer | Mapping[str, Any] | Sequence[Answer | Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class IgnoredAnswer:
    """An answer that does not count, and why."""

    approval_id: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Round:
    """The result of a round. The history has it already."""

    outcomes: list[Outcome]
    ignored: list[IgnoredAnswer]

    @property
    def pending(self) -> list[dict[str, Any]]:
        """The approval requests of the calls that are suspended."""
        return [outcome.approval for outcome in self.outcomes if outcome.approval is not None]

    @property
    def is_suspended(self) -> bool:
        """Whether the run stops here, for people to answer."""
        return bool(self.pending)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)


def _round(result: tuple[list[Outcome], list[tuple[str, str, str]]]) -> Round:
    outcomes, ignored = result
    return Round(outcomes, [IgnoredAnswer(*answer) for answer in ignored])


class Session:
    """One run of an agent: its calls, and what they leave behind for later ones.

    A session runs either single calls (`call`), which may come from several threads and tasks at once, or the rounds of a
    history (`run_round`, `resume`). Leaving its context manager ends it: no later call runs.
    """

    __slots__ = ("_hook_forms", "_native", "engine", "name", "propagate")

    def __init__(
        self,
        engine: Engine,
        *,
        name: str | None = None,
        context: Mapping[str, Any] | None = None,
        requester: str | None = None,
        tools: Sequence[Any] | None = None,
        task: Any = None,
        layers: Sequence[str] = (),
        records_calls: bool = False,
        has_unknown_past: bool = False,
        propagate: tuple[type[BaseException], ...] = (),
    ) -> None:
        self.engine = engine
        self.name = name
        #: Exceptions of tools that are raised instead of being a failure of the call.
        self.propagate = propagate
        self._hook_forms = engine.hook_forms
        self._native = _callgate.Session(
            engine,
            {
                "name": name,
                "context": context if context is None else dict(context),
                "requester": requester,
                "tools": tools,
                "task": task,
                "layers": list(layers),
                "records_calls": records_calls,
                "has_unknown_past": has_unknown_past,
            },
        )

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort("the session was closed")

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.abort("the session was closed")

    def _driver(
        self, operation: Operation, tool: Tool | None = None, propagate: tuple[type[BaseException], ...] = ()
    ) -> Driver:
        return Driver(operation, tool, (*self.propagate, *propagate), self._hook_forms)

    def decide(self, call: Call) -> Decision:
        """Decides a call in the present state of the session. Executes, counts and records nothing."""
        return self._native.decide(call)

    def call(self, call: Call, tool: Tool) -> Outcome:
        """Evaluates a call, runs `tool(call)` if the policies allow it, and returns the outcome."""
        outcome: Outcome = self._driver(self._native.start(call), tool).run()
        return outcome

    async def acall(self, call: Call, tool: Tool) -> Outcome:
        """As `call`, with a tool that may be asynchronous."""
        outcome: Outcome = await self._driver(self._native.start(call), tool).run_async()
        return outcome

    def call_or_request(self, call: Call, tool: Tool) -> Outcome | dict[str, Any]:
        """As `call`, but if the store has an approval request of the call, this is returned and nothing runs."""
        result: Outcome | dict[str, Any] = self.driver_or_request(call, tool).run()
        return result

    async def acall_or_request(self, call: Call, tool: Tool) -> Outcome | dict[str, Any]:
        """As `call_or_request`, with a tool that may be asynchronous."""
        result: Outcome | dict[str, Any] = await self.driver_or_request(call, tool).run_async()
        return result

    def driver(self, call: Call, tool: Tool, propagate: tuple[type[BaseException], ...] = ()) -> Driver:
        """The driver of a call, which also has the exception of its tool."""
        return self._driver(self._native.start(call), tool, propagate)

    def driver_or_request(self, call: Call, tool: Tool, propagate: tuple[type[BaseException], ...] = ()) -> Driver:
        """The driver of `call_or_request`."""
        return self._driver(self._native.start_or_find_request(call), tool, propagate)

    def resume_call(self, call: Call, request: Mapping[str, Any], answers: Answers, tool: Tool) -> Outcome:
        """Resumes a suspended call with its approval request and the answers to it."""
        outcome: Outcome = self.resume_driver(call, request, answers, tool).run()
        return outcome

    async def aresume_call(self, call: Call, request: Mapping[str, Any], answers: Answers, tool: Tool) -> Outcome:
        """As `resume_call`, with a tool that may be asynchronous."""
        outcome: Outcome = await self.resume_driver(call, request, answers, tool).run_async()
        return outcome

    def resume_driver(
        self,
        call: Call,
        request: Mapping[str, Any],
        answers: Answers,
        tool: Tool,
        propagate: tuple[type[BaseException], ...] = (),
    ) -> Driver:
        """The driver of a resumed call."""
        operation = self._native.start_resume(call, dict(request), answers_of(request, answers))
        return self._driver(operation, tool, propagate)

    def find_request(self, approval_id: str) -> dict[str, Any] | None:
        """The approval request of a suspended call in the store."""
        found = self._driver(self._native.start_find_request(approval_id)).run()
        return found[0] if found else None

    async def afind_request(self, approval_id: str) -> dict[str, Any] | None:
        """As `find_request`."""
        found = await self._driver(self._native.start_find_request(approval_id)).run_async()
        return found[0] if found else None

    def run_round(self, history: History, tool: Tool) -> Round:
        """Runs the calls of the model's last message, and adds their results and approval requests to the history."""
        return _round(self._driver(self._native.start_round(history), tool).run())

    async def arun_round(self, history: History, tool: Tool) -> Round:
        """As `run_round`, with tools that may be asynchronous."""
        return _round(await self._driver(self._native.start_round(history), tool).run_async())

    def run_calls(self, calls: Sequence[Call], tool: Tool) -> Round:
        """Runs the calls of one round that is not part of a history. All are decided before any runs; if one halts, none runs."""
        return _round(self._driver(self._native.start_calls(list(calls)), tool).run())

    async def arun_calls(self, calls: Sequence[Call], tool: Tool) -> Round:
        """As `run_calls`, with tools that may be asynchronous."""
        return _round(await self._driver(self._native.start_calls(list(calls)), tool).run_async())

    def resume(self, history: History, tool: Tool) -> Round:
        """Resumes from the history, before the model is called: runs the calls that were approved in the meantime."""
        return _round(self._driver(self._native.start_resume_history(history), tool).run())

    async def aresume(self, history: History, tool: Tool) -> Round:
        """As `resume`, with tools that may be asynchronous."""
        return _round(await self._driver(self._native.start_resume_history(history), tool).run_async())

    def begin(self, config: ModelConfig | None = None, history: History | None = None) -> ModelConfig:
        """Begins a run, and returns its configuration as policies leave it. Raises `RunEndedError` if they end it."""
        return config_of(self._native.begin(_config(config), history))

    def before_model(self, config: ModelConfig | None = None, history: History | None = None) -> ModelConfig:
        """The configuration of the next model call. Raises `RunEndedError` if a policy or a budget ends the run."""
        return config_of(self._driver(self._native.start_before_model(_config(config), history)).run())

    async def abefore_model(self, config: ModelConfig | None = None, history: History | None = None) -> ModelConfig:
        """As `before_model`, with a store of your own that may be asynchronous."""
        operation = self._native.start_before_model(_config(config), history)
        return config_of(await self._driver(operation).run_async())

    def chunk(self, chunk: Chunk) -> list[dict[str, Any]]:
        """Passes a chunk of the model's stream through the policies, and returns the chunks to pass on now."""
        return chunks_of(self._native.chunk(chunk_to_dict(chunk)))

    def rest_of_stream(self) -> list[dict[str, Any]]:
        """The chunks that policies still hold back, after a stream that ended without saying so."""
        return chunks_of(self._native.rest_of_stream())

    def report_usage(self, usage: Usage) -> None:
        """Counts the use of a model, if no chunk has it."""
        self._native.report_usage(usage.to_dict())

    def end(self, end: Mapping[str, Any]) -> list[str]:
        """Ends the run. `end`: `{"end": "finished", "reason": …, "content": …}`, `{"end": "aborted", "reason": …}` or
        `{"end": "failed", "error": …}`. Returns what failed in hooks that were notified of it."""
        failures: list[str] = self._driver(self._native.start_end(dict(end))).run()
        return failures

    async def aend(self, end: Mapping[str, Any]) -> list[str]:
        """As `end`, with stores of your own that may be asynchronous."""
        failures: list[str] = await self._driver(self._native.start_end(dict(end))).run_async()
        return failures

    def abort(self, reason: str) -> None:
        """Ends the run: no later call runs."""
        self._native.abort(reason)

    def set_task(self, task: Any) -> None:
        """Sets what the user asked for, which policies read as `$.task`: a string, or a list of strings or of `{text, at}`."""
        self._native.set_task(task)

    def state(self) -> dict[str, Any]:
        """What the calls of the session have left: labels, facts, counts."""
        return self._native.state()


def _config(config: ModelConfig | None) -> dict[str, Any]:
    return (config or ModelConfig()).to_dict()
