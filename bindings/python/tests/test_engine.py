"""Engines, sessions and histories: decisions, tools that misbehave, threads, event loops, forks, hooks and events."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
import weakref
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import trio

import callgate
from callgate import (
    AnswerError,
    ApprovalRequiredError,
    CallDeniedError,
    Engine,
    History,
    InvalidValueError,
    Outcome,
    RulesError,
    StateError,
    StoreError,
    ToolCall,
    ToolError,
    ToolFailedError,
    UnsupportedError,
    approve,
    deny,
    guard,
    normalize_json,
)
from conftest import RULES

SMALL = {"tool": "refund", "id": "small", "input": {"order": "A1", "amount": 40}}
LARGE = {"tool": "refund", "id": "large", "input": {"order": "A1", "amount": 250}}


def test_a_decision_has_its_effect_and_reason(engine: Engine) -> None:
    decision = engine.decide(LARGE)
    assert (decision.effect, decision.code, decision.message) == ("suspend", "approval_required", "Refund 250 for A1?")
    assert decision.needs_approval and not decision.is_permitted
    assert engine.decide(SMALL).is_permitted
    assert engine.decide(ToolCall("round_up", {"amount": 9})).changed_input == {"amount": 10}


def test_errors_of_rules_have_code_position_and_help() -> None:
    with pytest.raises(RulesError) as caught:
        Engine.from_text("policies:\n  - id: x\n    mach: refund\n    deny: {}\n")
    [problem] = caught.value.diagnostics
    assert (problem.code, problem.name, problem.file, problem.line, problem.column) == (
        "CG201",
        "unknown-key",
        "rules.yaml",
        3,
        5,
    )
    assert problem.help == "did you mean `match`?" and problem.policy == "x"
    assert "error[CG201]" in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -(2**63), 2**64, 10**100, 0.1, 1e300, -0.5, "", "ü\U0001f600\x00", [], {}, [1, [2, {"a": None}]]],
)
def test_json_is_converted_without_loss(value: Any) -> None:
    assert normalize_json(value) == value
    assert type(normalize_json(value)) is type(value)


def test_numbers_that_no_float_has_stay_exact() -> None:
    for text in ("0.1000000000000000055511151231257827", "1E+400", "9007199254740993.5", "1E-500"):
        converted = normalize_json(Decimal(text))
        assert isinstance(converted, Decimal) and converted == Decimal(text)
    assert normalize_json(Decimal("1.10")) == 1.1
    policy = "policies: [ { id: p, match: { tool: pay, where: { path: $.input.n, gt: 9007199254740992 } }, deny: {} } ]"
    engine = Engine.from_text(policy)
    assert engine.decide(ToolCall("pay", {"n": 2**53})).effect == "run"
    assert engine.decide(ToolCall("pay", {"n": 2**53 + 1})).effect == "deny"
    assert engine.decide(ToolCall("pay", {"n": Decimal("9007199254740992.0001")})).effect == "deny"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (float("nan"), "NaN"),
        ({"a": [float("inf")]}, r"\$\.a\[0\]"),
        (Decimal("NaN"), "NaN"),
        ({1: 2}, "not a string"),
        ({"a": {"b": object()}}, r"\$\.a\.b is of the type `object`"),
        ("\ud800", "lone surrogate"),
        (b"x", "`bytes`"),
        ({1, 2}, "`set`"),
    ],
)
def test_what_is_not_json_is_refused_with_its_location(value: Any, problem: str) -> None:
    with pytest.raises(InvalidValueError, match=problem):
        normalize_json(value)


def test_code_of_a_value_does_not_run_while_it_is_converted() -> None:
    document: dict[str, Any] = {}

    class Hostile(Decimal):
        def __str__(self) -> str:
            document.clear()
            return "1e5"

        @property
        def __class__(self) -> Any:
            document.clear()
            return Decimal

    document.update({str(number): Hostile(number) for number in range(5)})
    assert normalize_json(document) == {str(number): number for number in range(5)}


def test_deep_and_endless_values_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidValueError, match="nested deeper than"):
        normalize_json(endless)


def test_calls_run_are_denied_and_suspended(engine: Engine) -> None:
    session = engine.session("chat 1", context={"principal": "ana"})
    outcome = session.call(SMALL, lambda call: {"refunded": call.input["amount"]})
    assert (outcome.kind, outcome.output, outcome.is_ok) == ("executed", {"refunded": 40}, True)
    denied = session.call({"tool": "delete_customer", "id": "d", "input": {}}, _never)
    assert (denied.kind, denied.text, denied.is_denied) == ("denied", "Customers are never deleted", True)
    suspended = session.call(LARGE, _never)
    assert suspended.is_suspended and suspended.text is None
    request = suspended.approval
    assert request is not None and request["message"] == "Refund 250 for A1?"
    assert session.resume_call(LARGE, request, [], _never).is_suspended
    done = session.resume_call(LARGE, request, approve(), lambda call: call.input["amount"])
    assert (done.kind, done.output, done.replayed) == ("executed", 250, False)
    again = session.resume_call(LARGE, request, approve(), _never)
    assert (again.output, again.replayed) == (250, True)
    assert json.loads(done.to_json())["approved"]["approvalId"] == "approval_large"


def _never(_: ToolCall) -> Any:
    raise AssertionError("the tool ran")


def test_an_altered_request_or_answer_is_not_accepted(engine: Engine) -> None:
    session = engine.session("chat 1")
    request = session.call(LARGE, _never).approval
    assert request is not None
    forged = {**request, "input": {"order": "A1", "amount": 1}, "approvalToken": request["approvalToken"][:-4] + "AAAA"}
    assert session.resume_call(LARGE, forged, approve(), _never).kind != "executed"
    other = {**LARGE, "input": {"order": "A1", "amount": 9999}}
    assert session.resume_call(other, request, approve(), _never).kind != "executed"
    for answer in ({}, {"approvalId": "approval_large"}, {"approvalId": "approval_large", "approved": "yes"}):
        with pytest.raises(AnswerError):
            session.resume_call(LARGE, request, answer, _never)


def test_only_named_approvers_can_approve() -> None:
    engine = Engine.from_text("policies: [ { id: p, match: pay, approval: { message: pay?, approvers: ['role:lead'] } } ]")
    call = {"tool": "pay", "id": "c1", "input": {}}
    session = engine.session("s", context={"principal": "ana"})
    request = session.call(call, _never).approval
    assert request is not None
    unsigned = {**approve().to_dict(request), "answeredBy": {"principal": "lea", "roles": ["lead"]}}
    assert session.resume_call(call, request, approve(), _never).is_suspended
    assert session.resume_call(call, request, unsigned, _never).is_suspended
    clerk = engine.sign_answer(request, approve(), by="bob", roles=["clerk"])
    assert session.resume_call(call, request, clerk, _never).is_suspended
    own = engine.sign_answer(request, approve(), by="ana", roles=["lead"])
    assert session.resume_call(call, request, own, _never).is_suspended
    lead = engine.sign_answer(request, approve(), by="lea", roles=["lead"])
    assert session.resume_call(call, request, lead, lambda _: "paid").output == "paid"


class Awkward(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "message", "kind"),
    [
        (ValueError("no such order"), "no such order", "ValueError"),
        (ToolError("later", "busy"), "later", "busy"),
        (KeyError(), "KeyError", "KeyError"),
        (Awkward(), "Awkward", "Awkward"),
        (ValueError("\ud800"), "ValueError", "ValueError"),
    ],
)
def test_a_tool_that_raises_fails_its_call(error: Exception, message: str, kind: str) -> None:
    seen: list[dict[str, Any]] = []
    engine = Engine.from_text(
        f"policies: [ {{ id: p, match: '*', recover: {{ on: ['later'], message: 'recovered' }} }} ]"
        if kind == "busy"
        else "policies: []",
        observers=[seen.append],
    )

    def tool(_: ToolCall) -> Any:
        raise error

    outcome = engine.session().call(SMALL, tool)
    assert seen
    if kind == "busy":
        assert (outcome.kind, outcome.text) == ("recovered", "recovered")
    else:
        assert (outcome.kind, outcome.error) == ("failed", message)


@pytest.mark.parametrize("output", [object(), {1: 2}, float("nan"), "\ud800", b"x"])
def test_a_result_that_is_not_json_fails_its_call(engine: Engine, output: Any) -> None:
    outcome = engine.session().call(SMALL, lambda _: output)
    assert outcome.kind == "failed" and "not JSON" in (outcome.error or "")


def test_an_asynchronous_tool_needs_the_asynchronous_form(engine: Engine) -> None:
    async def tool(_: ToolCall) -> str:
        return "done"

    with pytest.raises(TypeError, match="asynchronous form"):
        engine.session().call(SMALL, tool)
    assert asyncio.run(engine.session().acall(SMALL, tool)).output == "done"
    assert trio.run(engine.session().acall, SMALL, tool).output == "done"
    assert asyncio.run(engine.session().acall(SMALL, lambda _: "plain")).output == "plain"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_exceptions_that_are_not_errors_are_raised(engine: Engine, error: type[BaseException]) -> None:
    def tool(_: ToolCall) -> Any:
        raise error

    session = engine.session("chat 1")
    with pytest.raises(error):
        session.call(SMALL, tool)
    assert session.call({**SMALL, "id": "next"}, lambda _: 1).output == 1


class Signal(Exception):
    """How a framework steers its tools."""


def test_propagated_exceptions_are_raised(engine: Engine) -> None:
    def tool(_: ToolCall) -> Any:
        raise Signal

    with pytest.raises(Signal):
        engine.session(propagate=(Signal,)).call(SMALL, tool)


TIMEOUT = "policies: [ { id: p, match: slow, timeout: 50ms } ]"


def test_a_tool_that_takes_too_long_is_given_up() -> None:
    release = threading.Event()
    engine = Engine.from_text(TIMEOUT)

    def blocking(_: ToolCall) -> Any:
        release.wait(60)

    slow = {"tool": "slow", "id": "s", "input": {}}
    outcome = engine.session().call(slow, blocking)
    assert (outcome.kind, outcome.code) == ("failed", "timeout")
    assert asyncio.run(engine.session().acall(slow, blocking)).code == "timeout"
    release.set()

    cancelled: list[str] = []

    async def in_asyncio(_: ToolCall) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append("asyncio")
            raise

    async def in_trio(_: ToolCall) -> Any:
        try:
            await trio.sleep(60)
        except trio.Cancelled:
            cancelled.append("trio")
            raise

    assert asyncio.run(engine.session().acall(slow, in_asyncio)).code == "timeout"
    assert trio.run(engine.session().acall, slow, in_trio).code == "timeout"
    assert cancelled == ["asyncio", "trio"]


def test_a_timed_tool_keeps_context_variables_and_errors() -> None:
    import contextvars

    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("seen")
    engine = Engine.from_text(TIMEOUT.replace("50ms", "1m"))
    slow = {"tool": "slow", "id": "s", "input": {}}
    assert engine.session().call(slow, lambda _: variable.get()).output == "seen"
    assert engine.session().call(slow, lambda _: {}["missing"]).error == "'missing'"


def test_a_cancelled_call_counts_as_started(state: str) -> None:
    engine = Engine.from_text("policies: [ { id: p, match: refund, rate_limit: { limit: 1, per: 1h } } ]", state=state)

    async def main() -> None:
        session = engine.session("chat 1")
        started = asyncio.Event()

        async def tool(_: ToolCall) -> Any:
            started.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(session.acall(SMALL, tool))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await session.acall({**SMALL, "id": "again"}, _never)).kind == "denied"

    asyncio.run(main())


def test_an_approved_call_that_was_cancelled_does_not_run_again(engine: Engine) -> None:
    async def main() -> None:
        session = engine.session("chat 1")
        request = (await session.acall(LARGE, _never)).approval
        assert request is not None
        started = asyncio.Event()

        async def tool(_: ToolCall) -> Any:
            started.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(session.aresume_call(LARGE, request, approve(), tool))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await session.aresume_call(LARGE, request, approve(), _never)).kind == "indeterminate"

    asyncio.run(main())


def test_a_session_is_used_by_many_threads() -> None:
    engine = Engine.from_text("policies: [ { id: p, match: refund, rate_limit: { limit: 50, per: 1h } } ]")
    session = engine.session("chat 1")
    kinds: list[str] = []

    def work(thread: int) -> None:
        for number in range(10):
            call = ToolCall("refund", {"amount": 1}, id=f"{thread}-{number}")
            kinds.append(session.call(call, lambda call: call.input).kind)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (kinds.count("executed"), kinds.count("denied")) == (50, 50)


def test_a_thread_waits_for_the_slot_of_another() -> None:
    engine = Engine.from_text("policies: [ { id: p, match: refund, concurrency: { max: 1, on_exceed: wait, max_wait: 1m } } ]")
    session = engine.session("chat 1")
    running = threading.Event()
    order: list[str] = []

    def first(_: ToolCall) -> None:
        running.set()
        deadline = time.monotonic() + 0.2
        while time.monotonic() < deadline:
            time.sleep(0.01)
        order.append("first")

    thread = threading.Thread(target=session.call, args=({**SMALL, "id": "1"}, first))
    thread.start()
    running.wait()
    assert session.call({**SMALL, "id": "2"}, lambda _: order.append("second")).kind == "executed"
    thread.join()
    assert order == ["first", "second"]


def test_an_event_loop_is_woken_by_another_thread() -> None:
    engine = Engine.from_text("policies: [ { id: p, match: refund, concurrency: { max: 1, on_exceed: wait, max_wait: 1m } } ]")
    session = engine.session("chat 1")
    running, release = threading.Event(), threading.Event()

    def first(_: ToolCall) -> None:
        running.set()
        release.wait(60)

    async def main(sleep: Any) -> str:
        async with _released_soon(release, sleep):
            return (await session.acall({**SMALL, "id": os.urandom(4).hex()}, lambda _: 1)).kind

    for name, run in (("asyncio", lambda: asyncio.run(main(asyncio.sleep))), ("trio", lambda: trio.run(main, trio.sleep))):
        running.clear()
        release.clear()
        thread = threading.Thread(target=session.call, args=({**SMALL, "id": name}, first))
        thread.start()
        running.wait()
        assert run() == "executed"
        thread.join()


class _released_soon:
    def __init__(self, release: threading.Event, sleep: Any) -> None:
        self.timer = threading.Timer(0.1, release.set)

    async def __aenter__(self) -> None:
        self.timer.start()

    async def __aexit__(self, *_: object) -> None:
        self.timer.join()


def test_a_thousand_concurrent_calls_need_no_threads(engine: Engine) -> None:
    async def main() -> int:
        session = engine.session("chat 1")
        gate = asyncio.Event()
        threads: list[int] = []

        async def tool(call: ToolCall) -> Any:
            await gate.wait()
            return call.input

        tasks = [
            asyncio.create_task(session.acall(ToolCall("other", {"n": n}, id=str(n)), tool)) for n in range(1000)
        ]
        await asyncio.sleep(0)
        while sum(not task.done() for task in tasks) < 1000:
            await asyncio.sleep(0)
        threads.append(threading.active_count())
        gate.set()
        outcomes = await asyncio.gather(*tasks)
        assert [outcome.output["n"] for outcome in outcomes] == list(range(1000))
        return threads[0]

    before = threading.active_count()
    assert asyncio.run(main()) == before


def test_an_aborted_session_runs_no_more_calls(engine: Engine) -> None:
    with engine.session("chat 1") as session:
        assert session.call(SMALL, lambda _: 1).is_ok
    assert session.call({**SMALL, "id": "late"}, _never).kind in ("halted", "aborted")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_forked_child_needs_an_engine_of_its_own(state: str, tmp_path: Path) -> None:
    engine = Engine.from_text(RULES, state=state)
    session = engine.session()
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    watcher = Engine.load(rules).watch()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        report = []
        for use in (lambda: engine.decide(SMALL), lambda: session.call(SMALL, _never), lambda: engine.session()):
            try:
                use()
                report.append("used")
            except StateError as error:
                report.append("refused" if "after the fork" in str(error) else str(error))
        own = Engine.from_text(RULES).session().call(SMALL, lambda _: 1).kind
        # Its threads are those of the parent: nothing may wait for them.
        watcher.close()
        del engine, session, watcher
        gc.collect()
        os.write(writer, ",".join([*report, own]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    watcher.close()
    assert os.read(reader, 1000) == b"refused,refused,refused,executed"
    assert engine.decide(SMALL).is_permitted


def test_observers_receive_redacted_events() -> None:
    events: list[dict[str, Any]] = []
    engine = Engine.from_text(RULES, observers=[events.append])
    engine.session("chat 1").call({"tool": "find_order", "id": "f", "input": {}}, lambda _: "ana@example.com")
    assert {event["tool"] for event in events if "tool" in event} == {"find_order"}
    assert "ana@example.com" not in repr(events) and "[email]" in repr(events)


def test_a_session_does_not_keep_its_tools() -> None:
    class Tool:
        def __call__(self, call: ToolCall) -> Any:
            return call.input

    tool = Tool()
    seen = weakref.ref(tool)
    session = Engine.from_text(RULES).session()
    assert session.call(SMALL, tool).is_ok
    del tool
    gc.collect()
    assert seen() is None


def test_rules_are_reloaded_when_their_files_change(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    engine = Engine.load(rules)
    changes: list[tuple[str, str]] = []
    changed = threading.Event()

    def on_change(kind: str, message: str) -> None:
        changes.append((kind, message))
        changed.set()

    with engine.watch(on_change, debounce=0.01):
        replace(rules, "policies: [ { id: none, match: '*', deny: {} } ]")
        assert changed.wait(60)
        assert changes[0] == ("applied", engine.revision)
        assert engine.decide(SMALL).effect == "deny"
        changed.clear()
        replace(rules, "policies: [ { id: none, mach: '*', deny: {} } ]")
        assert changed.wait(60)
        assert changes[1][0] == "rejected" and "CG201" in changes[1][1]
        assert engine.decide(SMALL).effect == "deny"
    with pytest.raises(StateError, match="no files"):
        Engine.from_text(RULES).watch()


def replace(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def test_histories_are_run_suspended_and_resumed(engine: Engine, state: str) -> None:
    messages = [
        {"role": "user", "content": "refund A1"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": json.dumps(LARGE["input"])}},
                {"id": "c2", "type": "function", "function": {"name": "price", "arguments": '{"article": "B"}'}},
            ],
        },
    ]
    history = History("openai-chat", messages)
    round = engine.session("chat 1").run_round(history, lambda call: f"ran {call.tool}")
    assert [outcome.kind for outcome in round] == ["suspended", "executed"]
    assert round.is_suspended and history.pending()[0]["approvalId"] == "approval_c1"
    # The history travels as JSON, and continues in an engine over the same store.
    stored = json.loads(json.dumps(history.messages()))
    history = History("openai-chat", stored)
    history.answer(approve().to_dict(history.pending()[0]))
    with pytest.raises(AnswerError):
        history.answer({"approvalId": "approval_unknown", "approved": True})
    again = Engine.from_text(RULES, state=state).session("chat 1")
    round = asyncio.run(again.aresume(history, lambda call: f"ran {call.tool}"))
    assert [(outcome.kind, outcome.output) for outcome in round] == [("executed", "ran refund")]
    tools = [message for message in history.for_provider() if message["role"] == "tool"]
    assert {message["tool_call_id"]: message["content"] for message in tools} == {"c1": "ran refund", "c2": "ran price"}
    with pytest.raises(StateError, match="another one for single calls"):
        again.call(SMALL, _never)


def test_answers_in_the_store_resume_a_call(engine: Engine, state: str) -> None:
    request = engine.session("chat 1").call(LARGE, _never).approval
    [waiting] = engine.approvals()
    assert waiting["status"] == "pending" and waiting["request"]["approvalId"] == "approval_large"
    other = Engine.from_text(RULES, state=state)
    with pytest.raises(AnswerError):
        other.answer({"approvalId": "approval_unknown"}, approve(), by="lea")
    other.answer(waiting["request"], deny("too much"), by="lea")
    assert request is not None
    outcome = engine.session("chat 1").resume_call(LARGE, request, [], _never)
    assert (outcome.kind, outcome.text) == ("denied", "lea denied this call: too much")
    with pytest.raises(StateError, match="no state store"):
        Engine.from_text(RULES).approvals()


def test_stores_that_cannot_be_opened_are_refused(tmp_path: Path) -> None:
    for url in ("nowhere", "redis://host", "file:", f"file:{tmp_path / 'missing' / 'state.db'}"):
        with pytest.raises(StoreError):
            Engine.from_text(RULES, state=url)
    with pytest.raises(StoreError, match="keys"):
        Engine.from_text(RULES, keys="short")


def test_guarded_functions_behave_as_before(engine: Engine) -> None:
    @guard(engine)
    def refund(order: str, amount: int = 40, *, note: str = "") -> dict[str, Any]:
        "Refunds an order."
        if order == "missing":
            raise LookupError("no order for ana@example.com")
        return {"order": order, "amount": amount}

    assert refund("A1") == refund(order="A1", amount=40) == {"order": "A1", "amount": 40}
    assert refund.__doc__ == "Refunds an order."
    with pytest.raises(TypeError):
        refund()  # type: ignore[call-arg]
    with pytest.raises(ToolFailedError, match="no order") as failed:
        refund("missing")
    assert isinstance(failed.value.__cause__, LookupError)
    with pytest.raises(ApprovalRequiredError) as pending:
        refund("A1", 250)
    assert pending.value.request["message"] == "Refund 250 for A1?"
    edited = approve(edited_input={"order": "A1", "amount": 90, "note": ""})
    assert refund.resume(pending.value, edited) == {"order": "A1", "amount": 90}
    with pytest.raises(ApprovalRequiredError) as pending:
        refund("A1", 250)
    with pytest.raises(CallDeniedError, match="too much"):
        refund.resume(pending.value, deny("too much"))


def test_guarded_coroutines_and_names(engine: Engine) -> None:
    @guard(engine.session("chat 1"), tool="delete_customer")
    async def remove(customer: str) -> None:
        raise AssertionError

    with pytest.raises(CallDeniedError, match="never deleted"):
        asyncio.run(remove("bob"))


def test_what_cannot_be_guarded_is_refused(engine: Engine) -> None:
    with pytest.raises(UnsupportedError, match="generator"):

        @guard(engine)
        def numbers() -> Any:
            yield 1

    with pytest.raises(UnsupportedError, match=r"\*values"):

        @guard(engine)
        def add(*values: int) -> int:
            return sum(values)


def test_calls_have_the_context_of_their_session() -> None:
    engine = Engine.from_text(
        "policies: [ { id: p, match: { tool: pay, where: { path: $.context.principal, eq: ana } }, deny: { message: not ana } } ]"
    )
    session = engine.session(context={"principal": "ana"})
    assert session.decide({"tool": "pay", "input": {}}).effect == "deny"
    assert session.call({"tool": "pay", "id": "1", "input": {}}, _never).text == "not ana"
    bob = ToolCall("pay", {}, id="2", context={"principal": "bob"})
    assert session.call(bob, lambda call: call.context["principal"]).output == "bob"
    rounds = engine.session(context={"principal": "ana"})
    assert [outcome.kind for outcome in rounds.run_calls([{"tool": "pay", "id": "1", "input": {}}], _never)] == ["denied"]
    with pytest.raises(InvalidValueError, match="must be a dict"):
        ToolCall("pay", {}, context=["ana"])  # type: ignore[arg-type]


def test_layers_tighten_the_rules(engine: Engine) -> None:
    session = engine.session(layers=["policies: [ { id: none, match: refund, deny: { message: not here } } ]"])
    assert session.call(SMALL, _never).text == "not here"
    with pytest.raises(RulesError):
        engine.session(layers=["policies: x"])


def test_tools_with_schemas_check_arguments() -> None:
    tools = [{"name": "pay", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}]
    engine = Engine.from_text("policies: [ { id: p, match: pay, validate: { schema: tool } } ]", tools=tools)
    assert engine.session().call({"tool": "pay", "id": "1", "input": {"n": "x"}}, _never).kind == "invalid"
    with pytest.raises(InvalidValueError):
        Engine.from_text("policies: []", tools=[{"title": 1}])


def test_memory_is_stable_over_many_calls(engine: Engine) -> None:
    import resource

    session = Engine.from_text(RULES).session()

    def run(count: int) -> None:
        for _ in range(count):
            session.call(ToolCall("other", {"text": "x" * 1000}), lambda call: call.input)

    run(2000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(10000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8000


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert callgate.__version__ == version("callgate")
    assert sys.version_info >= (3, 11)


def test_outcomes_are_readable() -> None:
    outcome = Engine.from_text(RULES).session().call(SMALL, lambda _: 1)
    assert isinstance(outcome, Outcome)
    assert repr(outcome) == 'Outcome(kind="executed", tool="refund", code="unmatched", message="no policy stops it")'
    assert repr(ToolCall("t", {"a": 1}, id="i")) == 'ToolCall(tool="t", input={"a":1}, id="i")'
