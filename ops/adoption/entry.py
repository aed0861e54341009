"""The part of a stack's configuration that follows from what HyperShift's scripts created."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from identity import naming, resource_types
from identity.azure.client import AzureClient, AzureObject
from identity.azure.errors import AzureRefusedError
from identity.catalogue import CONTROL_PLANE, DATA_PLANE, WORKLOAD
from identity.catalogue_rows import DataPlaneIdentity
from identity.credentials.document import DATES, DocumentParser
from identity.settings.schema.hosted_clusters import DEFAULT_ENCODING
from identity.settings.schema.problems import Place, path_of, value_at
from ops.adoption.files import ControlPlaneFile, ScriptIdentity
from ops.stack.errors import CommandError, message
from ops.world.azure import federated_credentials, managed_identities_within, read_vault_secret

# The key of the hosted cluster with the names of identities, by their kind.
_KEYS: Final = {"data-plane": "dataPlaneIdentities", "workload": "workloadIdentities"}
_PRIVATE: Final = frozenset(row.field for row in CONTROL_PLANE if row.workload and row.workload.private)


def values(
    written: Mapping[str, Any],
    cluster: str,
    known: Mapping[Place, str],
    existing: FoundResources,
) -> dict[str, str]:
    """The values to write, by path; `written` is the stack's own file, `known` has the HostedCluster's values, by place
    below the cluster's entry.

    Raises CommandError for other values in the file, with which the next `up` would replace or remove resources.
    """
    vault = existing.vault
    assert vault is not None, "a cluster with certificates has a vault"
    properties, vault_group = vault["properties"], naming.parse_arm_id(vault["id"]).resource_group
    entry = _Entry(written, cluster, known)
    entry.follow(("clusterSide",), "hypershift", "because HyperShift's operators run the control plane")
    if not written.get("sharedStack"):
        entry.follow(("resourceGroup",), vault_group, "the resource group of the vault")
        entry.follow(("location",), vault["location"], "the region of the vault")
        entry.follow(("vault", "name"), vault["name"], "the vault of the credentials")
        if not properties.get("enableRbacAuthorization"):
            entry.problems.append(message("entry.access-policies", vault=vault["name"]))
        configured = written.get("vault") or {}
        entry.found |= {
            path_of(("vault", *key)): value for key, value in _vault_values(properties) if key[0] not in configured
        }
    entry.cluster()
    defaults = value_at(written, entry.place) or {}
    for field, identity in existing.named.identities.items():
        at: Place = (*entry.place, "identities", field)
        entry.follow((*at, "secretName"), identity.secret_name, "as in the HostedCluster")
        if identity.object_encoding != defaults.get("objectEncoding", DEFAULT_ENCODING):
            entry.follow((*at, "objectEncoding"), identity.object_encoding, "as in the HostedCluster")
    entry.identities(DATA_PLANE, existing, vault_group, vault["location"])
    return entry.values()


def values_of_workload_identities(
    written: Mapping[str, Any], cluster: str, known: Mapping[Place, str], existing: FoundResources
) -> dict[str, str]:
    """The same for a cluster with workload identities; also raises CommandError if they trust several issuers and no
    HostedCluster says which is the cluster's.
    """
    first = next(iter(existing.managed.values()))
    issuers = {issuer for identity in existing.managed.values() for issuer, _ in identity.federated}
    entry = _Entry(written, cluster, known)
    entry.follow(("resourceGroup",), first.id.resource_group, "the resource group of the managed identities")
    entry.follow(("location",), first.location, "the region of the managed identities")
    entry.cluster()
    entry.follow((*entry.place, "authentication"), "workload-identities", "its kind of sign-in")
    if ("issuerURL",) not in known and value_at(written, (*entry.place, "issuer")) != "create":
        if len(issuers) > 1 and value_at(written, (*entry.place, "issuerURL")) is None:
            entry.problems.append(message("entry.several-issuers", issuers=", ".join(sorted(issuers))))
        elif len(issuers) == 1:
            entry.known = {**known, ("issuerURL",): issuers.pop()}
            entry.follow((*entry.place, "issuerURL"), entry.known[("issuerURL",)], "which the identities trust")
    entry.identities(WORKLOAD, existing, first.id.resource_group, first.location)
    return entry.values()


class _Entry:
    """A hosted cluster's entry and the stack's own keys: the values to write, by path, and the contradictions."""

    def __init__(self, written: Mapping[str, Any], cluster: str, known: Mapping[Place, str]) -> None:
        self._written = written
        self._cluster = cluster
        self.known = known
        entries = list(enumerate(written.get("hostedClusters") or ()))
        named = (index for index, entry in entries if isinstance(entry, Mapping) and entry.get("name") == cluster)
        self.place: Place = ("hostedClusters", next(named, len(entries)))
        self.found: dict[str, str] = {}
        self.problems: list[str] = []

    def follow(self, place: Place, value: str, why: str) -> None:
        """Write a value that the file does not have."""
        if any(isinstance(value_at(self._written, place[:length]), str) for length in range(1, len(place))):
            return  # `kms.activeKey` may be a URL instead
        present = value_at(self._written, place)
        if present is None:
            self.found[path_of(place)] = value
        elif str(present).lower() != value.lower():
            self.problems.append(f"{path_of(place)}: found {present}; accepted: {value}, {why}")

    def cluster(self) -> None:
        """Write the known values of the hosted cluster."""
        self.follow((*self.place, "name"), self._cluster, "the HostedCluster's name")
        for key, value in self.known.items():
            self.follow((*self.place, *key), value, "the HostedCluster's")

    def identities(
        self, rows: Iterable[DataPlaneIdentity], existing: FoundResources, group: str, location: str
    ) -> None:
        """Write the names of managed identities and credentials that differ from the stack's defaults.

        `group` and `location` stand for those that the file does not name.
        """
        group, location = self._written.get("resourceGroup") or group, self._written.get("location") or location
        infra, issuer = (
            self.known.get((key,)) or value_at(self._written, (*self.place, key)) for key in ("infraID", "issuerURL")
        )
        for row in rows:
            identity = existing.managed.get(row.field)
            if identity is None:
                continue
            name, place = identity.id.name, (*self.place, _KEYS[row.kind], row.field)
            if (found := identity.id.resource_group).lower() != group.lower():
                self.problems.append(
                    message("entry.another-group", field=row.field, name=name, found=found, group=group)
                )
            # A public cluster has such an identity only if the configuration names it.
            default = naming.data_plane_identity_name(self._cluster, row.name, infra or naming.dashed(self._cluster))
            if row.field in _PRIVATE or name != default:
                self.follow((*place, "name"), name, "which exists")
            if identity.location.lower() != location.lower():
                self.follow((*place, "location"), identity.location, "which exists")
            subjects = {row_subject.subject: row_subject for row_subject in row.subjects}
            for (url, subject), credential in identity.federated.items():
                if (trusted := subjects.get(subject)) is None or url != (issuer or url):
                    continue
                if credential != naming.federated_credential_name(self._cluster, row.credential_stem, trusted.suffix):
                    self.follow((*place, "federatedCredentials", trusted.word), credential, "which exists")

    def values(self) -> dict[str, str]:
        """The values to write; raises CommandError with all contradictions."""
        if problems := "\n".join(f"- {problem}" for problem in self.problems):
            raise CommandError(message("entry.contradictions", problems=problems))
        return self.found


def _vault_values(properties: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """The vault's present values: a person decides on a stricter firewall, or on protection that cannot be undone."""
    acls = properties.get("networkAcls") or {}
    yield ("softDeleteRetentionDays",), str(properties.get("softDeleteRetentionInDays", 90))
    yield ("purgeProtection",), json.dumps(bool(properties.get("enablePurgeProtection")))
    yield ("publicNetworkAccess",), json.dumps(properties.get("publicNetworkAccess", "Enabled") == "Enabled")
    yield ("defaultAction",), acls.get("defaultAction", "Allow")
    for index, rule in enumerate(acls.get("ipRules") or ()):
        yield ("allowedIpRanges", index), rule["value"]
    for index, rule in enumerate(acls.get("virtualNetworkRules") or ()):
        yield ("allowedSubnetIds", index), rule["id"]


@dataclass(frozen=True)
class FoundApplication:
    """An application and its service principal, if there is one."""

    object_id: str
    display_name: str
    principal_id: str | None


@dataclass(frozen=True)
class FoundIdentity:
    """A managed identity; `federated` has the names of its federated credentials by issuer and subject."""

    id: naming.ArmId
    location: str
    principal_id: str
    federated: Mapping[tuple[str, str], str]


@dataclass(frozen=True)
class FoundResources:
    """The existing resources, by field of the HostedCluster API; `vault` is None for a cluster without certificates.

    `named` is where the control plane's were named. `secrets` has remarks about each credential's secret and its
    document.
    """

    named: ControlPlaneFile
    subscription: str
    vault: AzureObject | None
    applications: Mapping[str, FoundApplication]
    secrets: Mapping[str, Sequence[str]]
    managed: Mapping[str, FoundIdentity]


def look_up(
    azure: AzureClient,
    subscription: str,
    named: ControlPlaneFile,
    client_ids: Mapping[str, str],
) -> FoundResources:
    """Look up everything that the files name; `client_ids` are those of the managed identities, by field.

    Raises AzureRefusedError, and CommandError with all that is missing.
    """
    problems: list[str] = []
    scope = naming.subscription_id(subscription)
    vault = None
    if named.vault is not None:
        found = azure.resources(f"{scope}/providers/{naming.VAULT_TYPE}", resource_types.KEY_VAULT_API)
        vaults = {one["name"].lower(): one for one in found}
        if (vault := vaults.get(named.vault.lower())) is None:
            problems.append(f"no key vault {named.vault} in the subscription {subscription}")
    applications = {}
    for field, script_identity in named.identities.items():
        key = f"(appId='{script_identity.client_id}')"
        if (application := azure.directory_object(f"/applications{key}")) is None:
            problems.append(f"{field}: no application with the client id {script_identity.client_id} in the tenant")
        else:
            principal = azure.directory_object(f"/servicePrincipals{key}")
            principal_id = None if principal is None else principal["id"]
            applications[field] = FoundApplication(application["id"], application["displayName"], principal_id)
    by_client_id = {one.client_id.lower(): one for one in managed_identities_within(azure, scope)}
    managed = {
        field: FoundIdentity(
            naming.parse_arm_id(identity.id),
            identity.location,
            identity.principal_id,
            {(one.issuer, one.subject): one.name for one in federated_credentials(azure, identity.id)},
        )
        for field, client_id in client_ids.items()
        if (identity := by_client_id.get(client_id))
    }
    problems += [
        f"{field}: no managed identity with the client id {client_id} in the subscription {subscription}"
        for field, client_id in client_ids.items()
        if field not in managed
    ]
    if problems:
        of_vault = "" if named.vault is None else ", the name of its vault"
        lacking = "\n".join(f"- {problem}" for problem in problems)
        raise CommandError(message("entry.not-found", problems=lacking, vault=of_vault))
    vault_id = "" if vault is None else vault["id"]
    secrets = {field: list(_remarks(azure, vault_id, one)) for field, one in named.identities.items()}
    return FoundResources(named, subscription, vault, applications, secrets, managed)


def _remarks(azure: AzureClient, vault_id: str, identity: ScriptIdentity) -> Iterator[str]:
    secret = read_vault_secret(azure, vault_id, identity.secret_name)
    if secret is None:
        yield "no such secret"
        return
    if not secret.expires:
        yield "secret without dates"
    try:
        value = azure.vault(naming.parse_arm_id(vault_id).name, "GET", f"/secrets/{identity.secret_name}")
    except AzureRefusedError:
        # A reader of everything else may lack this right, and the adoption does not need the value.
        yield "document not read: the deployer lacks the right"
        return
    parser = DocumentParser("" if value is None else str(value["value"]), identity.object_encoding)
    if parser.problems:
        # Without their text, which may have parts of a credential.
        yield "document that pods refuse"
        return
    if not base64.b64decode(parser.strings["client_secret"]).lstrip().startswith(b"-----BEGIN"):
        yield "PKCS#12"
    if missing := [name for name in DATES if name not in parser.dates]:
        yield f"document without {', '.join(missing)}"
