"""Runs sessions with the official Python client, several concurrently.

The argument is a plan: a JSON list of {mode, elicits, command, script}. A script is a list of steps: a `request` (`cancelled` at
its first progress notification), concurrent steps (`together`), a notification to `wait` for or to send (`notify`), a resource to
`listen` to during another request, or a command that approves the last call (`approve`), with the id of the approval filled in. Prints the
client's result of each step, for each session.
"""

import asyncio
import json
import re
import sys

import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from pydantic import TypeAdapter

ANY = TypeAdapter(dict)


class Session:
    def __init__(self, plan):
        self.seen = {}
        self.arrived = asyncio.Event()
        command, *args = plan["command"]
        self.client = Client(
            StdioServerParameters(command=command, args=args),
            mode=plan["mode"],
            read_timeout_seconds=60,
            log_level="debug",
            sampling_callback=self.sample,
            elicitation_callback=self.elicit if plan["elicits"] else None,
            list_roots_callback=self.roots,
            logging_callback=self.log,
            message_handler=self.hear,
            cache=None,
        )

    async def sample(self, context, params):
        text = types.TextContent(type="text", text="as I was asked")
        return types.CreateMessageResult(role="assistant", content=text, model="m", stop_reason="endTurn")

    async def elicit(self, context, params):
        if isinstance(params, types.ElicitRequestURLParams):
            return types.ElicitResult(action="accept")
        if "Callgate" in params.message:
            return types.ElicitResult(action="accept", content={"decision": "approve"})
        return types.ElicitResult(action="accept", content={"name": "Ada", "check": True})

    async def roots(self, context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///somewhere", name="somewhere")])

    async def log(self, params):
        self.note("notifications/message")

    async def hear(self, message):
        if isinstance(message, Exception):
            self.note("exception")
        elif message.method != "notifications/message":
            self.note(message.method)

    def note(self, what):
        self.seen[what] = self.seen.get(what, 0) + 1
        self.arrived.set()

    async def wait_for(self, method, count):
        while self.seen.get(method, 0) < count:
            self.arrived.clear()
            await asyncio.wait_for(self.arrived.wait(), 30)

    async def request(self, step, on_progress=None):
        method, params = step["request"], step.get("params", {})
        if method == "tools/call":
            return await self.client.call_tool(
                params["name"], params.get("arguments"), progress_callback=on_progress if on_progress or "progress" in step else None
            )
        if method == "tools/list":
            return await self.client.list_tools()
        if method == "resources/read":
            return await self.client.read_resource(params["uri"])
        if method == "prompts/get":
            return await self.client.get_prompt(params["name"], params.get("arguments"))
        return await self.client.session.send_request(types.Request(method=method, params=params or None), ANY)

    async def perform(self, step):
        if "together" in step:
            return await asyncio.gather(*(self.run_step(one) for one in step["together"]))
        if "wait" in step:
            return await self.wait_for(step["wait"], step.get("count", 1))
        if "approve" in step:
            asked = re.search(r"approval_[0-9a-f]{8}-\d+(?:_\d+)?", json.dumps(self.last_result)).group()
            command = [asked if part == "<id>" else part for part in step["approve"]]
            return (await (await asyncio.create_subprocess_exec(*command, stdout=-3)).wait())
        if "notify" in step:
            return await self.client.session.send_notification(types.Notification(method=step["notify"], params=None))
        if "listen" in step:
            async with self.client.listen(tools_list_changed=True, resource_subscriptions=[step["listen"]]) as heard:
                await self.request(step["then"])
                return str(await asyncio.wait_for(anext(aiter(heard)), 30))
        if "cancelled" not in step:
            async def progress(*_):
                self.note("notifications/progress")

            return await self.request(step, progress if "progress" in step else None)
        began = asyncio.Event()

        async def progress(*_):
            began.set()

        running = asyncio.create_task(self.request(step, progress))
        await asyncio.wait_for(began.wait(), 30)
        running.cancel()
        return None

    async def run_step(self, step):
        try:
            result = await self.perform(step)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return result.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(result, "model_dump") else result

    async def run(self, script):
        async with self.client:
            results = [self.client.protocol_version]
            for step in script:
                self.last_result = await self.run_step(step)
                results.append(self.last_result)
            return results


async def main():
    plans = json.load(open(sys.argv[1]))

    # Bounded for small machines.
    limit = asyncio.Semaphore(4)

    async def run(plan):
        async with limit:
            return await asyncio.wait_for(Session(plan).run(plan["script"]), 120)

    print(json.dumps(await asyncio.gather(*map(run, plans))))


asyncio.run(main())
