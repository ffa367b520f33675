"""A server on the official Python SDK, with features of the protocol since 2026-07-28 that no reference server has."""

import asyncio
import base64
import os

import mcp_types as types
from mcp.server.mcpserver import Context, Image, MCPServer

server = MCPServer("workshop", version="1", instructions="A place to try things.")


@server.tool()
async def sleepy(number: int) -> str:
    """The later called, the sooner it answers."""
    await asyncio.sleep((32 - number) / 100)
    return f"number {number}"


@server.tool()
async def steps(ctx: Context) -> str:
    """Tells of progress, and logs."""
    for step in range(3):
        await ctx.report_progress(step + 1, 3, f"step {step}")
        await ctx.log("info", {"step": step})
    return "done"


@server.tool()
async def forever(ctx: Context) -> str:
    await ctx.report_progress(0.5)
    await asyncio.sleep(60)
    return "never"


@server.tool()
async def ask(ctx: Context) -> str | types.InputRequiredResult:
    """Asks for a name, in the way of the protocol since 2026-07-28."""
    if (answers := ctx.input_responses) and "who" in answers:
        return f"{answers['who'].content['name']}, {ctx.request_state}"
    params = types.ElicitRequestFormParams(
        message="Who are you?", requested_schema={"type": "object", "properties": {"name": {"type": "string"}}}
    )
    return types.InputRequiredResult(input_requests={"who": types.ElicitRequest(params=params)}, request_state="mine")


@server.tool()
def structured() -> dict[str, float]:
    return {"zero": 0.0, "large": 1e300, "small": 5e-324}


@server.tool()
def image() -> Image:
    return Image(data=bytes(range(256)) * 4096, format="png")


@server.tool()
def sound() -> types.AudioContent:
    return types.AudioContent(type="audio", data=base64.b64encode(os.urandom(0) + b"RIFF" * 5000).decode(), mime_type="audio/wav")


@server.tool()
def leaks() -> list[str]:
    return ["write to ada@example.com", "or bob@example.com"]


@server.tool()
def fails() -> str:
    raise ValueError("no such thing as ada@example.com")


@server.tool()
async def touch(ctx: Context) -> str:
    await ctx.notify_resource_updated("note://one")
    return "touched"


@server.resource("note://one")
def note() -> str:
    return "a note, é \u2028"


@server.resource("blob://large", mime_type="application/octet-stream")
def blob() -> bytes:
    return bytes(range(256)) * 2048


@server.resource("note://{name}/text")
def named(name: str) -> str:
    return name


@server.prompt()
def greet(name: str) -> str:
    return f"Greet {name}"


@server.completion()
async def complete(ref, argument, context):
    return types.Completion(values=[argument.value + "a", argument.value + "b"], total=2, has_more=False)


server.run("stdio")
