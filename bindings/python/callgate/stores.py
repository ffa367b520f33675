"""Stores of your own, for what outlives a call: records of calls, approvals and sessions; limits; cached results.

Callgate encrypts records and cached results with the engine's `keys`, and stores digests in place of the keys of limits: values are opaque
to the store. Each method may be asynchronous, if calls use the asynchronous forms. What a method raises counts as an unavailable store: the
call is denied, or bypasses the cache.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

__all__ = ["CacheStore", "CachedValue", "LimitStore", "RecordStore", "StoredValue", "Write"]


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A stored value."""

    value: str
    #: Changes with each write; no later value of the same key has it again.
    version: int


@dataclass(frozen=True, slots=True)
class Write:
    """A value to write, if the stored one has the expected version."""

    key: str
    value: str
    #: The version that the stored value must have; `None` if none may exist.
    expected_version: int | None
    #: When the store may delete the value; `None` for never.
    forget_at: datetime | None


@dataclass(frozen=True, slots=True)
class CachedValue:
    """The result of a lookup in a cache."""

    value: str | None
    #: How often the space was cleared.
    generation: int


class RecordStore(Protocol):
    """Stores calls, approvals, sessions and budgets, for all processes that share it. A key names one value of a space."""

    def read(self, space: str, key: str, /) -> StoredValue | None | Awaitable[StoredValue | None]:
        """The value of this key."""

    def write(self, space: str, write: Write, /) -> bool | Awaitable[bool]:
        """Writes in one step, if the version is the expected one. Returns whether it did. Of several writers, one succeeds."""

    def list(
        self, space: str, after: str | None, limit: int, /
    ) -> Sequence[tuple[str, StoredValue]] | Awaitable[Sequence[tuple[str, StoredValue]]]:
        """Up to `limit` keys after `after` with their values, ordered by key."""


class LimitStore(Protocol):
    """Stores what was acquired of rate limits and budgets, one value for each limit. `concurrency` is counted elsewhere, in `state`."""

    def read(self, keys: Sequence[str], /) -> Sequence[StoredValue | None] | Awaitable[Sequence[StoredValue | None]]:
        """The values of these keys, in their order."""

    def write(self, writes: Sequence[Write], /) -> bool | Awaitable[bool]:
        """Writes all values in one step, if each version is the expected one; otherwise none. Returns whether it did."""


class CacheStore(Protocol):
    """Stores cached results. A key names one value of a space."""

    def get(self, space: str, key: str, /) -> CachedValue | Awaitable[CachedValue]:
        """The value of this key, and how often the space was cleared."""

    def put(
        self, space: str, key: str, value: str, generation: int, expires_at: datetime, max_entries: int, /
    ) -> None | Awaitable[None]:
        """Stores a value, unless the space was cleared since `generation`. The space has at most so many entries."""

    def clear(self, space: str, /) -> None | Awaitable[None]:
        """Removes all values of the space."""
