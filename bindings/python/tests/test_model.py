"""The model around calls: its configuration, stream and use, and the adapters that see none of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from callgate import Engine, InvalidValueError, ModelConfig, RunEndedError, StateError, UnsupportedError, Usage, guard
from callgate.session import Session

TOOLS = [{"name": "pay"}, {"name": "look"}]


def session(*policies: str) -> Session:
    return Engine.from_text(f"policies: [{', '.join(policies)}]").session()


def test_policies_change_the_configuration_of_the_model() -> None:
    run = session("{ id: careful, model: { temperature: { max: 0.5 }, tools: { hide: pay }, provider_options: { seed: 7 } } }")
    run.begin(ModelConfig(tools=TOOLS, temperature=0.9, metadata={"a": 1}))
    config = run.before_model(ModelConfig(tools=TOOLS, temperature=0.9, metadata={"a": 1}))
    assert [tool["name"] for tool in config.tools] == ["look"]
    assert (config.temperature, config.metadata, config.max_tokens) == (0.5, {"a": 1}, None)
    assert config.provider_options == {"seed": 7}
    [outcome] = run.run_calls([{"tool": "pay", "id": "p", "input": {}}], lambda _: pytest.fail("it ran"))
    assert outcome.is_denied


def test_the_stream_is_redacted_across_its_chunks() -> None:
    run = session("{ id: hide, stream: { redact: [email] } }")
    deltas = ["write to ana@exa", "mple.com", " now"]
    passed = [chunk for delta in deltas for chunk in run.chunk({"type": "text", "id": "t", "delta": delta})]
    passed += run.chunk({"type": "finished", "reason": "stop", "usage": Usage(3, 4)})
    text = "".join(chunk.get("delta", "") for chunk in passed)
    assert text == "write to [email] now" and passed[-1]["usage"] == Usage(3, 4)
    run.chunk({"type": "text", "id": "t", "delta": "held back: bob@exam"})
    assert run.rest_of_stream()


@pytest.mark.parametrize("reported", [True, False])
def test_a_budget_of_tokens_ends_the_run(reported: bool) -> None:
    run = session("{ id: few, budget: { tokens: 10, per: run } }")
    run.begin()
    run.before_model()
    if reported:
        run.report_usage(Usage(8, 4))
    else:
        run.chunk({"type": "finished", "reason": "stop", "usage": Usage(8, 4)})
    with pytest.raises(RunEndedError, match="the budget `few` is used up") as ended:
        asyncio.run(run.abefore_model())
    assert ended.value.end["end"] == "aborted"
    assert asyncio.run(run.aend(ended.value.end)) == []


def test_what_is_no_chunk_usage_or_end_raises() -> None:
    run = session()
    for wrong in ({"type": "nope"}, {"type": "finished", "reason": None, "usage": {"prompt_tokens": 1}}):
        with pytest.raises(InvalidValueError, match="the chunk"):
            run.chunk(wrong)
    with pytest.raises(InvalidValueError, match="the end of the run"):
        run.end({"end": "finished", "why": "x"})
    with pytest.raises(InvalidValueError, match="the configuration"):
        run.begin(ModelConfig(max_tokens=-1))


def test_a_session_of_single_calls_has_no_run() -> None:
    calls = session()
    calls.call({"tool": "pay", "id": "p", "input": {}}, lambda _: 1)
    with pytest.raises(StateError, match="single calls"):
        calls.before_model()


def _langchain(engine: Engine, **options: Any) -> None:
    from callgate.adapters.langchain import CallgateMiddleware

    CallgateMiddleware(engine, **options)


def _fastmcp(engine: Engine, **options: Any) -> None:
    from callgate.adapters.fastmcp import CallgateMiddleware

    CallgateMiddleware(engine, **options)


def _mcp_server(engine: Engine, **options: Any) -> None:
    from callgate.adapters.mcp_server import CallgateMiddleware

    CallgateMiddleware(engine, **options)


def _openai_agents(engine: Engine, **options: Any) -> None:
    from callgate.adapters.openai_agents import guard_tools

    guard_tools([], engine.session(), **options)


def _pydantic_ai(engine: Engine, **options: Any) -> None:
    from pydantic_ai.toolsets import FunctionToolset

    from callgate.adapters.pydantic_ai import CallgateToolset

    CallgateToolset(FunctionToolset(), engine.session(), **options)


def _guard(engine: Engine, **options: Any) -> None:
    guard(engine, **options)


@pytest.mark.parametrize("adapter", [_langchain, _fastmcp, _mcp_server, _openai_agents, _pydantic_ai, _guard])
def test_adapters_refuse_policies_that_they_can_not_apply(adapter: Callable[..., None]) -> None:
    engine = Engine.from_text("policies: [{ id: few, budget: { tokens: 10, per: run } }, { id: hide, stream: { redact: [email] } }]")
    with pytest.raises(UnsupportedError, match="policies of the kind `budget`, `stream`"):
        adapter(engine)
    with pytest.raises(UnsupportedError, match="policies of the kind `stream`"):
        adapter(engine, applied_elsewhere=["budget"])
    adapter(engine, applied_elsewhere=["budget", "stream"])
