"""A change of a stack's configuration: the steps of `up`, and what they did to the local cloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

from identity.catalogue import CONTROL_PLANE
from tests.engine.out_of_band import OutOfBand
from tests.harness import LocalStack

Key: TypeAlias = tuple[str, str]

_IDENTITIES: Final = [row for row in CONTROL_PLANE if row.enabled_by_default]
CLASSES: Final = len(_IDENTITIES)
"""SecretProviderClasses of a hosted cluster."""
_PUBLISHED: Final = {"APIServer": "LoadBalancer", "OAuthServer": "Route", "Konnectivity": "Route", "Ignition": "Route"}
GIVEN: Final[dict[str, Any]] = {
    "release": {"image": "registry.example.com/release:1"},
    "pullSecret": {"name": "pull-secret"},
    "services": [
        {"service": service, "servicePublishingStrategy": {"type": how}} for service, how in _PUBLISHED.items()
    ],
    "serviceAccountSigningKey": {"name": "signing-key"},
}
"""What the API of a HostedCluster asks for beyond the identity part and its own defaults."""
RELEASE: Final = {
    "releaseImage": "registry.example.com/release:1",
    "pullSecret": "pull-secret",
    "serviceAccountSigningKey": "signing-key",
}
"""What a HostedCluster is to have that the stack writes by itself."""
MOUNTS: Final = sum(len(row.mounts) for row in _IDENTITIES)
"""Mounts of a hosted cluster, and so its credential probes."""

# Sign-ins are cheap and nobody waits for replicas longer than needed.
FAST: Final = {"propagation": {"successes": 1, "settleSeconds": 0, "timeoutSeconds": 60}}


@dataclass(frozen=True)
class Change:
    """The steps of an `up` (operation by resource name), and what became of the local cloud's documents."""

    steps: dict[str, str]
    added: frozenset[Key]
    removed: frozenset[Key]
    changed: frozenset[Key]

    @classmethod
    def between(cls, before: Mapping[Key, str], after: Mapping[Key, str], *, steps: dict[str, str]) -> Self:
        """The difference of two `contents` of the local cloud."""
        return cls(
            steps,
            frozenset(after.keys() - before.keys()),
            frozenset(before.keys() - after.keys()),
            frozenset(key for key in before.keys() & after.keys() if before[key] != after[key]),
        )

    @property
    def touched(self) -> frozenset[Key]:
        """What is gone or different."""
        return self.removed | self.changed

    def names(self, *operations: str) -> set[str]:
        """Names of the resources to which one of these operations happened."""
        return {name for name, operation in self.steps.items() if operation in operations}


def bring_up(stack: LocalStack, **configuration: Any) -> Change:
    """Bring the stack up with these keys."""
    stack.configure(**configuration)
    before = stack.contents()
    steps = stack.up_with_steps()
    return Change.between(before, stack.contents(), steps=steps)


def require_goes_first(name: str, removal: list[str], *parts: str) -> None:
    """Assert that a resource is deleted before all those with one of these parts in their names, which there are."""
    for part in parts:
        needed = [at for at, removed in enumerate(removal) if part in removed]
        assert needed, part
        assert min(needed) > removal.index(name), removal


def refusal(stack: LocalStack, *command: str, **configuration: Any) -> str:
    """What `up` (or another command) prints with these keys, with which it must fail and change nothing."""
    before = stack.contents()
    with stack.configured(**configuration):
        done = stack.pulumi(*(command or ("up", "--yes", "--skip-preview")), check=False)
    assert done.returncode != 0, f"not refused: {done.stdout}"
    assert "Traceback" not in done.stdout + done.stderr
    assert stack.contents() == before
    return done.stdout + done.stderr


def with_applications(
    cluster: Mapping[str, Any], *fields: str, imported: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A hosted cluster in which these identities have Entra applications of their own, and the others one credential.

    `cluster` is the local stack's. `imported` is an identity whose credential was issued elsewhere, by default that of
    the cluster's image registry. Only one of `controlPlaneOperator` and `nodePoolManagement` can have that one: they
    have the same role at the same scope.
    """
    others = [row.field for row in _IDENTITIES if row.field not in fields]
    return {**cluster, "identities": dict.fromkeys(others, imported or cluster["identities"]["imageRegistry"])}


def another_imported(stack: LocalStack, imported: Mapping[str, Any], word: str = "another-than") -> dict[str, Any]:
    """As `imported`, of another managed identity: no role is assigned twice to one principal at one scope.

    Its document is issued now, so it may follow a certificate in the vault.
    """
    group, _, first = str(imported["resourceId"]).rpartition("/")
    name = f"{word}-{first}"
    out_of_band = OutOfBand(stack)
    out_of_band.arm("PUT", f"{group}/{name}", "2023-01-31", {"location": "eastus"})
    stack.local_cloud("issue-msi", f"{group}/{name}")
    return {**imported, "resourceId": f"{group}/{name}", "credential": {"file": f".localcloud/run/msi/{name}.json"}}
