"""The engine, in Rust."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

VERSION: Final[str]

def mark_forked() -> None: ...
def normalize_json(object: Any) -> Any:
    """The value as the engine sees it: what a tool would get.

    Tuples become lists. A number with a fraction or an exponent becomes a `float` if that is the same number, and a `Decimal` otherwise.
    """

class ToolCall:
    """One tool call. `input` are the arguments, `context` is what the host vouches for."""

    def __init__(
        self,
        tool: str,
        input: Any,
        *,
        id: str = "",
        server: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None: ...
    @staticmethod
    def for_method(
        method: str,
        params: Any,
        *,
        id: str = "",
        server: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> ToolCall:
        """A request by another MCP method than `tools/call`, such as `resources/read`."""

    @property
    def id(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def server(self) -> str | None: ...
    @property
    def input(self) -> Any:
        """The arguments, a new copy each time."""

    @property
    def context(self) -> Any: ...

class Decision:
    """What the policies decide on a call that is not executed."""

    @property
    def effect(self) -> str:
        """`run`, `answer`, `suspend`, `invalid`, `deny` or `halt`."""

    @property
    def is_permitted(self) -> bool: ...
    @property
    def needs_approval(self) -> bool: ...
    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def policy(self) -> str | None: ...
    @property
    def changed_input(self) -> Any:
        """The arguments, if a policy changed them."""

    @property
    def limits(self) -> list[str]:
        """The limits that the call must acquire before it runs."""

    @property
    def policies(self) -> list[dict[str, Any]]: ...
    def to_dict(self) -> dict[str, Any]: ...

class Outcome:
    """How a call ended, already redacted."""

    @property
    def id(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def kind(self) -> str:
        """`executed`, `cached`, `answered`, `invalid`, `denied`, `suspended`, `halted`, `aborted`, `failed`, `recovered` or
        `indeterminate`."""

    @property
    def is_ok(self) -> bool:
        """Whether the call has a result: its tool ran, or something answered for it."""

    @property
    def is_suspended(self) -> bool: ...
    @property
    def is_denied(self) -> bool: ...
    @property
    def is_edited(self) -> bool:
        """Whether an approver changed the arguments."""

    @property
    def input(self) -> Any: ...
    @property
    def output(self) -> Any: ...
    @property
    def error(self) -> str | None: ...
    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def policy(self) -> str | None: ...
    @property
    def text(self) -> str | None:
        """The text for the model: the result, or why there is none. `None` if the call is suspended."""

    @property
    def approval(self) -> dict[str, Any] | None:
        """The approval request of a suspended call."""

    @property
    def replayed(self) -> bool:
        """Whether the call had completed before, and nothing was run."""

    @property
    def retry_after_ms(self) -> int | None: ...
    @property
    def policies(self) -> list[dict[str, Any]]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...

class History:
    """The messages of a conversation in the form of a provider, with approval requests and answers.

    `dialect`: `openai-chat`, `openai-responses`, `anthropic`, `gemini` or `ai-sdk`.
    """

    def __init__(self, dialect: str, messages: Any) -> None: ...
    def extend(self, messages: Sequence[Any]) -> None:
        """Adds messages in the dialect of the history."""

    def messages(self) -> Any:
        """The messages to store, with approval requests, answers and the session's sealed state."""

    def for_provider(self) -> Any:
        """The messages to send to the provider."""

    def pending(self) -> list[dict[str, Any]]:
        """The approval requests without an answer."""

    def answer(self, answer: Mapping[str, Any]) -> None:
        """Adds an answer to the request that it names."""

class ToolRequest:
    @property
    def call(self) -> ToolCall: ...
    @property
    def is_abandoned(self) -> bool: ...

class StoreRequest:
    @property
    def method(self) -> Callable[..., Any]: ...
    @property
    def arguments(self) -> tuple[Any, ...]: ...

class Operation:
    def step(self) -> Any: ...
    def succeed(
        self, request: ToolRequest, output: Any, flags: tuple[bool, bool, bool] = (False, False, False)
    ) -> Any: ...
    def fail(self, request: ToolRequest, message: str, kind: str | None = None) -> Any: ...
    def store_succeed(self, request: StoreRequest, result: Any) -> Any: ...
    def store_fail(self, request: StoreRequest, message: str) -> Any: ...
    def timeout(self) -> float | None: ...
    def block(self) -> None: ...
    def notify(self, callback: Callable[[], object]) -> bool: ...
    def close(self) -> None: ...

class Engine:
    def __init__(self, paths: Sequence[str], text: str | None, options: Mapping[str, Any]) -> None: ...
    @property
    def revision(self) -> str: ...
    def decide(self, call: ToolCall | Mapping[str, Any]) -> Decision:
        """Decides a call that no session has. Executes, counts and records nothing."""

    def seal_answer(
        self, request: Mapping[str, Any], answer: Mapping[str, Any], by: tuple[str, list[str]]
    ) -> dict[str, Any]: ...
    def start_approvals(self) -> Operation: ...
    def start_answer(self, answer: Mapping[str, Any], by: tuple[str, list[str]] | None) -> Operation: ...

class Watcher:
    def __init__(self, engine: Engine, on_change: Callable[[str, str], object] | None, debounce: float) -> None: ...
    def close(self) -> None: ...

class Session:
    def __init__(self, engine: Engine, options: Mapping[str, Any]) -> None: ...
    def start(self, call: ToolCall | Mapping[str, Any]) -> Operation: ...
    def start_resume(
        self, call: ToolCall | Mapping[str, Any], request: Mapping[str, Any], answers: Sequence[Mapping[str, Any]]
    ) -> Operation: ...
    def start_or_find_request(self, call: ToolCall | Mapping[str, Any]) -> Operation: ...
    def start_find_request(self, approval_id: str) -> Operation: ...
    def start_round(self, history: History) -> Operation: ...
    def start_calls(self, calls: Sequence[ToolCall | Mapping[str, Any]]) -> Operation: ...
    def start_resume_history(self, history: History) -> Operation: ...
    def decide(self, call: ToolCall | Mapping[str, Any]) -> Decision: ...
    def abort(self, reason: str) -> None: ...
    def set_task(self, task: Any) -> None: ...
    def state(self) -> dict[str, Any]: ...
