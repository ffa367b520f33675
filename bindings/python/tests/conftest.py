"""Fixtures of all tests: rules of a shop, and state that outlives an engine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from callgate import Engine

RULES = """
policies:
  - id: customers-stay
    match: delete_customer
    deny: { message: Customers are never deleted }
  - id: large-refunds-need-approval
    match: { tool: refund, where: { path: $.input.amount, gt: 100 } }
    approval: { message: "Refund {{ input.amount }} for {{ input.order }}?", expires: 24h, edits: [$.input.amount] }
  - id: quick-answers-only
    match: quick
    approval: { message: "Now?", expires: 1ms }
  - id: no-addresses
    match: find_order
    redact: { in: [output], detect: [email] }
  - id: prices-are-cached
    match: price
    cache: { ttl: 1h }
  - id: two-letters
    match: send_letter
    rate_limit: { limit: 2, per: 1h }
  - id: whole-amounts
    match: round_up
    transform: { input: [ { path: $.input.amount, set: 10 } ] }
"""


@pytest.fixture
def state(tmp_path: Path) -> str:
    """The URL of a state store of its own."""
    directory = tmp_path / "state"
    directory.mkdir(mode=0o700)
    return f"file:{directory / 'state.db'}"


@pytest.fixture
def engine(state: str) -> Engine:
    return Engine.from_text(RULES, state=state)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A file to which tools write what they did, also in other processes."""
    path = tmp_path / "journal.txt"
    path.touch()
    return path


@pytest.fixture(autouse=True)
def no_network_and_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLGATE_KEYS", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    assert os.environ
