"""What of a stack's configuration follows from what HyperShift's scripts made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from identity.catalogue import DATA_PLANE
from identity.catalogue_rows import DataPlaneIdentity
from identity.naming import data_plane_identity_name, federated_credential_name
from identity.settings.hosted_clusters import DEFAULT_ENCODING
from identity.settings.problems import Place, path_of
from ops.adoption.existing import FoundIdentity, FoundResources
from ops.adoption.files import ControlPlaneFile
from ops.stack.errors import CommandError

_CLUSTER_SIDE: Final = "hypershift"


def values(
    written: Mapping[str, Any],
    cluster: str,
    known: Mapping[Place, str],
    control_plane: ControlPlaneFile,
    existing: FoundResources,
) -> dict[str, str]:
    """What there is to write, by path; `written` is the stack's own file, `known` what the HostedCluster says, by place
    below the cluster's.

    Raises CommandError where the file has something else already, with which the next `up` would replace or remove what
    exists.
    """
    vault, properties = existing.vault, existing.vault["properties"]
    problems: list[str] = []
    found: dict[str, str] = {}

    def follow(place: Place, value: str, why: str) -> None:
        if any(isinstance(_at(written, place[:length]), str) for length in range(1, len(place))):
            return  # `kms.activeKey` may be a URL instead
        present = _at(written, place)
        if present is None:
            found[path_of(place)] = value
        elif str(present).lower() != value.lower():
            problems.append(f"{path_of(place)}: found {present}; accepted: {value}, {why}")

    follow(("clusterSide",), _CLUSTER_SIDE, "because HyperShift's operators run the control plane")
    if not written.get("sharedStack"):
        follow(("resourceGroup",), existing.vault_id.resource_group, "the resource group of the vault")
        follow(("location",), vault["location"], "the region of the vault")
        follow(("vault", "name"), vault["name"], "the vault of the credentials")
        if not properties.get("enableRbacAuthorization"):
            problems.append(
                f"{vault['name']} decides by access policies, which would end with the next `up`; accepted: a vault "
                "with Azure RBAC. Assign Key Vault Secrets User to whoever reads it, then `az keyvault update --name "
                f"{vault['name']} --enable-rbac-authorization true`"
            )
        given = written.get("vault") or {}
        found |= {path_of(("vault", *key)): value for key, value in _vault(properties) if key[0] not in given}
    clusters = written.get("hostedClusters") or []
    index = _index(clusters, cluster)
    place: Place = ("hostedClusters", index)
    follow((*place, "name"), cluster, "the HostedCluster's name")
    for key, value in known.items():
        follow((*place, *key), value, "the HostedCluster's")
    for field, given in control_plane.identities.items():
        at: Place = (*place, "identities", field)
        follow((*at, "secretName"), given.secret_name, "which the HostedCluster names")
        entry = clusters[index] if index < len(clusters) else {}
        if given.object_encoding != entry.get("objectEncoding", DEFAULT_ENCODING):
            follow((*at, "objectEncoding"), given.object_encoding, "which the HostedCluster names")
    infra = known.get(("infraID",)) or _at(written, (*place, "infraID")) or cluster.replace(".", "-")
    issuer = known.get(("issuerURL",)) or _at(written, (*place, "issuerURL"))
    group = written.get("resourceGroup") or existing.vault_id.resource_group
    location = written.get("location") or vault["location"]
    for row in DATA_PLANE:
        if identity := existing.managed.get(row.field):
            if identity.id.resource_group.lower() != group.lower():
                problems.append(
                    f"{row.field}: {identity.id.name} is in the resource group {identity.id.resource_group}; accepted: "
                    f"{group}, where the stack has its managed identities"
                )
            own = _data_plane(row, identity, cluster, infra, issuer, location)
            for key, value in own:
                follow((*place, "dataPlaneIdentities", row.field, *key), value, "which exists")
    if problems:
        listed = "\n".join(f"- {each}" for each in problems)
        raise CommandError(f"the stack's configuration does not fit what exists; nothing was written:\n{listed}")
    return found


def _vault(properties: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """The vault as it is: a stricter firewall, or a protection that stays for ever, is for a person to decide."""
    acls = properties.get("networkAcls") or {}
    yield ("softDeleteRetentionDays",), str(properties.get("softDeleteRetentionInDays", 90))
    yield ("purgeProtection",), _word(properties.get("enablePurgeProtection"))
    yield ("publicNetworkAccess",), _word(properties.get("publicNetworkAccess", "Enabled") == "Enabled")
    yield ("defaultAction",), acls.get("defaultAction", "Allow")
    for index, rule in enumerate(acls.get("ipRules") or ()):
        yield ("allowedIpRanges", index), rule["value"]
    for index, rule in enumerate(acls.get("virtualNetworkRules") or ()):
        yield ("allowedSubnetIds", index), rule["id"]


def _data_plane(
    row: DataPlaneIdentity, found: FoundIdentity, cluster: str, infra_id: str, issuer: str | None, location: str
) -> Iterator[tuple[Place, str]]:
    if found.id.name != data_plane_identity_name(cluster, row.name, infra_id):
        yield ("name",), found.id.name
    if found.location.lower() != location.lower():
        yield ("location",), found.location
    subjects = {each.subject: each for each in row.subjects}
    for (url, subject), name in found.federated.items():
        own = subjects.get(subject)
        if own is None or url != (issuer or url):
            continue
        if name != federated_credential_name(cluster, row.credential_stem, own.suffix):
            yield ("federatedCredentials", own.word), name


def _index(clusters: Sequence[Any], name: str) -> int:
    named = [index for index, each in enumerate(clusters) if isinstance(each, Mapping) and each.get("name") == name]
    return named[0] if named else len(clusters)


def _at(written: Any, place: Place) -> Any:
    """The value at a place, None if there is none."""
    for step in place:
        if isinstance(written, Mapping):
            written = written.get(step)
        elif isinstance(written, list) and isinstance(step, int) and step < len(written):
            written = written[step]
        else:
            return None
    return written


def _word(value: Any) -> str:
    return "true" if value else "false"
