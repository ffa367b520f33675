"""Stores written in Python: limits, cached results and records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from callgate import Engine, StoreError, approve
from callgate.stores import CachedValue, StoredValue, Write

KEYS = "5a" * 32
LIMITED = """
policies:
  - id: two-mails
    match: mail
    rate_limit: { limit: 2, per: 1h, key: [$.context.principal] }
"""
CACHED = """
policies:
  - id: keep
    match: search
    cache: { ttl: 1h, scope: tenant, invalidate_on: [save] }
"""
ASK = """
policies:
  - id: ask
    match: pay
    approval: { message: "Pay {{ input.amount }}?", expires: 1h }
"""


class Limits:
    """A store of limits, as an application writes one over its database."""

    def __init__(self, conflicts: int = 0) -> None:
        self.values: dict[str, StoredValue] = {}
        self.forget_at: datetime | None = None
        self.version = 0
        self.conflicts = conflicts

    def read(self, keys: Sequence[str]) -> list[StoredValue | None]:
        return [self.values.get(key) for key in keys]

    def write(self, writes: Sequence[Write]) -> bool:
        if self.conflicts:
            self.conflicts -= 1
            return False
        stored = {key: value.version for key, value in self.values.items()}
        if any(stored.get(write.key) != write.expected_version for write in writes):
            return False
        for write in writes:
            self.version += 1
            self.values[write.key] = StoredValue(write.value, self.version)
            self.forget_at = write.forget_at
        return True


class AsyncLimits:
    def __init__(self) -> None:
        self.limits = Limits()

    async def read(self, keys: Sequence[str]) -> list[StoredValue | None]:
        await asyncio.sleep(0)
        return self.limits.read(keys)

    async def write(self, writes: Sequence[Write]) -> bool:
        await asyncio.sleep(0)
        return self.limits.write(writes)


class Records:
    def __init__(self) -> None:
        self.values: dict[tuple[str, str], StoredValue] = {}
        self.version = 0

    def read(self, space: str, key: str) -> StoredValue | None:
        return self.values.get((space, key))

    def write(self, space: str, write: Write) -> bool:
        found = self.values.get((space, write.key))
        if (found.version if found else None) != write.expected_version:
            return False
        self.version += 1
        self.values[space, write.key] = StoredValue(write.value, self.version)
        return True

    def list(self, space: str, after: str | None, limit: int) -> list[tuple[str, StoredValue]]:
        keys = sorted(key for at, key in self.values if at == space and (after is None or key > after))
        return [(key, self.values[space, key]) for key in keys[:limit]]


class Cache:
    def __init__(self) -> None:
        self.values: dict[tuple[str, str], str] = {}
        self.generations: dict[str, int] = {}

    def get(self, space: str, key: str) -> CachedValue:
        return CachedValue(self.values.get((space, key)), self.generations.get(space, 0))

    def put(self, space: str, key: str, value: str, generation: int, expires_at: datetime, max_entries: int) -> None:
        assert expires_at > datetime.now(UTC) and max_entries > 0
        if generation == self.generations.get(space, 0):
            self.values[space, key] = value

    def clear(self, space: str) -> None:
        self.values = {at: value for at, value in self.values.items() if at[0] != space}
        self.generations[space] = self.generations.get(space, 0) + 1


def load(rules: str, **options: Any) -> Engine:
    return Engine.from_text(rules, keys=KEYS, **options)


def outcome(engine: Engine, tool: str, run: Callable[[Any], Any] = lambda _: "done") -> str:
    session = engine.session(context={"principal": "ana", "tenant": "shop"})
    result = session.call({"tool": tool, "input": {"query": "shoes"}}, run)
    return result.kind if result.is_ok else result.code


def never(_: Any) -> Any:
    pytest.fail("the tool ran")


def test_limits_are_exact_over_several_engines() -> None:
    limits = Limits()
    engines = [load(LIMITED, limit_store=limits) for _ in range(2)]
    found = [outcome(engine, "mail") for engine in engines * 3]
    assert found == ["executed", "executed", *["rate_limited"] * 4]
    assert len(limits.values) == 1
    assert "ana" not in repr(limits.values) and "mail" not in repr(limits.values)
    assert limits.forget_at is not None and limits.forget_at > datetime.now(UTC)


def test_asynchronous_limits_are_exact_for_calls_at_once() -> None:
    limits = AsyncLimits()

    async def main() -> list[str]:
        sessions = [load(LIMITED, limit_store=limits).session(context={"principal": "ana"}) for _ in range(2)]
        calls = [session.acall({"tool": "mail", "input": {}}, lambda _: "done") for session in sessions * 10]
        return [result.code if result.is_denied else result.kind for result in await asyncio.gather(*calls)]

    found = asyncio.run(main())
    assert (found.count("executed"), found.count("rate_limited")) == (2, 18)
    with pytest.raises(TypeError, match="the store is asynchronous"):
        outcome(load(LIMITED, limit_store=limits), "mail", never)


def test_a_call_is_decided_again_when_another_writer_changed_its_limit() -> None:
    assert outcome(load(LIMITED, limit_store=Limits(conflicts=5)), "mail") == "executed"
    assert outcome(load(LIMITED, limit_store=Limits(conflicts=10**9)), "mail", never) == "store_unavailable"


class Broken:
    """A store whose methods return something else, or raise."""

    def __init__(self, read: Any, write: Any = True) -> None:
        self.results = {"read": read, "write": write}

    def read(self, keys: Sequence[str]) -> Any:
        return self.result("read")

    def write(self, writes: Sequence[Write]) -> Any:
        return self.result("write")

    def result(self, name: str) -> Any:
        if self.results[name] is ValueError:
            raise ValueError("redis://:secret@host is down")
        return self.results[name]


@pytest.mark.parametrize(
    "store",
    [
        Broken(ValueError),
        Broken([StoredValue("1:AAAA", 1)]),
        Broken([]),
        Broken("nothing"),
        Broken([None], "yes"),
        Broken([None], ValueError),
        object(),
    ],
)
def test_a_store_that_fails_or_returns_something_else_denies_calls(store: Any) -> None:
    session = load(LIMITED, limit_store=store).session(context={"principal": "ana"})
    result = session.call({"tool": "mail", "input": {}}, never)
    assert result.code == "store_unavailable"
    assert "secret" not in result.to_json()


def test_an_asynchronous_store_that_never_answers_denies_calls() -> None:
    class Silent:
        async def read(self, keys: Sequence[str]) -> list[None]:
            await asyncio.sleep(3600)
            return [None]

        async def write(self, writes: Sequence[Write]) -> bool:
            return True

    async def main() -> str:
        session = load(LIMITED, limit_store=Silent()).session(context={"principal": "ana"})
        return (await session.acall({"tool": "mail", "input": {}}, never)).code

    assert asyncio.run(main()) == "store_unavailable"


def test_cached_results_are_shared_sealed_and_cleared() -> None:
    records, cache = Records(), Cache()

    def open_engine() -> Engine:
        return load(CACHED, record_store=records, cache_store=cache)

    assert outcome(open_engine(), "search", lambda _: "secret 42") == "executed"
    assert outcome(open_engine(), "search", never) == "cached"
    assert cache.values
    assert "secret" not in repr(cache.values) and "shoes" not in repr(cache.values)
    assert outcome(open_engine(), "save") == "executed"
    assert outcome(open_engine(), "search") == "executed"


def test_a_cache_that_fails_is_bypassed() -> None:
    assert outcome(load(CACHED, cache_store=object()), "search") == "executed"


def test_approvals_in_a_store_of_records_run_once() -> None:
    records = Records()

    def open_engine() -> Engine:
        return load(ASK, record_store=records)

    call = {"id": "c1", "tool": "pay", "input": {"amount": 987654}}
    assert open_engine().session("chat").call(call, never).is_suspended
    assert "987654" not in repr(records.values)
    engine = open_engine()
    [item] = engine.approvals()
    assert engine.answer(item["request"], approve(), by="lea")["status"] == "answered"
    session = open_engine().session("chat")
    assert session.resume_call(call, item["request"], [], lambda _: "paid").output == "paid"
    assert open_engine().session("chat").resume_call(call, item["request"], [], never).output == "paid"


def test_stores_need_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLGATE_KEYS", raising=False)
    with pytest.raises(StoreError, match="`keys`"):
        Engine.from_text(LIMITED, limit_store=Limits())
