"""Forks a process for each client, with the SDKs and the modules of this checkout imported.

`python -P server.py <directory> <socket>` serves until its standard input is closed; then it kills the processes that
are left and removes the directory.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

_CHECKOUT: Final = Path(__file__).resolve().parents[2]
# Rooms that a program or a plugin runs. `ops` is not one: it takes the folder it is in for the project.
_ROOMS: Final = ("components", "emulated", "identity", "localcloud", "plugin", "provider", "tools")
_OWN: Final = (
    "components.program",
    "emulated.azure_native.provider",
    "emulated.azuread.provider",
    "emulated.kubernetes.provider",
    "localcloud.kubelet.main",
    "localcloud.runtime.daemon",
    "provider.__main__",
)
_PACKAGES: Final = Path(__file__).with_name("packages.txt").read_text(encoding="utf-8").split()


@dataclass(frozen=True)
class Request:
    """A client's command line, what comes after `python`, and descriptors: its files 0 to 2 and its directory."""

    arguments: list[str]
    environment: dict[bytes, bytes]
    files: list[int]


def main() -> None:
    """Serve; in a forked process, become what the client asked for."""
    for package in _PACKAGES:
        getattr(importlib.import_module(package), "__all__", None)  # azure-native's modules load at the first look
    # A call of the engine for each of a thousand messages of a program, which it drops without `--debug`.
    vars(sys.modules["pulumi.log"])["debug"] = lambda *_, **__: None
    _load_keys_once()
    sys.path.insert(0, str(_CHECKOUT))
    for module in _OWN:
        importlib.import_module(module)
    sys.path.remove(str(_CHECKOUT))
    assert threading.active_count() == 1, "a fork keeps one thread only"
    gc.collect()
    gc.freeze()
    directory, address = sys.argv[1:]
    request = Server(address).serve()
    if request is not None:
        end(partial(become, request))
    shutil.rmtree(directory)


def _load_keys_once() -> None:
    """Have each process load its keys once; the modules of this checkout are not left behind in it."""
    sys.path.insert(0, str(_CHECKOUT))
    importlib.import_module("localcloud.testing.key_cache").load_keys_once()
    sys.path.remove(str(_CHECKOUT))
    for name in [module for module in sys.modules if module.partition(".")[0] == "tests"]:
        del sys.modules[name]


class Server:
    """Forks for each client, passes on its signals, and reports the exit code. A client's end ends its process."""

    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(address)
        self._listener.listen(64)
        self._selector = selectors.DefaultSelector()

    def serve(self) -> Request | None:
        """Serve until standard input ends; returns in each forked process, with what it is to be."""
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        print("serving", flush=True)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is sys.stdin:
                    self._kill_all()
                    return None
                if key.fileobj is self._listener:
                    request = self._accept()
                    if request is not None:
                        return request
                elif isinstance(key.fileobj, socket.socket):
                    self._pass_signals(key.fileobj, key.data)
                else:
                    self._report(key.fd, *key.data)

    def _accept(self) -> Request | None:
        client, _ = self._listener.accept()
        request = _read(client)
        if request is None:
            client.close()
            return None
        child = os.fork()
        if child == 0:
            self._close()
            client.close()
            return request
        for file in request.files:
            os.close(file)
        self._selector.register(client, selectors.EVENT_READ, child)
        self._selector.register(os.pidfd_open(child), selectors.EVENT_READ, (child, client))
        return None

    def _close(self) -> None:
        """In a forked process: the descriptors of the others are not its own."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            elif key.fileobj is not sys.stdin:
                os.close(key.fd)
        self._selector.close()

    def _pass_signals(self, client: socket.socket, child: int) -> None:
        if client.fileno() < 0:
            return  # its process has ended in the same round
        try:
            signals = client.recv(16)
        except ConnectionResetError:
            signals = b""
        if not signals:
            self._selector.unregister(client)
        for number in signals or (signal.SIGKILL,):
            os.kill(child, number)

    def _report(self, ended: int, child: int, client: socket.socket) -> None:
        self._selector.unregister(ended)
        os.close(ended)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with suppress(KeyError):
            self._selector.unregister(client)
        with suppress(OSError):
            client.send(bytes([code if code >= 0 else 128 - code]))
        client.close()

    def _kill_all(self) -> None:
        for key in self._selector.get_map().values():
            if isinstance(key.data, tuple):
                os.kill(key.data[0], signal.SIGKILL)


def _read(client: socket.socket) -> Request | None:
    """What a client asks for; None from one that is gone already."""
    try:
        head, files, _, _ = socket.recv_fds(client, 4, 4)
    except ConnectionResetError:
        head = b""
    if not head:
        return None
    length = int.from_bytes(head, "big")
    message = b""
    while len(message) < length:
        part = client.recv(length - len(message))
        if not part:
            return None
        message += part
    count, *rest = message.split(b"\0")
    arguments, environment = rest[: int(count)], rest[int(count) :]
    pairs = (variable.partition(b"=") for variable in environment)
    return Request([os.fsdecode(argument) for argument in arguments], {name: value for name, _, value in pairs}, files)


def become(request: Request) -> None:
    """Run the command line as the interpreter would: `[-P] -m module ...` or `[-P] script ...`."""
    *files, directory = request.files
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.fchdir(directory)
    for descriptor in request.files:
        os.close(descriptor)
    os.environb.clear()
    os.environb.update(request.environment)
    arguments = [argument for argument in request.arguments[:1] if argument != "-P"] + request.arguments[1:]
    is_module = arguments[0] == "-m"
    sys.argv = arguments[1:] if is_module else arguments
    sys.path[:0] = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    if request.arguments[0] != "-P":
        sys.path.insert(0, str(Path.cwd() if is_module else Path(sys.argv[0]).resolve().parent))
    _forget_another_checkout()
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


def _forget_another_checkout() -> None:
    """Leave the modules of this checkout only where the process would import the same ones."""
    places = {folder / "identity" for folder in (*map(Path, sys.path), Path.cwd())}
    if {place.resolve() for place in places if place.is_dir()} != {_CHECKOUT / "identity"}:
        for name in [module for module in sys.modules if module.partition(".")[0] in _ROOMS]:
            del sys.modules[name]


def end(program: Callable[[], object]) -> NoReturn:
    """Run the program and end as the interpreter does, but for the clean-up of all modules (a third of a second)."""
    code: object = 0
    try:
        program()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the interpreter does
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError, OSError):  # closed by the program, or by who reads it
            stream.flush()
    os._exit((code or 0) & 0xFF)


if __name__ == "__main__":
    main()
