"""The adapter of the OpenAI Agents SDK in its runner, with a scripted model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, WebSearchTool, function_tool
from agents import Tool as AgentTool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from callgate import Engine, UnsupportedError
from callgate.adapters.openai_agents import guard_tools
from conftest import RULES


class ScriptedModel(Model):
    """Requests the scripted calls first, and then answers."""

    def __init__(self, calls: list[tuple[str, str, dict[str, Any]]]) -> None:
        self.calls = calls

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        answered = not isinstance(input, str) and any(item.get("type") == "function_call_output" for item in input)
        output: list[Any]
        if answered:
            text = ResponseOutputText(annotations=[], text="done", type="output_text")
            output = [ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")]
        else:
            output = [
                ResponseFunctionToolCall(arguments=json.dumps(arguments), call_id=call_id, name=name, type="function_call")
                for name, call_id, arguments in self.calls
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def shop(journal: Path) -> list[AgentTool]:
    def record(line: str) -> str:
        with journal.open("a") as file:
            file.write(line + "\n")
        return line

    @function_tool
    def refund(order: str, amount: int) -> str:
        """Refunds an order."""
        return record(f"refund {order} {amount}")

    @function_tool
    def delete_customer(customer: str) -> str:
        """Deletes a customer."""
        return record(f"delete {customer}")

    @function_tool
    def find_order(order: str) -> dict[str, Any]:
        """Finds an order."""
        return {"order": order, "buyer": "ana@example.com"}

    @function_tool
    def price(article: str) -> str:
        """Returns a price."""
        return record(f"price {article}")

    @function_tool
    def send_letter(to: str) -> str:
        """Sends a letter."""
        return record(f"letter {to}")

    @function_tool
    def round_up(amount: int) -> str:
        """Rounds an amount."""
        return record(f"round {amount}")

    @function_tool
    def quick() -> str:
        """Something that is approved at once or never."""
        return record("quick")

    return [refund, delete_customer, find_order, price, send_letter, round_up, quick]


def agent(engine: Engine, journal: Path, *calls: tuple[str, str, dict[str, Any]], name: str = "chat 1") -> Agent[Any]:
    tools = guard_tools(shop(journal), engine.session(name))
    return Agent(name="support", model=ScriptedModel(list(calls)), tools=list(tools))


def run(agent: Agent[Any], state: Any = "go") -> Any:
    return Runner.run_sync(agent, state, run_config=RunConfig(tracing_disabled=True))


def outputs(result: Any) -> list[Any]:
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


REFUND = ("refund", "c1", {"order": "A1", "amount": 250})


def test_allowed_denied_edited_and_redacted_calls(engine: Engine, journal: Path) -> None:
    result = run(
        agent(
            engine,
            journal,
            ("refund", "c1", {"order": "A1", "amount": 40}),
            ("delete_customer", "c2", {"customer": "bob"}),
            ("round_up", "c3", {"amount": 9}),
            ("find_order", "c4", {"order": "A1"}),
        )
    )
    allowed, denied, edited, redacted = outputs(result)
    assert (allowed, denied, edited) == ("refund A1 40", "Customers are never deleted", "round 10")
    assert "ana@example.com" not in str(redacted) and "[email]" in str(redacted)
    assert sorted(journal.read_text().splitlines()) == ["refund A1 40", "round 10"]


def test_cached_and_limited_calls(engine: Engine, journal: Path) -> None:
    calls = [("price", f"p{n}", {"article": "B"}) for n in range(2)]
    for number in range(2):
        assert set(outputs(run(agent(engine, journal, *calls, name=f"chat {number}")))) == {"price B"}
    letters = [("send_letter", f"l{n}", {"to": "bob"}) for n in range(3)]
    assert sum("two-letters" in output for output in outputs(run(agent(engine, journal, *letters)))) == 1
    assert sorted(journal.read_text().splitlines()) == ["letter bob", "letter bob", "price B"]


def test_an_approval_is_an_interruption(engine: Engine, journal: Path) -> None:
    guarded = agent(engine, journal, REFUND)
    result = run(guarded)
    [item] = result.interruptions
    assert (item.tool_name, journal.read_text()) == ("refund", "")
    state = result.to_state()
    state.approve(item)
    assert outputs(run(guarded, state)) == ["refund A1 250"]
    assert journal.read_text() == "refund A1 250\n"


def test_a_rejected_call_does_not_run(engine: Engine, journal: Path) -> None:
    guarded = agent(engine, journal, REFUND)
    state = (result := run(guarded)).to_state()
    state.reject(result.interruptions[0])
    [output] = outputs(run(guarded, state))
    assert "not approved" in output
    assert journal.read_text() == ""


def test_an_expired_approval_does_not_run(engine: Engine, journal: Path) -> None:
    guarded = agent(engine, journal, ("quick", "c1", {}))
    state = (result := run(guarded)).to_state()
    state.approve(result.interruptions[0])
    [output] = outputs(run(guarded, state))
    assert "expired" in output
    assert journal.read_text() == ""


def test_a_denial_in_the_state_store_wins_over_the_approval_of_the_framework(engine: Engine, journal: Path) -> None:
    from callgate import deny

    guarded = agent(engine, journal, REFUND)
    result = run(guarded)
    [waiting] = engine.approvals()
    engine.answer(waiting["request"], deny("too much"), by="lea")
    state = result.to_state()
    state.approve(result.interruptions[0])
    [output] = outputs(run(guarded, state))
    assert output == "lea denied this call: too much"
    assert journal.read_text() == ""


RESUME = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from agents import RunState
from callgate import Engine
from conftest import RULES
from test_openai_agents import REFUND, agent, outputs, run
guarded = agent(Engine.from_text(RULES, state={state!r}), Path({journal!r}), REFUND)
state = asyncio.run(RunState.from_string(guarded, Path({run_state!r}).read_text()))
state.approve(state.get_interruptions()[0])
print(outputs(run(guarded, state)))
"""


def test_a_new_process_resumes_exactly_once(state: str, journal: Path, tmp_path: Path) -> None:
    result = run(agent(Engine.from_text(RULES, state=state), journal, REFUND))
    run_state = tmp_path / "run.json"
    run_state.write_text(result.to_state().to_string())
    script = RESUME.format(tests=str(Path(__file__).parent), state=state, journal=str(journal), run_state=str(run_state))
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        assert done.stdout.strip() == "['refund A1 250']"
    assert journal.read_text() == "refund A1 250\n"


def test_tools_that_run_elsewhere_are_refused(engine: Engine) -> None:
    with pytest.raises(UnsupportedError, match="not a function tool"):
        guard_tools([WebSearchTool()], engine.session())
    with pytest.raises(UnsupportedError, match="needs a `Session`"):
        guard_tools([], None)  # type: ignore[arg-type]

