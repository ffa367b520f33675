"""A support desk with refunds: an agent on one side, an approver on the other, and a state store between them.

usage: python examples/python/support_desk.py

The agent's model is scripted. The approver answers on the terminal; an edit changes the amount. End the program at a question and start it
again: it continues there, and every refund runs once.
"""

import json
from pathlib import Path

from callgate import Engine, History, approve, deny

RULES = """
callgate: 1
policies:
  - id: large-refunds-need-approval
    match: { tool: refund, where: { path: $.input.amount, gt: 100 } }
    approval: { message: "Refund {{ input.amount }} for {{ input.order }}?", expires: 24h, edits: [$.input.amount] }
  - id: customers-stay
    match: delete_customer
    deny: { message: Customers are never deleted }
  - id: no-addresses
    match: find_order
    redact: { in: [output], detect: [email] }
"""

TURNS = [
    [("c1", "find_order", {"order": "A1"}), ("c2", "delete_customer", {"customer": "bob"})],
    [("c3", "refund", {"order": "A1", "amount": 40}), ("c4", "refund", {"order": "A2", "amount": 250})],
]


class Shop:
    """The tools. What they did is in a file."""

    def __init__(self, journal):
        self.journal = journal

    def __call__(self, call):
        if call.tool == "find_order":
            return {"order": call.input["order"], "buyer": "ana@example.com", "total": 290}
        with self.journal.open("a") as file:
            file.write(f"{call.tool} {json.dumps(call.input)}\n")
        return "done"


class Desk:
    """One conversation, whose history is stored after each step."""

    def __init__(self, directory):
        directory.mkdir(mode=0o700, exist_ok=True)
        self.file = directory / "history.json"
        self.shop = Shop(directory / "journal.txt")
        self.engine = Engine.from_text(RULES, state=f"file:{directory / 'state.db'}")
        messages = json.loads(self.file.read_text()) if self.file.exists() else [{"role": "user", "content": "Refund my orders."}]
        self.history = History("openai-chat", messages)

    def session(self):
        return self.engine.session("ticket-17", context={"principal": "agent", "tenant": "shop"})

    def store(self):
        self.file.write_text(json.dumps(self.history.messages()))

    def run(self, ask):
        """Runs the scripted turns to their end. `ask` gets an approval request, and returns the answer."""
        self.settle(self.session().resume(self.history, self.shop), ask)
        for turn in TURNS[self.turns() :]:
            calls = [
                {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
                for call_id, name, arguments in turn
            ]
            self.history.extend([{"role": "assistant", "content": None, "tool_calls": calls}])
            self.settle(self.session().run_round(self.history, self.shop), ask)

    def settle(self, round, ask):
        """Shows the outcomes of a round, and asks until none of its calls is pending."""
        self.store()
        for outcome in round:
            print(f"{outcome.tool}: {outcome.kind}: {outcome.text or outcome.message}")
        while requests := self.history.pending():
            for request in requests:
                self.history.answer(ask(request).to_dict(request))
            self.store()
            self.settle(self.session().resume(self.history, self.shop), ask)

    def turns(self):
        """How many turns of the model the history has."""
        return sum(message["role"] == "assistant" for message in self.history.messages())


def ask_on_the_terminal(request):
    answer = input(f"{request['message']} [yes, no, or another amount] ").strip()
    if answer.isdigit():
        return approve(edited_input={**request["input"], "amount": int(answer)})
    return approve() if answer == "yes" else deny("a person said no")


if __name__ == "__main__":
    Desk(Path("support-desk")).run(ask_on_the_terminal)
