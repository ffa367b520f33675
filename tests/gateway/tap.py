"""Runs a server's command as a proxy between it and the client, and logs every byte that the client receives.

Arguments: the log file, a marker for the server's environment that identifies leftover processes, and the command.
"""

import os
import subprocess
import sys
import threading

file, mark, *command = sys.argv[1:]
log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
server = subprocess.Popen(command, stdin=-1, stdout=-1, env={**os.environ, "CALLGATE_TEST": mark})


def to_server():
    try:
        while data := os.read(0, 1 << 16):
            server.stdin.write(data)
            server.stdin.flush()
    except OSError:
        pass
    server.stdin.close()


threading.Thread(target=to_server, daemon=True).start()
while data := os.read(server.stdout.fileno(), 1 << 16):
    os.write(log, data)
    try:
        os.write(1, data)
    except OSError:
        break
server.wait()
