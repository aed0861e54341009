"""Which credentials in use a change of the configuration would drop.

A credential is in use once a complete run of the stack has handed it over: it is among the stack's outputs. There its
address is kept, made of what the configuration alone decides, so the next run knows before it begins which addresses
it would leave behind. Decision record 0011.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from identity.catalogue import CONTROL_PLANE, DATA_PLANE, OPTIONAL
from identity.catalogue_rows import DataPlaneIdentity, OptionalManagedIdentity
from identity.naming import secret_id
from identity.outputs import CredentialAddress, HostedClusterOutput, StackOutputs
from identity.settings.hosted_clusters import HostedClusterSettings, IdentitySettings
from identity.settings.managed_identities import managed_identity_of
from identity.settings.model import Settings
from identity.settings.problems import ConfigurationError, Problem, to_remove, to_set

_PLACE: Final = ("allowCredentialLoss",)


@dataclass(frozen=True)
class Loss:
    """The credentials that one hosted cluster would lose, a line for each.

    `successor` is the index of a new cluster with its `infraID`: no run can replace the one by the other.
    """

    cluster: str
    lines: tuple[str, ...]
    successor: int | None = None


def addresses(settings: Settings, cluster: HostedClusterSettings, vault_id: str) -> dict[str, CredentialAddress]:
    """By field: the secret (ARM id) and whose credential is in it, or the managed identity that the stack makes."""
    found: dict[str, CredentialAddress] = {
        row.field: {
            "secret": secret_id(vault_id, cluster.identity(row).secret_name),
            "principal": _principal(cluster.identity(row)),
        }
        for row in CONTROL_PLANE
        if cluster.identity(row).enabled
    }
    managed: tuple[DataPlaneIdentity | OptionalManagedIdentity, ...] = (*DATA_PLANE, *cluster.optional_rows)
    for identity in managed:
        found[identity.field] = {"principal": managed_identity_of(settings, cluster, identity)}
    return found


def losses(settings: Settings, vault_id: str, outputs: StackOutputs[str]) -> list[Loss]:
    """What the configuration would lose of what the stack's outputs have; `vault_id` is the vault's from now on.

    A cluster that is gone altogether loses nothing: its own credentials go with it.
    """
    before = outputs.get("hostedClusters") or {}
    now = {cluster.name: cluster for cluster in settings.hosted_clusters}
    new = [(index, each) for index, each in enumerate(settings.hosted_clusters) if each.name not in before]
    found = []
    for name, described in sorted(before.items()):
        in_use = described.get("credentialsInUse") or {}
        loss = (
            Loss(name, tuple(_changes(in_use, addresses(settings, now[name], vault_id))))
            if name in now
            else _renamed(name, described, new)
        )
        if loss.lines and in_use:
            found.append(loss)
    return found


def refuse_losses(settings: Settings, found: list[Loss]) -> None:
    """Raise ConfigurationError with every loss that `allowCredentialLoss` does not name."""
    problems = [
        _problem(loss, settings) if loss.successor is None else _two_runs(loss.cluster, loss.successor, settings)
        for loss in found
        if loss.successor is not None or loss.cluster not in settings.allow_credential_loss
    ]
    if problems:
        raise ConfigurationError(problems)


def without_effect(settings: Settings, found: list[Loss]) -> list[str]:
    """The clusters in `allowCredentialLoss` that lose nothing."""
    losing = {loss.cluster for loss in found}
    return [name for name in settings.allow_credential_loss if name not in losing]


def _principal(identity: IdentitySettings) -> str:
    return identity.resource_id or identity.source


def _changes(before: Mapping[str, CredentialAddress], now: Mapping[str, CredentialAddress]) -> Iterator[str]:
    for field in (row.field for row in (*CONTROL_PLANE, *DATA_PLANE, *OPTIONAL) if row.field in before):
        pairs = zip(_parts(before[field]), _parts(now.get(field)), strict=True)
        for old, new in (pair for pair in pairs if pair[0].lower() != pair[1].lower()):
            yield f"{field}: {' -> '.join(_shortened(old, new or 'nothing'))}"
            break


def _parts(address: CredentialAddress | None) -> tuple[str, str]:
    """Secret and principal, the telling one first; empty if there is none."""
    return (address.get("secret", ""), address["principal"]) if address else ("", "")


def _shortened(old: str, new: str) -> tuple[str, str]:
    """The last names of two ids, or all of both where those are equal."""
    names = old.rpartition("/")[2], new.rpartition("/")[2]
    return names if names[0].lower() != names[1].lower() else (old, new)


def _renamed(name: str, described: HostedClusterOutput[str], new: list[tuple[int, HostedClusterSettings]]) -> Loss:
    """What a cluster that is gone loses to a new one that is the same HostedCluster; nothing if there is none."""
    spec = described.get("hostedClusterSpec")
    if not spec:
        return Loss(name, ())
    for index, cluster in new:
        if spec["infraID"] == cluster.infra_id:
            return Loss(name, (f"all of it: {cluster.name} has its infraID",), index)
    lines = (f"all of it: {each.name} has its issuerURL" for _, each in new if spec["issuerURL"] == each.issuer_url)
    return Loss(name, tuple(lines))


def _problem(loss: Loss, settings: Settings) -> Problem:
    index = len(settings.allow_credential_loss)
    return Problem(
        place=_PLACE,
        found="".join((f"{loss.cluster} would lose credentials in use:", *(f"\n    - {each}" for each in loss.lines))),
        rule="credential-loss",
        accepted=f"a configuration that keeps them, or {loss.cluster} named here",
        fix=f"put back what changed; or, once nobody uses them, {to_set((*_PLACE, index), loss.cluster)}, "
        f"and after `pulumi up` {to_remove(_PLACE)}",
    )


def _two_runs(cluster: str, successor: int, settings: Settings) -> Problem:
    place = ("hostedClusters", successor, "name")
    return Problem(
        place=place,
        found=f'"{settings.hosted_clusters[successor].name}" in the place of {cluster}, whose infraID it has',
        rule="cluster-replaced-in-one-run",
        accepted=f'"{cluster}": names of role assignments are made of infraID, so the old ones must be gone before',
        fix=f"{to_set(place, cluster)}; or take {cluster} out, run `pulumi up`, and only then add the new name",
    )
