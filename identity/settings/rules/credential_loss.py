"""Which credentials in use a change of the configuration would drop.

A credential is in use once it is among the outputs of a complete run. They have its address, which only the
configuration decides, so the next run knows before it begins which addresses it would abandon. Decision record 0011.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from identity.catalogue import CONTROL_PLANE, DATA_PLANE, OPTIONAL
from identity.catalogue_rows import DataPlaneIdentity, OptionalManagedIdentity
from identity.naming import secret_id
from identity.outputs import CredentialAddress, HostedClusterOutput, StackOutputs
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ConfigurationError, Place, Problem, to_remove, to_set

_PLACE: Final = ("allowCredentialLoss",)
_LOCATION: Final = ("location",)
# The signing key's place among the credentials of a cluster whose issuer the stack makes.
_ISSUER: Final = "issuer"
# What `allowCredentialLoss` names for the identity that all clusters' secrets are read with.
_READER: Final = "key-vault-user"


@dataclass(frozen=True)
class Loss:
    """The credentials that one hosted cluster would lose, one line for each; or the key-vault-user of all clusters.

    `successor` is the index of a new cluster with its `infraID`: one run cannot replace the one by the other. `regions`
    are the previous regions, by place in the configuration, of identities that only another region would replace.
    """

    cluster: str
    lines: tuple[str, ...]
    successor: int | None = None
    regions: Mapping[Place, str] = field(default_factory=dict)


def credential_addresses(
    settings: Settings, cluster: HostedClusterSettings, vault_id: str
) -> dict[str, CredentialAddress]:
    """By field: the secret (ARM id) with its principal, or the managed identity that the stack makes.

    An address has what forces a replacement in Azure: id and region. `issuer` is the storage account of an issuer that
    the stack makes, without which no token of a service account is valid.
    """
    by_field: dict[str, CredentialAddress] = {
        row.field: {
            "secret": secret_id(vault_id, cluster.identity(row).secret_name),
            "principal": cluster.identity(row).resource_id or cluster.identity(row).source,
        }
        for row in cluster.enabled_rows
    }
    managed: tuple[DataPlaneIdentity | OptionalManagedIdentity, ...] = (*cluster.federated_rows, *cluster.optional_rows)
    for managed_row in managed:
        by_field[managed_row.field] = {
            "principal": settings.identity_id(cluster.identity_names[managed_row.field]),
            "location": cluster.federated_identity(managed_row.field).location or settings.location,
        }
    if cluster.issuer == "create" and cluster.issuer_name is not None:
        issuer = settings.issuer_account_id(cluster.issuer_name)
        by_field[_ISSUER] = {"principal": issuer, "location": settings.location}
    return by_field


def key_vault_user_address(settings: Settings) -> CredentialAddress | None:
    """The key-vault-user that the stack makes; None if it makes none."""
    name = settings.key_vault_user.name
    if name is None or settings.shared_stack is not None:
        return None
    return {"principal": settings.identity_id(name), "location": settings.location}


def find_losses(settings: Settings, vault_id: str, outputs: StackOutputs[str]) -> list[Loss]:
    """What the configuration would lose of the credentials in the stack's outputs; `vault_id` is the new vault's.

    A removed cluster loses nothing: its credentials go with it.
    """
    before = outputs.get("hostedClusters") or {}
    now = {cluster.name: cluster for cluster in settings.hosted_clusters}
    new = [(index, cluster) for index, cluster in enumerate(settings.hosted_clusters) if cluster.name not in before]
    losses = []
    for name, described in sorted(before.items()):
        in_use = described["credentialsInUse"]
        loss = (
            _loss(
                name,
                in_use,
                credential_addresses(settings, now[name], vault_id),
                partial(_location_place, settings, name),
            )
            if name in now
            else _renamed(name, described, new)
        )
        if loss.lines and in_use:
            losses.append(loss)
    if reader := outputs.get("keyVaultUserInUse"):
        address = key_vault_user_address(settings)
        known = {} if address is None else {_READER: address}
        loss = _loss(_READER, {_READER: reader}, known, lambda _: _LOCATION)
        losses += [loss] if loss.lines else []
    return losses


def refuse_losses(settings: Settings, losses: list[Loss]) -> None:
    """Raise ConfigurationError with every loss that `allowCredentialLoss` does not name."""
    problems = [
        _problem(loss, settings) if loss.successor is None else _two_runs(loss.cluster, loss.successor, settings)
        for loss in losses
        if loss.successor is not None or loss.cluster not in settings.allow_credential_loss
    ]
    if problems:
        raise ConfigurationError(problems)


def unused_allowances(settings: Settings, losses: list[Loss]) -> list[str]:
    """The clusters in `allowCredentialLoss` that lose nothing."""
    losing = {loss.cluster for loss in losses}
    return [name for name in settings.allow_credential_loss if name not in losing]


def _location_place(settings: Settings, cluster: str, field: str) -> Place:
    """The key that the region of a managed identity, or of an issuer, is taken from."""
    for index, hosted_cluster in enumerate(settings.hosted_clusters):
        if hosted_cluster.name == cluster and hosted_cluster.federated_identity(field).location is not None:
            return ("hostedClusters", index, hosted_cluster.federated_key, field, "location")
    return _LOCATION


def _loss(
    name: str,
    before: Mapping[str, CredentialAddress],
    now: Mapping[str, CredentialAddress],
    place_of: Callable[[str], Place],
) -> Loss:
    lines, regions = [], {}
    fields = (*(row.field for row in (*CONTROL_PLANE, *DATA_PLANE, *OPTIONAL)), _ISSUER, _READER)
    for identity in filter(before.__contains__, fields):
        old, new = before[identity], now.get(identity)
        pairs = zip(_parts(old), _parts(new), strict=True)
        if changed := next((pair for pair in pairs if pair[0].lower() != pair[1].lower()), None):
            lines.append(f"{identity}: {' -> '.join(_shortened(changed[0], changed[1] or 'nothing'))}")
        elif new is not None and (region := old.get("location", "")) != new.get("location", "") and region:
            name_in_azure = old["principal"].rpartition("/")[2]
            lines.append(f"{identity}: {name_in_azure} in {region} -> in {new.get('location', 'no region')}")
            regions[place_of(identity)] = region
    return Loss(name, tuple(lines), regions=regions)


def _parts(address: CredentialAddress | None) -> tuple[str, str]:
    """Secret and principal, the more telling one first; empty if there is none."""
    return (address.get("secret", ""), address["principal"]) if address else ("", "")


def _shortened(old: str, new: str) -> tuple[str, str]:
    """The last names of two ids, or both ids if the names are equal."""
    names = old.rpartition("/")[2], new.rpartition("/")[2]
    return names if names[0].lower() != names[1].lower() else (old, new)


def _renamed(name: str, described: HostedClusterOutput[str], new: list[tuple[int, HostedClusterSettings]]) -> Loss:
    """What a removed cluster loses to a new one for the same HostedCluster; nothing if there is none."""
    spec = described["hostedClusterSpec"]
    for index, cluster in new:
        if spec["infraID"] == cluster.infra_id:
            return Loss(name, (f"all of it: {cluster.name} has its infraID",), index)
    successors = [cluster.name for _, cluster in new if spec["issuerURL"] == cluster.issuer_url]
    return Loss(name, tuple(f"all of it: {successor} has its issuerURL" for successor in successors))


def _problem(loss: Loss, settings: Settings) -> Problem:
    index = len(settings.allow_credential_loss)
    kept = "put back what changed"
    if loss.regions:
        commands = ", ".join(to_set(place, region) for place, region in loss.regions.items())
        kept += (
            f" ({commands}: Azure moves nothing from region to region, and a managed identity is good in all of them)"
        )
    return Problem(
        place=_PLACE,
        found="\n    - ".join((f"{loss.cluster} would lose credentials in use:", *loss.lines)),
        rule="credential-loss",
        accepted=f"a configuration that keeps them, or {loss.cluster} named here",
        fix=f"{kept}; or, once nobody uses them, {to_set((*_PLACE, index), loss.cluster)}, "
        f"and after `.venv/bin/idstack up` {to_remove(_PLACE)}",
    )


def _two_runs(cluster: str, successor: int, settings: Settings) -> Problem:
    place = ("hostedClusters", successor, "name")
    return Problem(
        place=place,
        found=f'"{settings.hosted_clusters[successor].name}" in place of {cluster}, whose infraID it has',
        rule="cluster-replaced-in-one-run",
        accepted=f'"{cluster}": names of role assignments derive from infraID, so the old ones must be gone first',
        fix=f"{to_set(place, cluster)}; or take {cluster} out, run `.venv/bin/idstack up`, and only then add the new "
        "name",
    )
