"""What happens behind the stack's back in a storm: to an identity's secret, to the backend, to what Graph answers, and
by stacks that could take its things for theirs; and the faults of a day.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from identity import resource_types
from identity.credentials.secret_tags import DELIVERED_AT, GENERATION, THUMBPRINT
from localcloud.testing.faults import HeldAnswer, HeldLag
from tests.engine.held_faults import DROPPED, Fault, gate_refuses, held, registration_fails, vault_write_fails
from tests.engine.other_stacks import a_copy, another_backend
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack
from tests.storm.world import SECRETS, World

# The engine hangs after a deletion that failed: `executeChain` of pulumi v3.259 gives the program no answer then.
_REFUSED: Final = r"was stopped, because it hung after a failed deletion|\*\*creating failed\*\*.*RequestDenied"
FAULTS: Final[Mapping[str, tuple[Callable[[LocalStack], Fault], str]]] = {
    "gate": (gate_refuses, "at best 0 in a row, last failure AADSTS700027"),
    "vault": (vault_write_fails, "the secret was not written: .* 403 .*AuthorizationFailed"),
    "vault-answer": (partial(vault_write_fails, status=DROPPED, after=True), "not written: .* does not answer"),
    "graph": (registration_fails, _REFUSED),
    "graph-answer": (partial(registration_fails, after=True), _REFUSED),
    "arm": (lambda _: HeldAnswer("arm", status=403), "which cannot be read: request failed"),
    "entra": (lambda _: HeldAnswer("entra", status=503, code="temporarily_unavailable"), "cannot sign in.* 503"),
}
"""Who refuses, or does without its answer arriving, and what a renewal says then; during the last nobody signs in."""
# Of the newest version, by what a storm's operation calls them. A date in the year 2036 is after any storm.
_TAGS: Final = {
    "generation": {GENERATION: "b999999999"},
    "delivered": {DELIVERED_AT: "2000-01-01T00:00:00Z"},
    "thumbprint": {THUMBPRINT: "AB" * 20},
}
_LATE: Final = datetime(2036, 1, 1, tzinfo=UTC)
_LAGS_FOR: Final = 40.0  # seconds


def put_back(world: World, identity: str, *, with_tags: bool) -> None:
    """Write what the vault had before, if it had anything, as the newest version, as after a restore."""
    name, versions = SECRETS[identity], world.secrets()[identity]
    if len(versions) == 1:
        return
    with OutOfBand(world.stack).secrets() as vault:
        vault.update_secret_properties(name, versions[-2]["version"], enabled=True)
        older = vault.get_secret(name, versions[-2]["version"])
        kept: dict[str, Any] = {"content_type": older.properties.content_type}
        if with_tags:
            kept |= {
                "tags": older.properties.tags,
                "not_before": older.properties.not_before,
                "expires_on": older.properties.expires_on,
            }
        vault.set_secret(name, older.value or "", **kept)


def edit(world: World, identity: str, what: str) -> None:
    """Change a tag of the newest version (`generation`, `delivered`, `thumbprint`), or its `nbf`."""
    name, newest = SECRETS[identity], world.secrets()[identity][-1]
    change: dict[str, Any] = {"not_before": _LATE}
    if what != "nbf":
        change = {"tags": {**newest["tags"], **_TAGS[what]}}
    with OutOfBand(world.stack).secrets() as vault:
        vault.update_secret_properties(name, newest["version"], **change)


def correct(world: World, identity: str, not_before: datetime) -> None:
    """Put the `nbf` of the newest version right."""
    with OutOfBand(world.stack).secrets() as vault:
        vault.update_secret_properties(SECRETS[identity], not_before=not_before)


@contextmanager
def planted(world: World, identity: str) -> Iterator[str]:
    """The path of an application that somebody made with the tags of the identity's, which is deleted meanwhile."""
    by, client = OutOfBand(world.stack), world.stack.control_plane[identity]["clientID"]
    own = by.graph("GET", f"/applications(appId='{client}')")
    by.graph("DELETE", f"/applications/{own['id']}")
    made = by.graph("POST", "/applications", {"displayName": own["displayName"], "tags": own["tags"]})
    by.graph("POST", f"/applications/{made['id']}/addPassword", {"passwordCredential": {"displayName": "theirs"}})
    try:
        yield f"/applications/{made['id']}"
    finally:
        by.graph("DELETE", f"/applications/{made['id']}")
        by.graph("POST", f"/directory/deletedItems/{own['id']}/restore", {})


def lose(world: World, identity: str, what: str) -> None:
    """Take from the state an identity's schedule, or the registration in use with its gate, and their dependents."""
    client = world.stack.control_plane[identity]["clientID"]
    [schedule] = [
        resource
        for resource in world.stack.resources()
        if resource["type"] == resource_types.RENEWAL_SCHEDULE and resource["inputs"]["clientId"] == client
    ]
    urn = schedule["urn"]
    if what == "gate":
        name = urn.rpartition("::")[2].removesuffix("schedule")
        urn = world.stack.resource(f"{name}registration-{schedule['inputs']['current']}")["urn"]
    world.stack.pulumi("state", "delete", urn, "--yes", "--target-dependents")


def lose_the_backend(world: World) -> None:
    """The state of every stack is gone."""
    shutil.rmtree(world.stack.state / "pulumi/backend/.pulumi")


@contextmanager
def late_reads(world: World, seed: int) -> Iterator[None]:
    """For a while half of the stack's own reads of an application's certificates show none that came after this."""
    now = datetime.now(UTC)
    with held(
        world.stack, HeldLag("graph", ("GET",), "appId=", since=now, probability=0.5, seed=seed, seconds=_LAGS_FOR)
    ):
        yield


@contextmanager
def neighbour(world: World) -> Iterator[str]:
    """The name of a second stack of the backend, in whose configuration a cluster has this stack's infraID."""
    copy = a_copy(world.stack)
    try:
        yield copy.name
    finally:
        copy.pulumi("stack", "rm", "--yes", copy.name)


@contextmanager
def twin(world: World, *, is_up: bool) -> Iterator[None]:
    """A stack of this name in another backend is what the commands find: empty, or with a vault and an owner id."""
    vault = {key: world.stack.outputs[key] for key in ("keyVaultId", "keyVaultName")} if is_up else {}
    with another_backend(world.stack, vault, str(uuid.uuid4()) if is_up else None):
        yield
