"""Answers to approval requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "approve", "deny"]

_ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class Answer:
    """What an approver answers."""

    approved: bool
    reason: str | None = None
    #: Replacement arguments, if the approver changed them.
    edited_input: Mapping[str, Any] | None = None
    #: A result in place of the tool's.
    output: Any = _ABSENT
    #: Whether to end the run.
    cancel: bool = False

    def to_dict(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to this request, as it is stored in histories."""
        answer: dict[str, Any] = {"approvalId": request["approvalId"], "approved": self.approved}
        if request.get("approvalToken") is not None:
            answer["approvalToken"] = request["approvalToken"]
        if self.reason is not None:
            answer["reason"] = self.reason
        if self.edited_input is not None:
            answer["editedInput"] = dict(self.edited_input)
        if self.output is not _ABSENT:
            answer["output"] = self.output
        if self.cancel:
            answer["cancel"] = True
        return answer


def approve(*, edited_input: Mapping[str, Any] | None = None, reason: str | None = None) -> Answer:
    """The call may run, with other arguments if `edited_input` is set."""
    return Answer(True, reason, edited_input)


def deny(reason: str | None = None) -> Answer:
    """The call must not run. The model receives the reason."""
    return Answer(False, reason)


def answers_of(
    request: Mapping[str, Any], answers: Answer | Mapping[str, Any] | Sequence[Answer | Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """One or several answers, as dicts."""
    several = [answers] if isinstance(answers, (Answer, Mapping)) else answers
    return [answer.to_dict(request) if isinstance(answer, Answer) else dict(answer) for answer in several]
