"""What breaks in the night: `status`, `doctor` and `graph` give one answer, `explain` the same, and its fix repairs."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pytest

from localcloud.testing.running import DAEMON, processes
from tests.engine import broken
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

pytestmark = pytest.mark.slow

_AZ: Final = re.compile(r"`az keyvault secret set-attributes --vault-name \S+ --name (\S+) --enabled true`")
_COMMAND: Final = re.compile(r"`(\.venv/bin/idstack [^`]+)`")
_OLD: Final = 1200  # seconds: longer than a driver's poll


def _disable(stack: LocalStack) -> None:
    with OutOfBand(stack).secrets() as secrets:
        secrets.update_secret_properties("cpo-hc1-json", enabled=False)


def _take_role(stack: LocalStack) -> None:
    OutOfBand(stack).arm("DELETE", stack.resource("hc1-ingress-roles-vnet")["id"], broken.AUTHORIZATION)


def _withdraw(stack: LocalStack) -> None:
    application = stack.resource("hc1-cloud-provider-entra-application")["id"]
    OutOfBand(stack).graph("PATCH", application, {"keyCredentials": []})


def _edit_class(stack: LocalStack) -> None:
    with stack.kubernetes() as http:
        broken.patch_class(http, "managed-azure-disk-csi", {"tenantId": "another"})


def _signal(stack: LocalStack, name: str, number: signal.Signals) -> None:
    process = processes.alive(stack.state / "pids", name)
    assert process is not None
    os.kill(process.pid, number)


def _kill(stack: LocalStack, name: str) -> None:
    _signal(stack, name, signal.SIGKILL)
    broken.until(lambda: processes.alive(stack.state / "pids", name) is None)


def _renew_unseen(stack: LocalStack) -> None:
    """The kubelet ends, and a version that no pod gets is older than a poll."""
    # While it stands still, `start` starts no other, which might mount the version before it is killed.
    _signal(stack, "kubelet", signal.SIGSTOP)
    secret = "azure-file-hc1-json"
    with OutOfBand(stack).secrets() as secrets:
        before = secrets.get_secret(secret)
    broken.write_document(stack, secret, before.value or "")
    _kill(stack, DAEMON)
    with closing(sqlite3.connect(stack.state / "state.sqlite")) as connection, connection:
        query = "FROM documents WHERE kind = 'keyvault-secret' AND key LIKE ?"
        [[key, text]] = connection.execute(f"SELECT key, document {query}", (f"%/{secret}",))
        document = json.loads(text)
        document["versions"][-1]["created"] -= _OLD
        connection.execute("UPDATE documents SET document = ? WHERE key = ?", (json.dumps(document), key))
    stack.local_cloud("start")
    _kill(stack, "kubelet")


@dataclass(frozen=True)
class Breakage:
    """Something breaks: `identity` and `check` are blamed; `code` is Azure's in a log or an event, None without one.

    `check_of_others` is blamed of every other identity.
    """

    happens: Callable[[LocalStack], None]
    identity: str | None
    check: str
    code: str | None = None
    check_of_others: str | None = None


_BREAKAGES: Final = {
    "secret-disabled": Breakage(_disable, "controlPlaneOperator", "secret", "SecretDisabled"),
    "role-gone": Breakage(_take_role, "ingress", "role", "AuthorizationFailed"),
    "certificate-withdrawn": Breakage(_withdraw, "cloudProvider", "registration", "AADSTS700027"),
    "class-edited": Breakage(_edit_class, "disk", "class"),
    "daemon-killed": Breakage(lambda stack: _kill(stack, DAEMON), None, "azure"),
    "file-old": Breakage(_renew_unseen, "file", "mount", check_of_others="pod"),
    "kubelet-killed": Breakage(lambda stack: _kill(stack, "kubelet"), "file", "pod", check_of_others="pod"),
}


@dataclass(frozen=True)
class Answers:
    """Exit codes and findings of the three commands, and what `doctor` prints as a fix."""

    codes: dict[str, int]
    blamed: dict[str, set[tuple[str | None, str]]]
    fixes: list[str]


def answers(stack: LocalStack) -> Answers:
    """The three commands, one after the other."""
    printed = {name: stack.idstack(name, *options, check=False) for name, options in _ASKED.items()}
    results = json.loads(printed["doctor"].stdout)["results"]
    found = [result for result in results if result["status"] == "broken"]
    blamed = {"doctor": {(one["identity"], one["check"]) for one in found}}
    blamed |= {name: set(_named(name, printed[name].stdout, printed[name].stderr)) for name in ("status", "graph")}
    codes = {name: done.returncode for name, done in printed.items()}
    return Answers(codes, blamed, [one["fix"] for one in found])


_ASKED: Final = {"status": ("--json",), "doctor": ("--json",), "graph": ("--format", "json")}


def _named(command: str, text: str, error: str) -> Iterator[tuple[str | None, str]]:
    if not text:
        assert "signing in to Azure: " in error
        yield None, "azure"
    elif command == "status":
        yield from ((one["identity"], one["check"]) for one in json.loads(text)["findings"])
    else:
        for stage, check, places in re.findall(
            r"^broken  ([a-z-]+)(?: \(([a-z-]+)\))?: hc1 (.+)$", error, re.MULTILINE
        ):
            yield from ((identity, check or stage) for identity in places.split(", "))


def repair(stack: LocalStack, fix: str) -> None:
    """Do what is printed."""
    if disabled := _AZ.search(fix):
        with OutOfBand(stack).secrets() as secrets:
            secrets.update_secret_properties(disabled[1], enabled=True)
        return
    [command, *_] = _COMMAND.findall(fix)
    # It may end with its status, in which pods have not loaded the new credential yet: what follows is the proof.
    stack.run(stack.python, "-m", "ops", *shlex.split(command)[1:], check=False)


@pytest.mark.parametrize("name", _BREAKAGES)
def test_three_commands_blame_the_same_and_the_printed_fix_repairs_it(own: LocalStack, name: str) -> None:
    breakage = _BREAKAGES[name]
    breakage.happens(own)
    seen = answers(own)
    for fix in seen.fixes:
        repair(own, fix)
    broken.until(lambda: set(answers(own).codes.values()) == {0}, lambda: answers(own))

    others = own.control_plane if breakage.check_of_others else ()
    blamed: dict[str | None, str | None] = dict.fromkeys(others, breakage.check_of_others)
    blamed[breakage.identity] = breakage.check
    assert (seen.codes, seen.blamed) == (dict.fromkeys(_ASKED, 1), {name: set(blamed.items()) for name in _ASKED})
    if breakage.code is not None:
        explained = json.loads(own.idstack("explain", breakage.code, "--json").stdout)
        commands = [command for row in explained for command in re.findall(r"`[^`]+`", row["fix"])]
        assert any(re.search(_filled_in(command), fix) for command in commands for fix in seen.fixes)


def _filled_in(command: str) -> str:
    """A pattern of the command with names for its placeholders."""
    return re.sub(r"<[^>]+>", r"[^/ ]+", re.escape(command))
