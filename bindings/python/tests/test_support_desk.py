"""The example application examples/python/support_desk.py, with an approver who leaves in between."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from callgate import approve

DESK = runpy.run_path(str(Path(__file__).parents[3] / "examples/python/support_desk.py"))["Desk"]


class Left(Exception):
    pass


def leave(_: Any) -> Any:
    raise Left


def test_the_desk_continues_where_it_ended_and_refunds_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "desk"
    for _ in range(2):
        with pytest.raises(Left):
            DESK(directory).run(leave)
    asked: list[str] = []

    def edit(request: Any) -> Any:
        asked.append(request["message"])
        return approve(edited_input={**request["input"], "amount": 120})

    DESK(directory).run(edit)
    DESK(directory).run(leave)
    assert asked == ["Refund 250 for A2?"]
    journal = (directory / "journal.txt").read_text().splitlines()
    assert journal == ['refund {"order": "A1", "amount": 40}', 'refund {"order": "A2", "amount": 120}']
    printed = capsys.readouterr().out
    assert "delete_customer: denied: Customers are never deleted" in printed
    assert "[email]" in printed and "ana@example.com" not in printed
