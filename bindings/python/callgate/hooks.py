"""Hooks: code of the host that runs beside the policies. A hook can restrict, edit or answer a call, and lift no policy.

A hook is an object with one or more of the methods `before(call)`, `around(call, next)`, `on_error(call, message)` and `after(outcome)`,
and optionally an `id`. `before` returns `None` or one of the actions below; the strictest of several hooks applies. A hook that
raises denies the call.

`around` wraps the execution and returns the result. `next()` runs the inner hooks and the tool, and returns their result or raises their
`ToolError`; `next(input)` runs the tool with other arguments, which pass the policies again. What `around` raises is the error of the call.

Methods may be asynchronous: such hooks are for the asynchronous forms of calls, where `around` must be, too, and awaits `next`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

__all__ = ["Annotate", "Block", "Edit", "Halt", "RequireApproval", "Skip"]


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the arguments. Policies evaluate the new ones."""

    input: Mapping[str, Any]
    action: ClassVar[str] = "edit"


@dataclass(frozen=True, slots=True)
class Annotate:
    """Adds members to `metadata` of the call's context."""

    metadata: Mapping[str, Any]
    action: ClassVar[str] = "annotate"


@dataclass(frozen=True, slots=True)
class Skip:
    """Returns this result; the tool does not run. From `on_error`: replaces the error."""

    output: Any
    action: ClassVar[str] = "skip"


@dataclass(frozen=True, slots=True)
class RequireApproval:
    """Requires human approval of the final arguments."""

    message: str
    approvers: list[str] = field(default_factory=list)
    quorum: int = 1
    expires_seconds: float | None = None
    action: ClassVar[str] = "require_approval"


@dataclass(frozen=True, slots=True)
class Block:
    """Denies the call; the model receives the message. From `on_error`: replaces the message."""

    message: str
    action: ClassVar[str] = "block"


@dataclass(frozen=True, slots=True)
class Halt:
    """Denies the call and ends the run."""

    message: str
    action: ClassVar[str] = "halt"
