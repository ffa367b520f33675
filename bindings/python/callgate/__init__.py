"""Callgate: a policy engine between AI agents and their tools."""

import os as _os

from ._callgate import VERSION as __version__
from ._callgate import Decision, History, Outcome, ToolCall, mark_forked, normalize_json
from ._drive import ToolResponse
from .approvals import Answer, approve, deny
from .engine import Engine, Watcher
from .errors import (
    AnswerError,
    ApprovalRequiredError,
    CallDeniedError,
    CallgateError,
    Diagnostic,
    InvalidValueError,
    RulesError,
    RunEndedError,
    StateError,
    StoreError,
    ToolError,
    ToolFailedError,
    UnsupportedError,
)
from .guarding import guard
from .model import ModelConfig, Usage
from .session import IgnoredAnswer, Round, Session

__all__ = [
    "Answer",
    "AnswerError",
    "ApprovalRequiredError",
    "CallDeniedError",
    "CallgateError",
    "Decision",
    "Diagnostic",
    "Engine",
    "History",
    "IgnoredAnswer",
    "InvalidValueError",
    "ModelConfig",
    "Outcome",
    "Round",
    "RulesError",
    "RunEndedError",
    "Session",
    "StateError",
    "StoreError",
    "ToolCall",
    "ToolError",
    "ToolFailedError",
    "ToolResponse",
    "UnsupportedError",
    "Usage",
    "Watcher",
    "__version__",
    "approve",
    "deny",
    "guard",
    "normalize_json",
]

if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=mark_forked)
