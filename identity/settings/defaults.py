"""Fills in the values that follow from others of the configuration, before it is validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from identity import naming
from identity.catalogue import CONTROL_PLANE
from identity.clouds import CLOUDS, DEFAULT_CLOUD, LOCAL_CLOUD, Cloud, LocalEnvironment, local_cloud
from identity.infrastructure import InfrastructureNames
from identity.settings.rules.infrastructure import LONGEST_STEM
from identity.settings.schema.base import INVALID
from identity.settings.schema.hosted_clusters import DEFAULT_ENCODING
from identity.settings.schema.kms import key_vault_type_of
from identity.settings.schema.problems import Place


def fill_in(raw: dict[str, Any], local: LocalEnvironment | None) -> Mapping[Place, tuple[Place, ...]]:
    """Complete `raw` in place. Returns the places filled in, each with the places that its value follows from.

    If one of them is missing or has the wrong type, `INVALID` is filled in: only the source is reported.
    """
    raw["cloud"] = _cloud(raw.get("cloud", DEFAULT_CLOUD), local)
    defaults = _Defaults(raw)
    clusters = raw.get("hostedClusters")
    for index, cluster in enumerate(clusters if isinstance(clusters, list) else ()):
        if isinstance(cluster, dict):
            defaults.fill_in_cluster(cluster, ("hostedClusters", index))
    return defaults.filled


def _cloud(name: object, local: LocalEnvironment | None) -> object:
    """The cloud of that name; any other value stays and is refused later."""
    if name == LOCAL_CLOUD and local:
        return local_cloud(local)
    return CLOUDS.get(name, name) if isinstance(name, str) else name


@dataclass(frozen=True)
class _Defaults:
    raw: Mapping[str, Any]
    filled: dict[Place, tuple[Place, ...]] = field(default_factory=dict)

    def _set(self, mapping: dict[str, Any], place: Place, key: str, value: object, *sources: Place) -> None:
        """Set a key of the mapping at `place`, unless the configuration has it."""
        if key not in mapping:
            mapping[key] = value
            self.filled[*place, key] = sources

    def fill_in_cluster(self, cluster: dict[str, Any], place: Place) -> None:
        raw, name = self.raw, cluster.get("name")
        self._set(
            cluster, place, "infraID", naming.dashed(name) if isinstance(name, str) else INVALID, (*place, "name")
        )
        self._set(cluster, place, "location", raw.get("location", INVALID), ("location",))
        if cluster.get("infrastructure") == "create":
            self._fill_in_infrastructure(cluster, place)
        if cluster.get("issuer") == "create":
            issuer, cloud = cluster.get("issuerName"), raw["cloud"]
            url: object = INVALID
            if isinstance(issuer, str) and isinstance(cloud, Cloud):
                url = naming.issuer_url(issuer, cloud.storage_suffix)
            self._set(cluster, place, "issuerURL", url, (*place, "issuerName"))
        kms, at = cluster.get("kms"), (*place, "kms")
        if isinstance(kms, dict):
            group = raw.get("resourceGroup", INVALID)
            self._set(kms, at, "keyVaultType", key_vault_type_of(kms.get("activeKey")), (*at, "activeKey"))
            self._set(kms, at, "keyVaultResourceGroup", group, ("resourceGroup",))
            group = kms["keyVaultResourceGroup"]
            self._set(kms, at, "backupKeyVaultResourceGroup", group, (*at, "keyVaultResourceGroup"))
        self._fill_in_identities(cluster, place)

    def _fill_in_infrastructure(self, cluster: dict[str, Any], place: Place) -> None:
        """Fill in the names of what the stack makes; `infraID` is there already."""
        name, infra_id, subscription = cluster.get("name"), cluster.get("infraID"), self.raw.get("subscriptionId")
        names: InfrastructureNames | None = None
        if isinstance(name, str) and isinstance(infra_id, str) and isinstance(subscription, str):
            names = InfrastructureNames(subscription, name, infra_id)
            # Refused by a rule of its own, with the reason.
            names = names if len(names.stem) <= LONGEST_STEM else None
        sources: tuple[Place, ...] = ((*place, "name"), (*place, "infraID"), ("subscriptionId",))
        cluster.setdefault("network", {})
        for key, value in (
            ("resourceGroup", names and names.managed_group),
            ("vnetID", names and names.network_id),
            ("subnetID", names and names.subnet_id),
            ("securityGroupID", names and names.security_group_id),
        ):
            self._set(cluster, place, key, value or INVALID, *sources)
        dns, at = cluster.get("dns"), (*place, "dns")
        self._set(cluster, place, "dnsZoneResourceGroup", _group(dns), *sources, (*at, "publicZoneID"))
        if isinstance(dns, dict):
            domain = dns.get("baseDomain")
            zone = names.private_zone_id(domain) if names and isinstance(domain, str) else INVALID
            self._set(dns, at, "privateZoneID", zone, *sources, (*at, "baseDomain"))

    def _fill_in_identities(self, cluster: dict[str, Any], place: Place) -> None:
        name, encoding = cluster.get("name"), cluster.get("objectEncoding", DEFAULT_ENCODING)
        identities = cluster.setdefault("identities", {})
        if not isinstance(identities, dict):
            return
        has_credentials = cluster.get("authentication") != "workload-identities"
        for row in CONTROL_PLANE:
            if not has_credentials and row.field not in identities:
                continue  # a configured one is refused
            identity, at = identities.setdefault(row.field, {}), (*place, "identities", row.field)
            if not isinstance(identity, dict):
                continue
            is_on = row.enabled_by_default and (row.setting is None or cluster.get(row.setting) is not None)
            self._set(identity, at, "enabled", is_on, (*place, row.setting or "identities"))
            self._set(identity, at, "objectEncoding", encoding, (*place, "objectEncoding"))
            credential = identity.get("credential")
            if isinstance(credential, dict) and "secretName" in credential:
                # A secret that exists already is mounted as it is, not copied.
                self._set(identity, at, "secretName", credential["secretName"], (*at, "credential", "secretName"))
            secret = naming.credentials_secret_name(row.secret_stem, name) if isinstance(name, str) else INVALID
            self._set(identity, at, "secretName", secret, (*place, "name"))


def _group(dns: object) -> object:
    """Resource group of the public zone; `INVALID` without one, which is refused at its own place."""
    try:
        return naming.parse_arm_id(str(dns["publicZoneID"])).resource_group if isinstance(dns, dict) else INVALID
    except (KeyError, ValueError):
        return INVALID
