"""Checks messages against the types that OpenAI, Anthropic and Google publish.

Reads one JSON object a line, `{name, dialect, document}`, and prints the rejected messages; the exit status is 1 if there are any.
A member that the types do not define is rejected too.
"""

import json
import sys
import typing

# The packages use `Iterable`, which pydantic checks only on iteration, but a list immediately. Their dependencies are imported
# before, unchanged.
import google.genai.types
import httpx2
import pydantic
import typing_extensions

typing.Iterable = typing.List

import anthropic.types
import openai.types.chat
import openai.types.responses


def forbid_unknown_members(package):
    for name, module in list(sys.modules.items()):
        if name.startswith(package):
            for value in vars(module).values():
                if typing_extensions.is_typeddict(value):
                    value.__pydantic_config__ = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)


forbid_unknown_members("openai.types")
forbid_unknown_members("anthropic.types")


def adapter(message):
    return pydantic.TypeAdapter(typing.List[message])


CHECKS = {
    "openai-chat": (adapter(openai.types.chat.ChatCompletionMessageParam), "messages"),
    "openai-responses": (adapter(openai.types.responses.ResponseInputItemParam), "input"),
    "anthropic": (adapter(anthropic.types.MessageParam), "messages"),
    "gemini": (adapter(google.genai.types.Content), "contents"),
}
ANTHROPIC_SYSTEM = pydantic.TypeAdapter(typing.Union[str, typing.List[anthropic.types.TextBlockParam]])


def check(dialect, document):
    messages, member = CHECKS[dialect]
    if isinstance(document, list):
        messages.validate_python(document)
        return
    if not isinstance(document[member], str):
        messages.validate_python(document[member])
    if dialect == "anthropic" and "system" in document:
        ANTHROPIC_SYSTEM.validate_python(document["system"])
    if dialect == "gemini" and "systemInstruction" in document:
        google.genai.types.Content.model_validate(document["systemInstruction"])


# The checks must reject invalid messages, including errors in nested values and unknown members.
WRONG = [
    ("openai-chat", [{"role": "tool", "content": "no id"}]),
    ("openai-chat", [{"role": "user", "content": [{"type": "tool-approval-request"}]}]),
    ("openai-chat", [{"role": "user", "content": "x", "more": 1}]),
    ("openai-responses", [{"type": "function_call", "name": "f", "arguments": {}}]),
    ("openai-responses", [{"role": "user", "content": [{"type": "callgate-part"}]}]),
    ("anthropic", [{"role": "user", "content": [{"type": "tool-approval-response"}]}]),
    ("anthropic", [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": "text"}]}]),
    ("gemini", [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]),
]


def rejected(dialect, document):
    try:
        check(dialect, document)
    except pydantic.ValidationError as error:
        return error
    return None


def nearest(error):
    """Returns the errors of the variant of the first invalid message that has the fewest."""
    variants = {}
    for found in error.errors(include_url=False, include_input=False):
        variants.setdefault(found["loc"][:2], []).append(f"{'.'.join(map(str, found['loc']))}: {found['msg']}")
    first = next(iter(variants))[0]
    return "\n".join(min((v for loc, v in variants.items() if loc[0] == first), key=len))


def main():
    for dialect, document in WRONG:
        if rejected(dialect, document) is None:
            sys.exit(f"the check of {dialect} accepts an invalid message: {json.dumps(document)}")
    count = failed = 0
    for line in sys.stdin:
        case = json.loads(line)
        count += 1
        error = rejected(case["dialect"], case["document"])
        if error is not None:
            failed += 1
            print(f"{case['name']} in {case['dialect']} is rejected:\n{nearest(error)}\n{json.dumps(case['document'], indent=1)}\n")
    print(f"{count} checked, {failed} rejected")
    sys.exit(1 if failed else 0)


main()
