"""`idstack doctor` on a real stack: faults where they happen, a Reader's rights, and the commands that it names."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import TypeAdapter

from identity.azure.client import AzureClient
from identity.clouds import local_cloud
from ops.doctor.checks.check import CheckResult, CheckStatus, diagnose
from ops.doctor.examination import CHECKS
from ops.stack.engine import Engine
from ops.world.reader import read_world
from ops.world.seen import Part, StackWorld, known
from tests.engine import broken
from tests.engine.reader import Reader, reader_of
from tests.harness import PROJECT, LocalStack

Blamed = tuple[str | None, str | None, str, str]

_RECORDED: Final = PROJECT / "tests/unit/ops/doctor/healthy.json"
_VARYING: Final = (
    re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    re.compile(r"\b[0-9a-f]{32}\b|\b[0-9A-F]{40}\b"),
    re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z"),
    re.compile(r"(?<=127.0.0.1):\d+"),
    re.compile(r"-[0-9a-f]{10}-[a-z0-9]{5}\b"),
)
_FAULTS: Final[set[Blamed]] = {
    (None, None, "backend", "abandoned-lock"),
    (None, None, "backend", "pending-operations"),
    ("hc1", "cloudProvider", "sign-in", "registration"),
    ("hc1", "nodePoolManagement", "vault", "secret"),
    ("hc1", "controlPlaneOperator", "vault", "secret"),
    ("hc1", "ingress", "proof-call", "role"),
    ("hc1", "network", "volume", "volume"),
    ("hc1", "disk", "class", "class"),
    ("hc1", "file", "class", "class"),
    ("hc1", "kms", "volume", "volume"),
}
# `status` does not ask why a pod has no volume.
_SEEN_BY_STATUS: Final = {fault for fault in _FAULTS if fault[2] != "volume"}


def doctor(stack: LocalStack) -> tuple[int, list[dict[str, Any]]]:
    """Exit code and results of the command."""
    done = stack.idstack("doctor", "--json", check=False)
    assert done.stdout, done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return done.returncode, results


def blamed(results: list[dict[str, Any]]) -> set[Blamed]:
    return {
        (result["cluster"], result["identity"], result["stage"], result["check"])
        for result in results
        if result["status"] == "broken"
    }


@contextmanager
def engine_of(stack: LocalStack, reader: Reader | None = None) -> Iterator[Engine]:
    """That of the stack's own commands, in this process; Azure is read as the reader, if one is given."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCALCLOUD_STATE_DIR", str(stack.state))
        if reader is not None:
            local, credential = stack.environment, reader.credential()
            azure = AzureClient(local_cloud(local), credential, local.ca_file)
            patch.setattr("ops.world.reader.deployer", lambda _: azure)
        yield Engine(stack.name, stack.root)


def test_the_recorded_world_is_what_the_readers_see(small: LocalStack) -> None:
    with engine_of(small) as engine:
        world = read_world(engine, frozenset(Part))

    assert {result.status for result in diagnose(world, CHECKS)} == {CheckStatus.OK}
    if os.environ.get("UPDATE_GOLDEN") == "1":
        _RECORDED.write_text(f"{_written(world)}\n", encoding="utf-8")
    recorded = TypeAdapter(StackWorld).validate_json(_RECORDED.read_bytes())
    assert _comparable(world) == _comparable(recorded)


def test_ten_faults_are_each_blamed_on_their_stage_and_repaired(small: LocalStack) -> None:
    broken.break_identities(small)
    with (
        broken.half_done(small, "hc1-ingress-roles-vnet"),
        broken.locked(small, pid=broken.dead_process(), host=socket.gethostname()),
    ):
        code, results = doctor(small)
        status = small.idstack("status", "--json", check=False)
        graph = small.idstack("graph", "--format", "json", check=False)
        one = small.idstack("doctor", "--identity", "hc1/ingress", "--json", check=False)

    assert (one.returncode, blamed(json.loads(one.stdout)["results"])) == (
        1,
        {("hc1", "ingress", "proof-call", "role")},
    )
    assert (code, blamed(results)) == (1, _FAULTS)
    assert (status.returncode, blamed(json.loads(status.stdout)["findings"])) == (1, _SEEN_BY_STATUS)
    assert graph.returncode == 1
    secrets = {node["identity"]: node for node in json.loads(graph.stdout)["nodes"] if node["kind"] == "secret"}
    assert {name for name, secret in secrets.items() if secret["health"] == "error"} == {
        "nodePoolManagement",
        "controlPlaneOperator",
    }
    found = {result["check"]: result for result in results if result["status"] == "broken"}
    lock = found["abandoned-lock"]
    assert re.match(r"locked for \d+ minutes by eve@.*which was killed", lock["evidence"])
    assert lock["fix"] == found["pending-operations"]["fix"] == "`.venv/bin/idstack recover --stack local`"
    assert found["role"]["fix"] == "`.venv/bin/idstack up --stack local --refresh`"
    assert found["registration"]["fix"].endswith(
        "`.venv/bin/idstack rotate --stack local --identity hc1/cloudProvider --register`"
    )
    small.idstack("rotate", "--identity", "hc1/cloudProvider", "--register", check=False)  # the others are still broken
    small.up("--refresh")
    with engine_of(small) as engine:  # a probe whose minute came before the repair says so until its next one
        broken.until(lambda: {result.status for result in _examined(engine)} == {CheckStatus.OK})
    # One result for each check of each place, of which several were broken.
    once = {tuple(result[key] for key in ("cluster", "identity", "stage", "check")): result for result in results}
    whole = [{**result, "status": "ok", "evidence": "", "fix": ""} for result in once.values()]
    assert doctor(small) == (0, whole)


@pytest.mark.slow
def test_a_document_that_no_loader_takes_is_named(small: LocalStack) -> None:
    """Pods that run keep the credential that they have loaded; one that starts has none."""
    before = broken.write_document(small, "azure-file-hc1-json", "no credential")
    try:
        broken.restart(small, "probe-file-csi")
        with engine_of(small) as engine:
            broken.until(lambda: any(result.stage == "document" for result in _broken(engine)))
            results = _broken(engine)
    finally:
        broken.write_document(small, "azure-file-hc1-json", before)
        small.up("--refresh")

    assert {(result.identity, str(result.stage)) for result in results} == {("file", "document")}
    assert small.preview() == {}


def test_a_reader_is_told_what_it_may_not_see_and_nothing_wrong(small: LocalStack, tmp_path: Path) -> None:
    with reader_of(small, tmp_path) as reader, engine_of(small, reader) as engine:
        results = _examined(engine)

    unchecked = [result for result in results if result.status is not CheckStatus.OK]
    assert {result.status for result in unchecked} == {CheckStatus.NOT_CHECKED}
    assert {(result.identity, result.check) for result in unchecked} == {
        (identity, check)
        for identity in ("cloudProvider", "nodePoolManagement")
        for check in ("registration", "added-credentials")
    }
    assert all("Authorization_RequestDenied" in result.evidence for result in unchecked)
    assert all("Application.Read.All" in result.evidence for result in unchecked)


def test_another_passphrase_is_named(small: LocalStack) -> None:
    passphrase = small.state / "pulumi/passphrase"
    before = passphrase.read_text()
    passphrase.write_text("another")
    try:
        code, results = doctor(small)
    finally:
        passphrase.write_text(before)

    assert (code, blamed(results)) == (1, {(None, None, "backend", "decryption")})
    assert not [result for result in results if result["status"] == "not-checked"]


def _examined(engine: Engine) -> list[CheckResult]:
    engine.forget()
    return diagnose(read_world(engine, frozenset(Part)), CHECKS)


def _broken(engine: Engine) -> list[CheckResult]:
    return [result for result in _examined(engine) if result.status is CheckStatus.BROKEN]


def _written(world: StackWorld) -> str:
    """As JSON, without the folder of a local stack in the paths of the kubelet's volumes."""
    text = TypeAdapter(StackWorld).dump_json(world, indent=1).decode()
    return re.sub(r'(?<=")/[^"]*(?=/\.localcloud/)', "", text)


def _comparable(world: StackWorld) -> list[str]:
    """The lines of a world without ids, dates and ports, and without events and the last run, which come and go.

    A test of the same stack that restores its checkpoint leaves the engine no history.
    """
    planes = {name: replace(known(control_plane), warnings=()) for name, control_plane in world.control_planes.items()}
    text = _written(replace(world, control_planes=planes, last_run=None))
    for pattern in _VARYING:
        text = pattern.sub("", text)
    return sorted(line.rstrip(",") for line in text.splitlines())
