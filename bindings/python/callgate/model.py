"""The model around the calls of a session: its configuration, its stream and its use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .errors import RunEndedError

__all__ = ["ModelConfig", "Usage"]

#: A piece of a model's streamed response: `{"type": "text" | "reasoning", "id": …, "delta": …}`, `{"type": "tool_input",
#: "call_id": …, "delta": …}`, `{"type": "finished", "reason": …, "usage": Usage(…)}` or `{"type": "other", "value": …}`.
Chunk = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The configuration of a model call. `tools` are descriptors in the form of MCP."""

    system_prompts: list[str] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    #: Options that only the provider interprets.
    provider_options: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Usage:
    """The use of a model. `cost` is in the currency of the budgets."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int | None = None
    cost: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The members as the engine has them."""
        return {_USAGE_MEMBERS[name]: value for name, value in asdict(self).items()}


_USAGE_MEMBERS = {
    "prompt_tokens": "promptTokens",
    "completion_tokens": "completionTokens",
    "total_tokens": "totalTokens",
    "cost": "cost",
}


def chunk_to_dict(chunk: Chunk) -> dict[str, Any]:
    usage = chunk.get("usage")
    return {**chunk, "usage": usage.to_dict()} if isinstance(usage, Usage) else dict(chunk)


def _chunk(document: dict[str, Any]) -> dict[str, Any]:
    usage = document.get("usage")
    if document["type"] != "finished" or usage is None:
        return document
    return {**document, "usage": Usage(**{name: usage[member] for name, member in _USAGE_MEMBERS.items()})}


def _ended(result: Mapping[str, Any]) -> None:
    if "end" in result:
        raise RunEndedError(result["end"])


def config_of(result: Mapping[str, Any]) -> ModelConfig:
    _ended(result)
    return ModelConfig(**result["config"])


def chunks_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    _ended(result)
    return [_chunk(chunk) for chunk in result["chunks"]]
