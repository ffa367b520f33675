"""A process needs as much memory after many calls as after few: what a call allocates is freed when it ends."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys

from callgate import Engine, ToolCall, guard

RULES = """
policies:
  - { id: stay, match: delete, deny: { message: Nothing is deleted } }
  - { id: large, match: { tool: refund, where: { path: $.input.amount, gt: 100 } }, approval: {} }
  - { id: mails, match: refund, redact: { in: [output], detect: [email] } }
"""
#: Calls until the caches have their size.
WARM_UP = 10_000
CALLS = 60_000
#: How much may stay of each call, in bytes. An id takes twice as much, even if only one of the six kinds of calls remembers it.
TOLERANCE = 5


class MallocInfo(ctypes.Structure):
    """The `struct mallinfo2` of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def memory() -> int:
    """The bytes that the engine has allocated, and the number of blocks that Python has."""
    gc.collect()
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = MallocInfo
    found = mallinfo()
    return int(found.uordblks) + int(found.hblkhd) + sys.getallocatedblocks()


def test_calls_leave_nothing_in_memory() -> None:
    engine = Engine.from_text(RULES)
    session, rounds = engine.session(), engine.session()
    arguments = {"order": "A1", "amount": 40, "to": "ana@example.com"}

    def refund(call: ToolCall) -> dict[str, str]:
        return {"refunded": "ana@example.com"}

    async def arefund(call: ToolCall) -> str:
        return "ana@example.com"

    def fail(call: ToolCall) -> None:
        raise RuntimeError("out of order")

    @guard(engine, tool="refund")
    def guarded(order: str, amount: int, to: str) -> str:
        return to

    async def run(numbers: range) -> None:
        for number in numbers:
            call = {"id": f"toolu_{number}", "tool": "refund", "input": arguments}
            match number % 6:
                case 0:
                    session.call(call, refund)
                case 1:
                    session.call({**call, "id": "c1", "tool": "delete"}, refund)
                    session.call({**call, "id": "c1"}, fail)
                case 2:
                    rounds.run_calls([call], refund)
                case 3:
                    await session.acall(call, arefund)
                case 4:
                    guarded("A1", 40, "ana@example.com")
                case _:
                    engine.decide(call)

    asyncio.run(run(range(WARM_UP)))
    before = memory()
    asyncio.run(run(range(WARM_UP, WARM_UP + CALLS)))
    kept = (memory() - before) / CALLS
    assert kept < TOLERANCE, f"of each call stay {kept:.1f} bytes"
