"""Faults that a test holds for as long as a block runs; the local cloud goes on meanwhile, without a restart.

`with held(stack, vault_write_fails(stack), gate_refuses(stack, "hc1-cloud-provider")):`. An identity is named as its
component in the stack (`identity.naming.control_plane_identity_name`), and must have been brought up once; without one
a fault is about all of them. Blocks may be nested. By default a write is refused with 403, which no client repeats:
azuread repeats 5xx for ten minutes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from localcloud.testing.faults import FaultHolder, HeldAnswer, HeldFaults, HeldLag, HeldReplication
from localcloud.testing.running import StateDirectory
from tests.harness import LocalStack

Fault = HeldAnswer | HeldReplication | HeldLag
DROPPED: Final = None
"""As a status: the connection is closed without an answer."""


@contextmanager
def held(stack: LocalStack, *faults: Fault) -> Iterator[None]:
    """Hold faults on the stack's local cloud, beside those that are held already."""
    before = FaultHolder(StateDirectory(stack.state).held_faults_file).now()
    more = replace(
        before,
        answers=(*(fault for fault in faults if isinstance(fault, HeldAnswer)), *before.answers),
        replication=(*(fault for fault in faults if isinstance(fault, HeldReplication)), *before.replication),
        lags=(*(fault for fault in faults if isinstance(fault, HeldLag)), *before.lags),
    )
    with dialled(stack, more):
        yield


@contextmanager
def dialled(stack: LocalStack, faults: HeldFaults) -> Iterator[None]:
    """Hold these faults and no others on the stack's local cloud; those of before are back afterwards."""
    file = StateDirectory(stack.state).held_faults_file
    before = FaultHolder(file).now()
    _write(file, faults)
    try:
        yield
    finally:
        _write(file, before)


def gate_refuses(stack: LocalStack, identity: str | None = None) -> HeldReplication:
    """Entra ID accepts no certificate that is registered from now on, so that no gate passes it.

    The certificates that pods have go on working: a test that sees one refused has found one that was removed.
    """
    return HeldReplication(datetime.now(UTC), _application(stack, identity)["clientId"].lower() if identity else None)


def vault_write_fails(
    stack: LocalStack, identity: str | None = None, *, status: int | None = 403, after: bool = False
) -> HeldAnswer:
    """ARM refuses to write a secret; `after`: it has written it, and only the answer is lost."""
    secret = "[^/]+"
    if identity:
        secret = re.escape(stack.resource(f"{identity}-credential-secret")["id"].rpartition("/")[2])
    code = "AuthorizationFailed" if status == 403 else "InternalServerError"
    path = f"/vaults/[^/]+/secrets/{secret}$"
    return HeldAnswer("arm", ("PUT", "PATCH"), path, status=status, code=code, after=after)


def registration_fails(
    stack: LocalStack, identity: str | None = None, *, status: int | None = 403, after: bool = False
) -> HeldAnswer:
    """Graph refuses to change an application's certificates; `after`: it has, and only the answer is lost."""
    application = "/applications"
    if identity:
        found = _application(stack, identity)
        application += f"(/{found['objectId']}|.appId='{found['clientId']}'.)$"
    code = "Authorization_RequestDenied" if status == 403 else "Service_InternalServerError"
    return HeldAnswer("graph", ("PATCH",), application, '"keyCredentials"', status, code, after=after)


def _application(stack: LocalStack, identity: str) -> dict[str, str]:
    outputs: dict[str, str] = stack.resource(f"{identity}-entra-application")["outputs"]
    return outputs


def _write(file: Path, faults: HeldFaults) -> None:
    if faults == HeldFaults():
        file.unlink(missing_ok=True)
        return
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(faults.to_json(), encoding="utf-8")
    draft.replace(file)
