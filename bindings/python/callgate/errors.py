"""The exceptions of the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._callgate import Outcome, ToolCall

__all__ = [
    "AnswerError",
    "ApprovalRequiredError",
    "CallDeniedError",
    "CallgateError",
    "Diagnostic",
    "InvalidValueError",
    "RulesError",
    "RunEndedError",
    "StateError",
    "StoreError",
    "ToolError",
    "ToolFailedError",
    "UnsupportedError",
]


class CallgateError(Exception):
    """The base of all exceptions of the package."""

    def __init__(self, message: str, _details: Any = None) -> None:
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem of a rules file."""

    code: str
    name: str
    severity: str
    message: str
    file: str | None
    line: int | None
    column: int | None
    help: str | None
    policy: str | None


class RulesError(CallgateError):
    """Rules can't be loaded. `str(error)` shows every problem with its lines and its fix."""

    diagnostics: list[Diagnostic]

    def __init__(self, message: str, diagnostics: list[dict[str, Any]]) -> None:
        super().__init__(message)
        self.diagnostics = [_diagnostic(document) for document in diagnostics]


def _diagnostic(document: dict[str, Any]) -> Diagnostic:
    members: dict[str, Any] = {name: document.get(name) for name in Diagnostic.__slots__}
    return Diagnostic(**members)


class RunEndedError(CallgateError):
    """A policy, a budget or a hook ended the run. `error.end` says how: `{"end": "aborted", "reason": …}` or another end."""

    def __init__(self, end: dict[str, Any]) -> None:
        super().__init__(f"the run has ended: {end.get('error') or end.get('reason') or 'finished'}")
        self.end = end


class StateError(CallgateError):
    """An engine, session or history can't be used in this way."""


class StoreError(CallgateError):
    """A state store or its keys can't be used."""


class InvalidValueError(CallgateError, ValueError):
    """A value is not JSON, or not the JSON that is expected. The message has its location."""


class AnswerError(CallgateError):
    """An approval answer is not accepted."""


class UnsupportedError(CallgateError):
    """A framework can't express what an adapter was asked for."""


class ToolError(CallgateError):
    """Raised by a tool to fail with a message for the model, and a kind that policies can match."""

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind


class _OutcomeError(CallgateError):
    outcome: Outcome

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.text or outcome.message)
        self.outcome = outcome


class CallDeniedError(_OutcomeError):
    """A guarded call did not run. `str(error)` is the message for the model."""


class ToolFailedError(_OutcomeError):
    """A guarded call failed. `str(error)` is the redacted message for the model; the tool's own exception is the cause."""


class ApprovalRequiredError(_OutcomeError):
    """A guarded call is pending until it is approved. `error.request` is the approval request, `error.call` the call."""

    def __init__(self, outcome: Outcome, call: ToolCall) -> None:
        super().__init__(outcome)
        self.call = call

    @property
    def request(self) -> dict[str, Any]:
        return self.outcome.approval or {}
