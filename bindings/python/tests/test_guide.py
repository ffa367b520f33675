"""The quick starts of docs/guides/use-from-python.md run as they are, with scripted models in place of the named ones."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[3] / "docs/guides/use-from-python.md"
BLOCKS = dict(re.findall(r"^```(?:python|yaml) (\S+)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL))
ARGUMENTS = {"order": "A1", "amount": 250}
RESULT = "refunded 250 for A1"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "guide"
    home.mkdir(mode=0o700)
    for name, text in BLOCKS.items():
        if name in ("rules.yaml", "shop.py"):
            (home / name).write_text(text)
    monkeypatch.chdir(home)
    monkeypatch.syspath_prepend(str(home))
    sys.modules.pop("shop", None)


def run(name: str, model: Any = None, named: str = "") -> dict[str, Any]:
    code = BLOCKS[name]
    if named:
        assert named in code
        code = code.replace(named, "MODEL")
    names: dict[str, Any] = {"MODEL": model, "__name__": "guide"}
    exec(compile(code, name, "exec"), names)
    return names


FRAMEWORKS = ["langchain_agent.py", "openai_agent.py", "pydantic_agent.py", "server.py", "sdk_server.py"]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_quick_start_of_a_framework_has_ten_lines_beside_its_imports(name: str) -> None:
    lines = [line for line in BLOCKS[name].splitlines() if line and not re.match(r"(from|import) ", line)]
    assert len(lines) <= 10


@pytest.mark.parametrize("name", ["guard.py", "limits.py"])
def test_examples_print_what_the_page_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(name)
    after = GUIDE.read_text().split(f"```python {name}\n")[1]
    shown = re.search(r"^It prints:\n\n```text\n(.*?)^```$", after, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert capsys.readouterr().out == shown[1]


def test_langchain(capsys: pytest.CaptureFixture[str]) -> None:
    from test_langchain import ScriptedModel, call

    names = run("langchain_agent.py", ScriptedModel(calls=[call("refund", **ARGUMENTS)]), '"openai:gpt-5"')
    assert capsys.readouterr().out == "Refund 250 for A1?\ndone\n"
    assert names["result"]["messages"][-2].content == RESULT


def test_openai_agents() -> None:
    from test_openai_agents import ScriptedModel, outputs

    names = run("openai_agent.py", ScriptedModel([("refund", "c1", ARGUMENTS)]), '"gpt-5"')
    assert outputs(names["result"]) == [RESULT]


def test_pydantic_ai() -> None:
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from test_pydantic_ai import results

    def respond(messages: Any, _: Any) -> ModelResponse:
        if any(part.part_kind == "tool-return" for message in messages for part in message.parts):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("refund", ARGUMENTS, tool_call_id="c1")])

    names = run("pydantic_agent.py", FunctionModel(respond), '"openai:gpt-5"')
    assert names["result"].output == "done"
    assert results(names["result"]) == [RESULT]


def test_fastmcp() -> None:
    from fastmcp import Client

    server = run("server.py")["mcp"]

    async def main() -> str:
        async with Client(server) as client:
            result = await client.call_tool("refund", ARGUMENTS, raise_on_error=False)
            return str(result.content[0].text)

    assert asyncio.run(main()).startswith("Not run: pending approval. Refund 250 for A1?")


def test_mcp_sdk() -> None:
    from mcp import Client

    server = run("sdk_server.py")["mcp"]

    async def main() -> str:
        async with Client(server) as client:
            result = await client.call_tool("refund", ARGUMENTS)
            return str(result.content[0].text)

    assert asyncio.run(main()).startswith("Not run: pending approval. Refund 250 for A1?")


def test_policies_that_act_on_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    run("model.py")
    printed = capsys.readouterr().out
    assert printed in GUIDE.read_text() and printed.startswith("0.5 ['refund']")


def test_a_loop_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    run("loop.py")
    assert capsys.readouterr().out == "Refund 250 for A1?\nrefunded 250\n"
