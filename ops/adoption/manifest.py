"""The values of a HostedCluster (`kubectl get -o yaml`) that the stack's configuration must repeat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml

from identity import yaml_text
from identity.catalogue import CONTROL_PLANE
from identity.hypershift import KIND
from identity.naming import parse_arm_id
from identity.settings.schema.problems import Place, value_at
from ops.adoption.files import ControlPlaneFile
from ops.stack.errors import CommandError, why_unreadable

# Keys of a hosted cluster in the configuration, by their place in the HostedCluster.
_SAME: Final[Mapping[Place, tuple[str, ...]]] = {
    ("namespace",): ("metadata", "namespace"),
    ("infraID",): ("spec", "infraID"),
    ("issuerURL",): ("spec", "issuerURL"),
    ("dns", "baseDomain"): ("spec", "dns", "baseDomain"),
    ("dns", "publicZoneID"): ("spec", "dns", "publicZoneID"),
    ("dns", "privateZoneID"): ("spec", "dns", "privateZoneID"),
    **{
        (name,): ("spec", "platform", "azure", name)
        for name in ("location", "resourceGroup", "vnetID", "subnetID", "securityGroupID", "topology")
    },
}
_PLATFORM: Final = ("spec", "platform", "azure")
_IDENTITIES: Final = (*_PLATFORM, "azureAuthenticationConfig", "managedIdentities")
_KMS: Final = ("spec", "secretEncryption", "kms", "azure")


def read(path: Path, cluster: str, named: Mapping[tuple[str, ...], str], subscription: str) -> dict[Place, str]:
    """Values of the cluster's entry in the configuration, by place in it.

    `named` has the values of the identity files, by place in the HostedCluster. Raises CommandError for a file without
    a HostedCluster, and for one with another name, another subscription, or other client ids.
    """
    try:
        document = yaml_text.load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read ({why_unreadable(error)}); use a HostedCluster as YAML") from None
    except (yaml.YAMLError, RecursionError, ValueError):
        document = None
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise CommandError(
            f"{path} has no {KIND}; write one: `kubectl get hostedcluster {cluster} -n <namespace> -o yaml > {path}`"
        )
    problems = [*_strangers(document, cluster, named, subscription)]
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems)
        raise CommandError(f"{path} is not the HostedCluster of these files:\n{listed}")
    return dict(_values(document))


def named_by_scripts(control_plane: ControlPlaneFile, data_plane: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """The values of the scripts' files, by place in the HostedCluster."""
    named: dict[tuple[str, ...], str] = {
        (*_IDENTITIES, "dataPlane", field): client_id for field, client_id in data_plane.items()
    }
    for field, identity in control_plane.identities.items():
        named[*_IDENTITIES, "controlPlane", field, "clientID"] = identity.client_id
        named[*_IDENTITIES, "controlPlane", field, "credentialsSecretName"] = identity.secret_name
    return named


def named_by_iam(workload: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """The values of `workload-identities.json`, by place in the HostedCluster."""
    rows = {row.field: row for row in CONTROL_PLANE}
    return {("spec", *rows[field].workload_path, "clientID"): client_id for field, client_id in workload.items()}


def _strangers(
    document: Mapping[str, Any], cluster: str, named: Mapping[tuple[str, ...], str], subscription: str
) -> Iterator[str]:
    expected: dict[tuple[str, ...], str] = {
        ("metadata", "name"): cluster,
        (*_PLATFORM, "subscriptionID"): subscription,
        **named,
    }
    for place, value in expected.items():
        actual = _at(document, place)
        if actual is not None and actual.lower() != value.lower():
            yield f"{'.'.join(place)}: found {actual}; accepted: {value}"


def _values(document: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    for place, source in _SAME.items():
        if value := _at(document, source):
            yield place, value
    if zone := _at(document, ("spec", "dns", "publicZoneID")):
        # The configuration itself refuses an invalid zone id.
        with suppress(ValueError):
            yield ("dnsZoneResourceGroup",), parse_arm_id(zone).resource_group
    for key in ("activeKey", "backupKey"):
        for name in ("keyVaultName", "keyName", "keyVersion"):
            if value := _at(document, (*_KMS, key, name)):
                yield ("kms", key, name), value
    if value := _at(document, (*_KMS, "keyVaultType")):
        yield ("kms", "keyVaultType"), value


def _at(document: Any, place: tuple[str, ...]) -> str | None:
    """The string at a place, None for none."""
    value = value_at(document, place)
    return value if isinstance(value, str) else None
