"""An MCP server whose tool returns its arguments byte by byte: it does not parse them, it cuts them out of the line."""

import json
import sys

RESULTS = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "echo", "version": "1"}},
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
}
START, END = b'"arguments":', b"}}"


def write(line):
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


for line in sys.stdin.buffer:
    line = line.strip()
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    id = json.dumps(message["id"]).encode()
    if message["method"] == "tools/call":
        assert line.endswith(END), line
        result = b'{"content":[],"structuredContent":' + line[line.index(START) + len(START) : -len(END)] + b"}"
    else:
        result = json.dumps(RESULTS.get(message["method"], {})).encode()
    write(b'{"jsonrpc":"2.0","id":' + id + b',"result":' + result + b"}")
