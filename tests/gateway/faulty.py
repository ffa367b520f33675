"""A server whose tools misbehave, by name and arguments, in every way that servers do.

faulty.py FOLDER MARK: logs every line that it receives to FOLDER/log; reads the description of a tool from FOLDER/description; exits
at once if FOLDER/dead exists; queues requests while FOLDER/silent exists and answers them afterwards; notifies of each request that it
has answered if FOLDER/tells exists. MARK only identifies the process.
"""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

folder = Path(sys.argv[1])
lock = threading.Lock()
log = open(folder / "log", "a", buffering=1, encoding="utf-8")
asked = {}
NAMES = ["echo", "forbidden", "guarded", "die", "slow", "brief", "never", "say", "give", "fail", "ask", "stubborn", "form", "stay", "deafen"]

log.write(json.dumps({"started": os.getpid()}) + "\n")
if (folder / "dead").exists():
    os._exit(3)


def write(line):
    with lock:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")


def text(said):
    return {"content": [{"type": "text", "text": said}]}


def tools():
    description = (folder / "description").read_text() if (folder / "description").exists() else "Does it."
    return [{"name": name, "description": description if name == "echo" else "Does it.", "inputSchema": {"type": "object"}} for name in NAMES]


def call(id, params):
    name, arguments = params["name"], params.get("arguments") or {}
    if name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif name in ("slow", "brief"):
        answer = lambda: send({"id": id, "result": text("at last")})
        timer = threading.Timer(arguments["seconds"], answer)
        timer.daemon = True
        timer.start()
    elif name == "never":
        pass
    elif name == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        send({"method": "notifications/message", "params": {"level": "info", "data": "stubborn"}})
        time.sleep(600)
    elif name == "stay":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (folder / "stays").touch()
        send({"id": id, "result": text("it stays")})
    elif name == "deafen":
        # It receives nothing more, but can still send.
        os.close(0)
        time.sleep(arguments["seconds"])
        send({"id": id, "result": text("deaf")})
        os._exit(0)
    elif name == "say":
        # Latin-1, so that each character is one byte.
        write(arguments["lines"].replace("$ID", json.dumps(id)).encode("latin-1") * arguments.get("times", 1))
    elif name == "give":
        send({"id": id, "result": arguments["result"]})
    elif name == "fail":
        send({"id": id, "error": arguments["error"]})
    elif name == "form":
        # Asks for input with its result, `times` times.
        filled = int((params.get("requestState") or "form 0").removeprefix("form "))
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
        question = {"method": "elicitation/create", "params": {"mode": "form", "message": "Which colour?", "requestedSchema": schema}}
        asks = {"resultType": "input_required", "inputRequests": {"colour": question}, "requestState": f"form {filled + 1}"}
        done = {"resultType": "complete"} | text(f"filled {filled} times")
        send({"id": id, "result": asks if filled < arguments["times"] else done})
    elif name == "ask":
        asked["question"] = id
        schema = {"type": "object", "properties": {"decision": {"type": "string"}}}
        send({"id": "question", "method": "elicitation/create", "params": {"message": arguments["message"], "requestedSchema": schema}})
    else:
        send({"id": id, "result": text(f"done {arguments.get('text', '')}")})


def answer(message):
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "faulty", "version": "1"}}})
    elif method == "ping":
        send({"id": id, "result": {}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": tools()}})
    elif method == "tools/call":
        call(id, params)
    elif method is None and id in asked:
        send({"id": asked.pop(id), "result": text(json.dumps({key: message[key] for key in ("result", "error") if key in message}))})
    elif method is not None and id is not None:
        if not (folder / "mute").exists():
            send({"id": id, "error": {"code": -32601, "message": "there is no such method"}})
    if (folder / "tells").exists():
        send({"method": "notifications/message", "params": {"level": "info", "data": f"after {method}"}})


held = []
for line in sys.stdin.buffer:
    log.write(line.decode())
    held.append(json.loads(line))
    while held and not (folder / "silent").exists():
        answer(held.pop(0))
if (folder / "stays").exists():
    send({"method": "notifications/message", "params": {"level": "info", "data": "still here"}})
    time.sleep(600)
