"""The engine: the rules in effect."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from . import _callgate
from ._drive import run, run_async
from .approvals import Answer
from .session import Session
from .stores import CacheStore, LimitStore, RecordStore

__all__ = ["Engine", "Watcher"]

Path = str | os.PathLike[str]
Observer = Callable[[dict[str, Any]], object]


class Watcher:
    """Reloads the rules of an engine when their files change, until it is closed."""

    __slots__ = ("_native",)

    def __init__(self, native: _callgate.Watcher) -> None:
        self._native = native

    def close(self) -> None:
        """Stops watching. Nothing changes afterwards."""
        self._native.close()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Engine(_callgate.Engine):
    """The rules in effect with everything that evaluates calls against them: create one for each process, after a fork."""

    __slots__ = ()

    @classmethod
    def load(cls, *paths: Path, **options: Any) -> Self:
        """Loads the rules files at and below these paths. Options: see `from_text`."""
        if not paths:
            raise TypeError("`Engine.load` needs at least one path")
        return cls([os.fspath(path) for path in paths], None, _options(**options))

    @classmethod
    def from_text(cls, text: str, **options: Any) -> Self:
        """Compiles one rules file given as a string.

        `state`: a state store, `file:PATH` for the processes of this machine, `postgres://…` or `redis://…` for several machines; in
        memory by default. `record_store`, `limit_store`, `cache_store`: stores of your own, see `callgate.stores`; they need `keys`.
        `keys`: hexadecimal keys that seal approval requests; by default CALLGATE_KEYS, or those beside the state file.
        `tools`: descriptors of tools, whose schemas are checked. `hooks`: see `callgate.hooks`. `observers`: functions that
        receive every event as a dict. `seed` and `fixed_time` make decisions repeatable in tests.
        """
        return cls([], text, _options(**options))

    def session(
        self,
        name: str | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        requester: str | None = None,
        tools: Sequence[Any] | None = None,
        task: Any = None,
        layers: Sequence[str] = (),
        records_calls: bool = False,
        has_unknown_past: bool = False,
        propagate: tuple[type[BaseException], ...] = (),
    ) -> Session:
        """Opens a session.

        `name`: its name in the state store, under which it continues. `context`: what the host vouches for, such as
        `principal`, `roles` and `tenant`. `requester`: approvals are found again by this name, the tool and the arguments.
        `layers`: rules that tighten the engine's. `records_calls`: completed calls do not run again after a restart.
        `has_unknown_past`: earlier calls of the session are not known here, so conditions that read its state are undecided.
        `propagate`: exceptions of tools that are raised as they are.
        """
        return Session(
            self,
            name=name,
            context=context,
            requester=requester,
            tools=tools,
            task=task,
            layers=layers,
            records_calls=records_calls,
            has_unknown_past=has_unknown_past,
            propagate=propagate,
        )

    def watch(self, on_change: Callable[[str, str], object] | None = None, *, debounce: float = 0.1) -> Watcher:
        """Reloads the rules when their files change. `on_change` receives `applied`, `rejected`, `pending` or `reverted`, and the
        revision or the errors."""
        return Watcher(_callgate.Watcher(self, on_change, debounce))

    def sign_answer(
        self, request: Mapping[str, Any], answer: Answer, *, by: str, roles: Sequence[str] = ()
    ) -> dict[str, Any]:
        """The answer of an approver whom the host has verified, sealed, for `resume_call` and histories."""
        return self.seal_answer(dict(request), answer.to_dict(request), (by, list(roles)))

    def approvals(self) -> list[dict[str, Any]]:
        """The approval requests of the state store."""
        requests: list[dict[str, Any]] = run(self.start_approvals())
        return requests

    async def aapprovals(self) -> list[dict[str, Any]]:
        """As `approvals`, with a store of your own that may be asynchronous."""
        requests: list[dict[str, Any]] = await run_async(self.start_approvals())
        return requests

    def answer(
        self, request: Mapping[str, Any], answer: Answer, *, by: str | None = None, roles: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Records an answer in the state store, from where any process resumes the call."""
        status: dict[str, Any] = run(self.start_answer(answer.to_dict(request), _approver(by, roles)))
        return status

    async def aanswer(
        self, request: Mapping[str, Any], answer: Answer, *, by: str | None = None, roles: Sequence[str] = ()
    ) -> dict[str, Any]:
        """As `answer`, with a store of your own that may be asynchronous."""
        status: dict[str, Any] = await run_async(self.start_answer(answer.to_dict(request), _approver(by, roles)))
        return status


def _approver(by: str | None, roles: Sequence[str]) -> tuple[str, list[str]] | None:
    return None if by is None else (by, list(roles))


def _options(
    *,
    state: str | None = None,
    keys: str | None = None,
    tools: Sequence[Any] | None = None,
    hooks: Sequence[Any] = (),
    observers: Sequence[Observer] = (),
    seed: int | None = None,
    fixed_time: str | None = None,
    record_store: RecordStore | None = None,
    limit_store: LimitStore | None = None,
    cache_store: CacheStore | None = None,
) -> dict[str, Any]:
    return {
        "state": state,
        "keys": keys,
        "tools": None if tools is None else list(tools),
        "hooks": list(hooks),
        "observers": list(observers),
        "seed": seed,
        "fixed_time": fixed_time,
        "record_store": record_store,
        "limit_store": limit_store,
        "cache_store": cache_store,
    }
