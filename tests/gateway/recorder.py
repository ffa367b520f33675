"""An MCP server that logs every byte it receives before it parses it.

The argument is the log file. It has the tools `safe`, `danger`, `write` and `slow` (which answers with a delay), and executes every
call.
"""

import json
import os
import sys
import threading

log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
ANY = {"type": "object"}
PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [{"name": name, "inputSchema": PATH if name == "write" else ANY} for name in ("safe", "danger", "write", "slow")]
HELLO = {"capabilities": {"tools": {}}, "serverInfo": {"name": "recorder", "version": "1"}}
RESULTS = {
    "initialize": {"protocolVersion": "2025-11-25", **HELLO},
    "server/discover": {"resultType": "complete", "supportedVersions": ["2026-07-28"], **HELLO},
    "tools/list": {"tools": TOOLS},
}


def answer(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result(message)}) + "\n")
    sys.stdout.flush()


def result(message):
    if message["method"] == "tools/call":
        return {"content": [{"type": "text", "text": f"{message['params'].get('name')} did it"}]}
    return RESULTS.get(message["method"], {"done": message["method"]})


def handle(line):
    message = json.loads(line)
    if not isinstance(message, dict) or "method" not in message or "id" not in message:
        return
    is_slow = message["method"] == "tools/call" and message["params"].get("name") == "slow"
    threading.Timer(0.3, answer, [message]).start() if is_slow else answer(message)


rest = b""
while data := os.read(0, 1 << 20):
    os.write(log, data)
    *lines, rest = (rest + data).split(b"\n")
    for line in lines:
        handle(line)
