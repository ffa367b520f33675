"""The adapter of the MCP Python SDK in a real server, with the SDK's client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.server.mcpserver import MCPServer

from callgate import Engine, approve
from callgate.adapters.mcp_server import CallgateMiddleware


def server(engine: Engine, journal: Path, **options: Any) -> MCPServer[Any]:
    shop: MCPServer[Any] = MCPServer("shop", middleware=[CallgateMiddleware(engine, **options)])

    def record(line: str) -> str:
        with journal.open("a") as file:
            file.write(line + "\n")
        return line

    @shop.tool()
    def refund(order: str, amount: int) -> str:
        return record(f"refund {order} {amount}")

    @shop.tool()
    def delete_customer(customer: str) -> str:
        return record(f"delete {customer}")

    @shop.tool()
    def find_order(order: str) -> dict[str, Any]:
        return {"order": order, "buyer": "ana@example.com"}

    @shop.tool()
    def price(article: str) -> str:
        return record(f"price {article}")

    @shop.tool()
    def round_up(amount: int) -> str:
        return record(f"round {amount}")

    @shop.tool()
    def broken() -> str:
        raise ValueError("no printer")

    return shop


def calls(shop: MCPServer[Any], *requests: tuple[str, dict[str, Any]]) -> list[Any]:
    async def main() -> list[Any]:
        async with Client(shop) as client:
            return [await client.call_tool(tool, arguments) for tool, arguments in requests]

    return asyncio.run(main())


def text(result: Any) -> str:
    return str(result.content[0].text)


def test_allowed_denied_edited_cached_and_failing_calls(engine: Engine, journal: Path) -> None:
    allowed, denied, edited, first, cached, failed = calls(
        server(engine, journal),
        ("refund", {"order": "A1", "amount": 40}),
        ("delete_customer", {"customer": "bob"}),
        ("round_up", {"amount": 9}),
        ("price", {"article": "B"}),
        ("price", {"article": "B"}),
        ("broken", {}),
    )
    assert (allowed.is_error, text(allowed)) == (False, "refund A1 40")
    assert (denied.is_error, text(denied)) == (True, "Customers are never deleted")
    assert text(edited) == "round 10"
    assert text(first) == text(cached) == "price B"
    assert failed.is_error and text(failed) == "Error executing tool broken"
    assert journal.read_text() == "refund A1 40\nround 10\nprice B\n"


def test_results_are_redacted_in_every_form(engine: Engine, journal: Path) -> None:
    [result] = calls(server(engine, journal), ("find_order", {"order": "A1"}))
    assert "ana@example.com" not in repr(result) and "[email]" in text(result)
    assert result.structured_content["buyer"] == "[email]"


def test_the_same_call_runs_once_after_its_approval(engine: Engine, journal: Path) -> None:
    shop = server(engine, journal, caller=lambda _: "ana")
    [pending] = calls(shop, ("refund", {"order": "A1", "amount": 250}))
    assert pending.is_error and text(pending).startswith("Not run: pending approval. Refund 250 for A1?")
    engine.answer(engine.approvals()[0]["request"], approve(), by="lea")
    [done] = calls(shop, ("refund", {"order": "A1", "amount": 250}))
    assert (done.is_error, text(done)) == (False, "refund A1 250")
    assert journal.read_text() == "refund A1 250\n"


def test_a_caller_cannot_use_the_approval_of_another(engine: Engine, journal: Path) -> None:
    request = ("refund", {"order": "A1", "amount": 250})
    calls(server(engine, journal, caller=lambda _: "ana"), request)
    engine.answer(engine.approvals()[0]["request"], approve(), by="lea")
    [other] = calls(server(engine, journal, caller=lambda _: "bob"), request)
    assert other.is_error
    # Without a name, each connection is a caller of its own.
    [first], [second] = calls(server(engine, journal), request), calls(server(engine, journal), request)
    assert first.is_error and second.is_error
    assert journal.read_text() == ""


def test_other_requests_pass(engine: Engine, journal: Path) -> None:
    async def main() -> set[str]:
        async with Client(server(engine, journal)) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    assert "refund" in asyncio.run(main())
