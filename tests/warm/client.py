"""The `python` of a warm virtual environment: hands its command line, files and signals to the server.

The file is copied there with a first line and a call of `main` around it. What is neither module nor script, or comes
when there is no server, goes to the real interpreter.
"""

import os
import signal
import socket
import sys


def main(address: str, interpreter: str) -> int:
    """Run this process's arguments through the server at `address`; returns the exit code."""
    arguments = sys.argv[1:]
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if not _is_served(arguments):
            raise ConnectionRefusedError
        server.connect(address)
    except OSError:
        os.execv(interpreter, [interpreter, *arguments])  # noqa: S606  # no shell, on purpose
    environment = [b"=".join(pair) for pair in os.environb.items()]
    message = b"\0".join([b"%d" % len(arguments), *map(os.fsencode, arguments), *environment])
    directory = os.open(".", os.O_DIRECTORY)
    socket.send_fds(server, [len(message).to_bytes(4, "big")], [0, 1, 2, directory])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: server.send(bytes([number])))
    server.sendall(message)
    code = server.recv(1)
    # No code at all: the server is gone, and with it the process.
    return code[0] if code else 1


def _is_served(arguments: list[str]) -> bool:
    """Whether they name a module or a script, after `-P`."""
    first = next((argument for argument in arguments if argument != "-P"), "-")
    return first == "-m" or not first.startswith("-")
