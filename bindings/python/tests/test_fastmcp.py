"""The FastMCP adapter in a real server, with a real client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fastmcp import Client, FastMCP

from callgate import Engine, approve, deny
from callgate.adapters.fastmcp import CallgateMiddleware


def server(engine: Engine, journal: Path, **options: Any) -> FastMCP:
    shop = FastMCP("shop", middleware=[CallgateMiddleware(engine, caller=lambda _: "ana", **options)])

    def record(line: str) -> str:
        with journal.open("a") as file:
            file.write(line + "\n")
        return line

    @shop.tool
    def refund(order: str, amount: int) -> str:
        return record(f"refund {order} {amount}")

    @shop.tool
    def delete_customer(customer: str) -> str:
        return record(f"delete {customer}")

    @shop.tool
    def find_order(order: str) -> dict[str, Any]:
        return {"order": order, "buyer": "ana@example.com"}

    @shop.tool
    def price(article: str) -> str:
        return record(f"price {article}")

    @shop.tool
    def send_letter(to: str) -> str:
        return record(f"letter {to}")

    @shop.tool
    def round_up(amount: int) -> str:
        return record(f"round {amount}")

    @shop.tool
    def broken() -> str:
        raise ValueError("no printer")

    return shop


def call(shop: FastMCP, tool: str, **arguments: Any) -> tuple[bool, str, Any]:
    async def main() -> tuple[bool, str, Any]:
        async with Client(shop) as client:
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            return result.is_error, result.content[0].text, result.structured_content

    return asyncio.run(main())


def test_allowed_denied_and_edited_calls(engine: Engine, journal: Path) -> None:
    shop = server(engine, journal)
    assert call(shop, "refund", order="A1", amount=40)[:2] == (False, "refund A1 40")
    assert call(shop, "delete_customer", customer="bob")[:2] == (True, "Customers are never deleted")
    assert call(shop, "round_up", amount=9)[:2] == (False, "round 10")
    assert journal.read_text() == "refund A1 40\nround 10\n"


def test_results_are_redacted_in_every_form(engine: Engine, journal: Path) -> None:
    is_error, text, structured = call(server(engine, journal), "find_order", order="A1")
    assert not is_error
    assert "ana@example.com" not in text and "[email]" in text
    assert structured == {"order": "A1", "buyer": "[email]"}


def test_cached_and_limited_calls(engine: Engine, journal: Path) -> None:
    shop = server(engine, journal)
    assert call(shop, "price", article="B") == call(shop, "price", article="B")
    letters = [call(shop, "send_letter", to="bob") for _ in range(3)]
    assert [is_error for is_error, _, _ in letters] == [False, False, True]
    assert journal.read_text() == "price B\nletter bob\nletter bob\n"


def test_a_failing_tool_is_an_error_result(engine: Engine, journal: Path) -> None:
    is_error, text, _ = call(server(engine, journal), "broken")
    assert is_error and "no printer" in text


def test_the_same_call_runs_once_after_its_approval(engine: Engine, journal: Path) -> None:
    shop = server(engine, journal)
    is_error, text, _ = call(shop, "refund", order="A1", amount=250)
    assert is_error and text.startswith("Not run: pending approval. Refund 250 for A1?")
    [waiting] = engine.approvals()
    engine.answer(waiting["request"], approve(), by="lea")
    assert call(shop, "refund", order="A1", amount=300)[0], "another call is not approved"
    assert call(shop, "refund", order="A1", amount=250)[:2] == (False, "refund A1 250")
    assert journal.read_text() == "refund A1 250\n"


def test_a_denied_approval_is_an_error_result(engine: Engine, journal: Path) -> None:
    shop = server(engine, journal)
    call(shop, "refund", order="A1", amount=250)
    engine.answer(engine.approvals()[0]["request"], deny("too much"), by="lea")
    assert call(shop, "refund", order="A1", amount=250)[:2] == (True, "lea denied this call: too much")
    assert journal.read_text() == ""


def test_policies_see_the_context_of_the_host(journal: Path) -> None:
    engine = Engine.from_text(
        "policies: [ { id: clerks, match: { tool: price, where: { path: $.context.role, eq: clerk } }, deny: { message: 'Not for clerks' } } ]"
    )
    assert call(server(engine, journal, context={"role": "clerk"}), "price", article="B")[:2] == (True, "Not for clerks")
    assert call(server(engine, journal, context=lambda _: {"role": "admin"}), "price", article="B")[0] is False
