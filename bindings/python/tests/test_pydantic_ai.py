"""The adapter of Pydantic AI in its agent loop, with a scripted model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from callgate import Engine, StateError
from callgate.adapters.pydantic_ai import CallgateToolset
from conftest import RULES

Call = tuple[str, str, dict[str, Any]]
REFUND: Call = ("refund", "c1", {"order": "A1", "amount": 250})


def shop(journal: Path) -> FunctionToolset[None]:
    tools: FunctionToolset[None] = FunctionToolset()

    def record(line: str) -> str:
        with journal.open("a") as file:
            file.write(line + "\n")
        return line

    @tools.tool_plain
    def refund(order: str, amount: int, note: str = "") -> str:
        return record(f"refund {order} {amount}")

    @tools.tool_plain
    def delete_customer(customer: str) -> str:
        return record(f"delete {customer}")

    @tools.tool_plain
    def find_order(order: str) -> dict[str, Any]:
        return {"order": order, "buyer": "ana@example.com"}

    @tools.tool_plain
    def price(article: str) -> str:
        return record(f"price {article}")

    @tools.tool_plain
    def send_letter(to: str) -> str:
        return record(f"letter {to}")

    @tools.tool_plain
    def round_up(amount: int) -> str:
        return record(f"round {amount}")

    @tools.tool_plain
    def quick() -> str:
        return record("quick")

    return tools


def agent(engine: Engine, journal: Path, *calls: Call, name: str = "chat 1") -> Agent[None, Any]:
    def respond(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if any(part.part_kind == "tool-return" for message in messages for part in message.parts):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(tool, args, tool_call_id=call_id) for tool, call_id, args in calls])

    return Agent(
        FunctionModel(respond),
        output_type=[str, DeferredToolRequests],
        toolsets=[CallgateToolset(shop(journal), engine.session(name))],
    )


def results(result: Any) -> list[Any]:
    parts = [part for message in result.all_messages() if isinstance(message, ModelRequest) for part in message.parts]
    return [part.content for part in parts if part.part_kind == "tool-return"]


def resume(agent: Agent[None, Any], result: Any, answer: Any) -> Any:
    answers = DeferredToolResults(approvals={"c1": answer})
    return agent.run_sync(message_history=result.all_messages(), deferred_tool_results=answers)


def test_allowed_denied_edited_and_redacted_calls(engine: Engine, journal: Path) -> None:
    result = agent(
        engine,
        journal,
        ("refund", "c1", {"order": "A1", "amount": 40}),
        ("delete_customer", "c2", {"customer": "bob"}),
        ("round_up", "c3", {"amount": 9}),
        ("find_order", "c4", {"order": "A1"}),
    ).run_sync("go")
    allowed, denied, edited, redacted = results(result)
    assert (allowed, edited, redacted) == ("refund A1 40", "round 10", {"order": "A1", "buyer": "[email]"})
    assert "Customers are never deleted" in str(denied)
    assert sorted(journal.read_text().splitlines()) == ["refund A1 40", "round 10"]


def test_cached_and_limited_calls(engine: Engine, journal: Path) -> None:
    for number in range(2):
        result = agent(engine, journal, ("price", "p", {"article": "B"}), name=f"chat {number}").run_sync("go")
        assert results(result) == ["price B"]
    letters = [("send_letter", f"l{n}", {"to": "bob"}) for n in range(3)]
    assert sum("two-letters" in str(content) for content in results(agent(engine, journal, *letters).run_sync("go"))) == 1
    assert sorted(journal.read_text().splitlines()) == ["letter bob", "letter bob", "price B"]


@pytest.mark.parametrize(
    ("answer", "expected", "ran"),
    [
        (ToolApproved(), "refund A1 250", "refund A1 250\n"),
        (True, "refund A1 250", "refund A1 250\n"),
        (ToolDenied("too much"), "too much", ""),
        (ToolApproved(override_args={"order": "A1", "amount": 90}), "changed its arguments", "refund A1 90\n"),
    ],
)
def test_an_approval_is_a_deferred_call(
    engine: Engine, journal: Path, answer: Any, expected: str, ran: str
) -> None:
    guarded = agent(engine, journal, REFUND)
    result = guarded.run_sync("go")
    assert isinstance(result.output, DeferredToolRequests)
    assert result.output.metadata["c1"]["callgate"]["message"] == "Refund 250 for A1?"
    assert journal.read_text() == ""
    [content] = results(resume(guarded, result, answer))
    assert expected in str(content)
    assert journal.read_text() == ran


def test_an_approver_cannot_change_other_arguments(engine: Engine, journal: Path) -> None:
    guarded = agent(engine, journal, REFUND)
    answer = ToolApproved(override_args={"order": "B2", "amount": 250})
    result = resume(guarded, guarded.run_sync("go"), answer)
    assert isinstance(result.output, DeferredToolRequests)
    assert journal.read_text() == ""


def test_an_expired_approval_does_not_run(engine: Engine, journal: Path) -> None:
    guarded = agent(engine, journal, ("quick", "c1", {}))
    [content] = results(resume(guarded, guarded.run_sync("go"), True))
    assert "expired" in str(content)
    assert journal.read_text() == ""


RESUME = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from pydantic_ai import DeferredToolResults
from pydantic_ai.messages import ModelMessagesTypeAdapter
from callgate import Engine
from conftest import RULES
from test_pydantic_ai import REFUND, agent, results
guarded = agent(Engine.from_text(RULES, state={state!r}), Path({journal!r}), REFUND)
messages = ModelMessagesTypeAdapter.validate_json(Path({messages!r}).read_bytes())
answers = DeferredToolResults(approvals={{"c1": True}})
print(results(guarded.run_sync(message_history=messages, deferred_tool_results=answers)))
"""


def test_a_new_process_resumes_exactly_once(state: str, journal: Path, tmp_path: Path) -> None:
    result = agent(Engine.from_text(RULES, state=state), journal, REFUND).run_sync("go")
    messages = tmp_path / "messages.json"
    messages.write_bytes(ModelMessagesTypeAdapter.dump_json(result.all_messages()))
    script = RESUME.format(tests=str(Path(__file__).parent), state=state, journal=str(journal), messages=str(messages))
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        assert done.stdout.strip() == "['refund A1 250']"
    assert journal.read_text() == "refund A1 250\n"


def test_what_is_no_toolset_or_session_is_refused(engine: Engine) -> None:
    with pytest.raises(StateError, match="wraps a toolset"):
        CallgateToolset([], engine.session())  # type: ignore[arg-type]
    with pytest.raises(StateError, match="must be a `Session`"):
        CallgateToolset(FunctionToolset(), engine)  # type: ignore[arg-type]
