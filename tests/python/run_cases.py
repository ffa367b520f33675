"""Runs cases and histories through the Python package: one as JSON on each line of the input, its outcomes as JSON on each line of the output.

Numbers are read as `int` and `Decimal`, so that they reach the engine as they are written.
"""

import json
import sys
from decimal import Decimal

from callgate import Engine, History, RulesError, ToolCall, ToolError, ToolResponse

KEYS = "5a" * 32
NOON = "2026-01-01T12:00:00Z"


def call_of(entry):
    call = entry["call"]
    options = {"id": call["id"], "server": call.get("server"), "context": call.get("context")}
    if entry["method"] is not None:
        return ToolCall.for_method(entry["method"], call["input"], **options)
    return ToolCall(call["tool"], call["input"], **options)


def run(case):
    results = {}
    for call_id, recorded in case["results"]:
        results.setdefault(call_id, recorded)

    def tool(call):
        recorded = results.get(call.id)
        if recorded is None:
            return ToolResponse(None, dry=True)
        if "output" in recorded:
            return recorded["output"]
        raise ToolError(recorded["error"], recorded["kind"])

    try:
        engine = Engine.from_text(case["rules"], keys=KEYS, tools=case["tools"], fixed_time=NOON)
    except RulesError as error:
        return {"error": str(error)}
    session = engine.session(layers=case["layers"])
    outcomes = []
    for round in case["rounds"]:
        if round["task"] is not None:
            session.set_task(round["task"])
        calls = [call_of(entry) for entry in round["calls"]]
        outcomes += [outcome.to_json() for outcome in session.run_calls(calls, tool)]
    return {"outcomes": outcomes, "state": session.state()}


def run_history(case):
    engine = Engine.from_text(case["rules"], keys=KEYS, fixed_time=NOON)
    history = History(case["dialect"], case["messages"])
    round = engine.session(name="s").run_round(history, lambda call: case["output"])
    return {"outcomes": [json.loads(outcome.to_json(), parse_float=Decimal) for outcome in round], "messages": history.messages()}


def write(value):
    """JSON in which a `Decimal` keeps its digits."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{write(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(write, value)) + "]"
    return str(value).replace("E+", "e").replace("E", "e") if isinstance(value, Decimal) else json.dumps(value)


for line in sys.stdin:
    case = json.loads(line, parse_float=Decimal)
    print(write(run_history(case) if "messages" in case else run(case)))
