"""Policies that an adapter for calls can't apply."""

from __future__ import annotations

from collections.abc import Sequence

from .engine import Engine
from .errors import UnsupportedError

__all__ = ["refuse_model_policies"]

#: Kinds of policies that act on the model and not on its calls: an adapter that sees only calls can't apply them.
MODEL_KINDS = frozenset({"budget", "model", "stream"})


def refuse_model_policies(engine: Engine, applied_elsewhere: Sequence[str]) -> None:
    """Raises `UnsupportedError` for rules of which an adapter would apply only a part."""
    found = sorted((MODEL_KINDS & engine.policy_kinds) - set(applied_elsewhere))
    if found:
        kinds = ", ".join(f"`{kind}`" for kind in found)
        raise UnsupportedError(
            f"the rules have policies of the kind {kinds}, which act on the model and not on tool calls; this adapter sees only tool "
            "calls. Apply them with `session.begin`, `before_model` and `chunk`, and list them in `applied_elsewhere`, or remove them"
        )
