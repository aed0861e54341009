"""Which credentials in use a change of the configuration would drop.

A credential is in use once a complete run of the stack has handed it over: it is among the stack's outputs. There its
address is kept, made of what the configuration alone decides, so the next run knows before it begins which addresses
it would leave behind. Decision record 0011.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from identity.catalogue import CONTROL_PLANE, DATA_PLANE
from identity.naming import data_plane_identity_name, resource_id
from identity.settings import ConfigurationError, HostedClusterSettings, IdentitySettings, Problem, Settings
from identity.settings.problems import to_remove, to_set

_PLACE: Final = ("allowCredentialLoss",)
# The output of each hosted cluster.
IN_USE: Final = "credentialsInUse"
# Parts of an address, the telling one first.
_PARTS: Final = ("secret", "principal")
# What makes two clusters the same HostedCluster under two names; outputs have it in the specification.
_SAME_CLUSTER: Final = ("infraID", "issuerURL")


@dataclass(frozen=True)
class Loss:
    """The credentials that one hosted cluster would lose, a line for each."""

    cluster: str
    lines: tuple[str, ...]


def addresses(settings: Settings, cluster: HostedClusterSettings, vault_id: str) -> dict[str, dict[str, str]]:
    """By field: the secret (ARM id) and whose credential is in it, or the guest cluster's managed identity (ARM id)."""
    found: dict[str, dict[str, str]] = {
        row.field: {
            "secret": f"{vault_id}/secrets/{cluster.identity(row).secret_name}",
            "principal": _principal(cluster.identity(row)),
        }
        for row in CONTROL_PLANE
        if cluster.identity(row).enabled
    }
    for row in DATA_PLANE:
        name = data_plane_identity_name(cluster.name, row.name, cluster.infra_id)
        identities = "Microsoft.ManagedIdentity/userAssignedIdentities"
        found[row.field] = {
            "principal": resource_id(settings.subscription_id, settings.resource_group, identities, name)
        }
    return found


def losses(settings: Settings, vault_id: str, outputs: Mapping[str, Any]) -> list[Loss]:
    """What the configuration would lose of what the stack's outputs have; `vault_id` is the vault's from now on.

    A cluster that is gone altogether loses nothing: its own credentials go with it.
    """
    before: Mapping[str, Any] = outputs.get("hostedClusters") or {}
    now = {cluster.name: cluster for cluster in settings.hosted_clusters}
    found = []
    for name, described in sorted(before.items()):
        in_use: Mapping[str, Mapping[str, str]] = described.get(IN_USE) or {}
        if name in now:
            lines = tuple(_changes(in_use, addresses(settings, now[name], vault_id)))
        else:
            lines = tuple(f"all of it: {new} has its {key}" for new, key in _new_names(described, now, before))
        if lines and in_use:
            found.append(Loss(name, lines))
    return found


def refuse_losses(settings: Settings, found: list[Loss]) -> None:
    """Raise ConfigurationError with every loss that `allowCredentialLoss` does not name."""
    refused = [loss for loss in found if loss.cluster not in settings.allow_credential_loss]
    if refused:
        raise ConfigurationError([_problem(loss, settings) for loss in refused])


def without_effect(settings: Settings, found: list[Loss]) -> list[str]:
    """The clusters in `allowCredentialLoss` that lose nothing."""
    losing = {loss.cluster for loss in found}
    return [name for name in settings.allow_credential_loss if name not in losing]


def _principal(identity: IdentitySettings) -> str:
    return identity.resource_id or identity.source


def _changes(before: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for field in (row.field for row in (*CONTROL_PLANE, *DATA_PLANE) if row.field in before):
        old, new = before[field], now.get(field, {})
        changed = next((part for part in _PARTS if old.get(part, "").lower() != new.get(part, "").lower()), None)
        if changed is not None:
            yield f"{field}: {' -> '.join(_shortened(old[changed], new.get(changed, 'nothing')))}"


def _shortened(old: str, new: str) -> tuple[str, str]:
    """The last names of two ids, or all of both where those are equal."""
    names = old.rpartition("/")[2], new.rpartition("/")[2]
    return names if names[0].lower() != names[1].lower() else (old, new)


def _new_names(
    described: Mapping[str, Any], now: Mapping[str, HostedClusterSettings], before: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """The clusters that are new and yet the described one, each with what tells."""
    spec = described.get("hostedClusterSpec") or {}
    for name, cluster in now.items():
        facts = dict(zip(_SAME_CLUSTER, (cluster.infra_id, cluster.issuer_url), strict=True))
        same = next((key for key in _SAME_CLUSTER if name not in before and spec.get(key) == facts[key]), None)
        if same is not None:
            yield name, same


def _problem(loss: Loss, settings: Settings) -> Problem:
    index = len(settings.allow_credential_loss)
    return Problem(
        place=_PLACE,
        found="".join((f"{loss.cluster} would lose credentials in use:", *(f"\n    - {each}" for each in loss.lines))),
        accepted=f"a configuration that keeps them, or {loss.cluster} named here",
        mend=f"put back what changed; or, once nobody uses them, {to_set((*_PLACE, index), loss.cluster)}, "
        f"and after `pulumi up` {to_remove(_PLACE)}",
    )
