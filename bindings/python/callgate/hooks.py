"""Hooks: code of the host that runs beside the policies. A hook can restrict, edit or answer a call, and lift no policy.

A hook is an object with one or more of the methods `before(call)`, `after(outcome)` and `on_error(call, message)`, and optionally an
`id`. `before` returns `None` or one of the actions below; the strictest of several hooks applies. A hook that raises denies the call.
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
