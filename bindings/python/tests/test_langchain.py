"""The LangChain adapter in the agent loop of LangChain, with a scripted model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from callgate import Engine
from callgate.adapters.langchain import CallgateMiddleware
from conftest import RULES


class ScriptedModel(BaseChatModel):
    """Requests the scripted calls in its first turn, and then answers."""

    calls: list[dict[str, Any]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            message = AIMessage(content="done")
        else:
            message = AIMessage(content="", tool_calls=self.calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def call(name: str, call_id: str = "c1", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def shop(journal: Path) -> list[BaseTool]:
    def record(line: str) -> str:
        with journal.open("a") as file:
            file.write(line + "\n")
        return line

    @tool
    def refund(order: str, amount: int) -> str:
        """Refunds an order."""
        return record(f"refund {order} {amount}")

    @tool
    def delete_customer(customer: str) -> str:
        """Deletes a customer."""
        return record(f"delete {customer}")

    @tool
    def find_order(order: str) -> dict[str, Any]:
        """Finds an order."""
        record(f"find {order}")
        return {"order": order, "buyer": "ana@example.com"}

    @tool
    def price(article: str) -> str:
        """Returns a price."""
        return record(f"price {article}")

    @tool
    def send_letter(to: str) -> str:
        """Sends a letter."""
        return record(f"letter {to}")

    @tool
    def round_up(amount: int) -> str:
        """Rounds an amount."""
        return record(f"round {amount}")

    @tool
    def quick() -> str:
        """Something that is approved at once or never."""
        return record("quick")

    @tool
    def broken() -> str:
        """Fails."""
        raise ValueError("no printer for ana@example.com")

    return [refund, delete_customer, find_order, price, send_letter, round_up, quick, broken]


class Loop:
    def __init__(self, engine: Engine, journal: Path, *calls: dict[str, Any], thread: str = "t1", saver: Any = None) -> None:
        self.agent = create_agent(
            ScriptedModel(calls=list(calls)),
            shop(journal),
            middleware=[CallgateMiddleware(engine)],
            checkpointer=saver or InMemorySaver(),
        )
        self.config = {"configurable": {"thread_id": thread}}

    def start(self) -> Loop:
        self.result = self.agent.invoke({"messages": [{"role": "user", "content": "go"}]}, self.config)
        return self

    def resume(self, value: Any) -> Loop:
        self.result = self.agent.invoke(Command(resume=value), self.config)
        return self

    @property
    def interrupts(self) -> list[dict[str, Any]]:
        return [interrupt.value for interrupt in self.result.get("__interrupt__", [])]

    @property
    def results(self) -> list[tuple[str, Any]]:
        messages = [message for message in self.result["messages"] if isinstance(message, ToolMessage)]
        return [(message.status, message.content) for message in messages]


def test_allowed_calls_run(engine: Engine, journal: Path) -> None:
    assert Loop(engine, journal, call("refund", order="A1", amount=40)).start().results == [("success", "refund A1 40")]
    assert journal.read_text() == "refund A1 40\n"


def test_a_denied_call_does_not_run_and_the_model_reads_why(engine: Engine, journal: Path) -> None:
    loop = Loop(engine, journal, call("delete_customer", customer="bob"), call("refund", "c2", order="A1", amount=1)).start()
    assert loop.results == [("error", "Customers are never deleted"), ("success", "refund A1 1")]
    assert journal.read_text() == "refund A1 1\n"


def test_results_are_redacted(engine: Engine, journal: Path) -> None:
    [(status, content)] = Loop(engine, journal, call("find_order", order="A1")).start().results
    assert status == "success"
    assert json.loads(content) == {"order": "A1", "buyer": "[email]"}


def test_arguments_are_edited_before_the_tool_runs(engine: Engine, journal: Path) -> None:
    assert Loop(engine, journal, call("round_up", amount=9)).start().results == [("success", "round 10")]


def test_cached_results_do_not_run_the_tool_again(engine: Engine, journal: Path) -> None:
    loop = Loop(engine, journal, call("price", article="B"), thread="one").start()
    again = Loop(engine, journal, call("price", article="B"), thread="two").start()
    assert loop.results == again.results == [("success", "price B")]
    assert journal.read_text() == "price B\n"


def test_limits_apply_across_threads(engine: Engine, journal: Path) -> None:
    for thread in ("one", "two"):
        Loop(engine, journal, call("send_letter", to="bob"), thread=thread).start()
    [(status, content)] = Loop(engine, journal, call("send_letter", to="bob"), thread="three").start().results
    assert status == "error" and "two-letters" in content
    assert journal.read_text() == "letter bob\n" * 2


def test_a_failing_tool_fails_as_in_the_framework(engine: Engine, journal: Path) -> None:
    with pytest.raises(ValueError, match="no printer"):
        create_agent(ScriptedModel(calls=[call("broken")]), shop(journal)).invoke({"messages": [("user", "go")]})
    [(status, content)] = Loop(engine, journal, call("broken")).start().results
    assert (status, content) == ("error", "no printer for ana@example.com")


@pytest.mark.parametrize(
    ("answer", "result", "ran"),
    [
        (True, ("success", "refund A1 250"), "refund A1 250\n"),
        (False, ("error", None), ""),
        ({"approved": False, "reason": "too much"}, ("error", "too much"), ""),
        ({"approved": True}, ("success", "refund A1 250"), "refund A1 250\n"),
        ({"approved": True, "edited_input": {"order": "A1", "amount": 90}}, ("success", "refund A1 90"), "refund A1 90\n"),
    ],
)
def test_an_approval_is_an_interrupt(engine: Engine, journal: Path, answer: Any, result: Any, ran: str) -> None:
    loop = Loop(engine, journal, call("refund", order="A1", amount=250)).start()
    [asked] = loop.interrupts
    assert asked["type"] == "callgate.approval"
    assert asked["request"]["message"] == "Refund 250 for A1?"
    assert journal.read_text() == ""
    [(status, content)] = loop.resume(answer).results
    assert status == result[0]
    assert result[1] is None or result[1] in (content if isinstance(content, str) else json.dumps(content))
    assert journal.read_text() == ran


def test_the_model_reads_what_the_approver_changed(engine: Engine, journal: Path) -> None:
    loop = Loop(engine, journal, call("refund", order="A1", amount=250)).start()
    [(_, content)] = loop.resume({"approved": True, "edited_input": {"order": "A1", "amount": 90}}).results
    assert "changed its arguments" in content and '"amount":90' in content


def test_an_approver_cannot_change_other_arguments(engine: Engine, journal: Path) -> None:
    loop = Loop(engine, journal, call("refund", order="A1", amount=250)).start()
    loop.resume({"approved": True, "edited_input": {"order": "B2", "amount": 250}})
    assert [asked["request"]["message"] for asked in loop.interrupts] == ["Refund 250 for A1?"]
    assert journal.read_text() == ""


def test_an_expired_approval_does_not_run(engine: Engine, journal: Path) -> None:
    loop = Loop(engine, journal, call("quick")).start()
    [(status, content)] = loop.resume(True).results
    assert status == "error" and "expired" in content
    assert journal.read_text() == ""


@pytest.mark.parametrize("answer", ["yes", {"approve": True}, {"approved": "true"}, {"approved": True, "edits": {}}, 1, []])
def test_what_is_not_an_answer_leaves_the_graph_interrupted(engine: Engine, journal: Path, answer: Any) -> None:
    loop = Loop(engine, journal, call("refund", order="A1", amount=250)).start()
    [asked] = loop.resume(answer).interrupts
    assert asked["problem"].startswith("resume with")
    assert journal.read_text() == ""
    assert loop.resume(True).results == [("success", "refund A1 250")]


def test_parallel_calls_are_approved_one_by_one(engine: Engine, journal: Path) -> None:
    calls = [call("refund", "c1", order="A1", amount=250), call("refund", "c2", order="A2", amount=300)]
    loop = Loop(engine, journal, *calls, call("price", "c3", article="B")).start()
    interrupts = sorted(loop.result["__interrupt__"], key=lambda item: item.value["request"]["toolCallId"])
    assert [item.value["request"]["toolCallId"] for item in interrupts] == ["c1", "c2"]
    loop.resume({interrupts[0].id: False, interrupts[1].id: True})
    assert [status for status, _ in loop.results] == ["error", "success", "success"]
    assert sorted(journal.read_text().splitlines()) == ["price B", "refund A2 300"]


def test_the_asynchronous_loop_behaves_the_same(engine: Engine, journal: Path) -> None:
    import asyncio

    async def main() -> None:
        calls = [call("refund", order="A1", amount=250), call("delete_customer", "c2", customer="bob")]
        loop = Loop(engine, journal, *calls)
        loop.result = await loop.agent.ainvoke({"messages": [("user", "go")]}, loop.config)
        assert len(loop.interrupts) == 1
        loop.result = await loop.agent.ainvoke(Command(resume=True), loop.config)
        assert loop.results == [("success", "refund A1 250"), ("error", "Customers are never deleted")]

    asyncio.run(main())
    assert journal.read_text() == "refund A1 250\n"


def test_every_chunk_of_a_stream_is_redacted(engine: Engine, journal: Path) -> None:
    loop = Loop(engine, journal, call("find_order", order="A1"))
    chunks = loop.agent.stream({"messages": [("user", "go")]}, loop.config, stream_mode=["updates", "messages"])
    assert "ana@example.com" not in repr(list(chunks))


RESUME = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from callgate import Engine
from conftest import RULES
from langgraph.checkpoint.sqlite import SqliteSaver
from test_langchain import Loop, call
with SqliteSaver.from_conn_string({saver!r}) as saver:
    engine = Engine.from_text(RULES, state={state!r})
    loop = Loop(engine, Path({journal!r}), call("refund", order="A1", amount=250), saver=saver)
    print(loop.resume(True).results)
"""


def test_a_new_process_resumes_exactly_once(state: str, journal: Path, tmp_path: Path) -> None:
    saver_path = str(tmp_path / "checkpoints.db")
    engine = Engine.from_text(RULES, state=state)
    with SqliteSaver.from_conn_string(saver_path) as saver:
        loop = Loop(engine, journal, call("refund", order="A1", amount=250), saver=saver).start()
        assert len(loop.interrupts) == 1
        before = saver_path + ".before"
        saver.conn.commit()
        source, copy = saver.conn, __import__("sqlite3").connect(before)
        source.backup(copy)
        copy.close()
    tests = str(Path(__file__).parent)

    def resume(checkpoints: str) -> str:
        script = RESUME.format(tests=tests, saver=checkpoints, state=state, journal=str(journal))
        return subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()

    assert resume(saver_path) == "[('success', 'refund A1 250')]"
    # The same checkpoint again, as after a crash before the next one was written: the result is the recorded one.
    assert resume(before) == "[('success', 'refund A1 250')]"
    assert journal.read_text() == "refund A1 250\n"


def test_callers_with_other_contexts_have_other_sessions(journal: Path) -> None:
    engine = Engine.from_text(
        """
policies:
  - id: only-admins
    match: { tool: delete_customer, where: { not: { path: $.context.role, eq: admin } } }
    deny: { message: Only admins }
"""
    )

    def run(role: str) -> list[tuple[str, Any]]:
        middleware = CallgateMiddleware(engine, context=lambda request: {"role": role})
        model = ScriptedModel(calls=[call("delete_customer", customer="bob")])
        agent = create_agent(model, shop(journal), middleware=[middleware])
        messages = agent.invoke({"messages": [("user", "go")]})["messages"]
        return [(message.status, message.content) for message in messages if isinstance(message, ToolMessage)]

    assert run("clerk") == [("error", "Only admins")]
    assert run("admin") == [("success", "delete bob")]


def test_rules_of_the_tests_are_valid() -> None:
    assert Engine.from_text(RULES).revision
