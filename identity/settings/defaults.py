"""Fills in what follows from other values of the configuration, before it is validated."""

from __future__ import annotations

from typing import Any, Final

from identity import naming
from identity.catalogue import CONTROL_PLANE
from identity.clouds import CLOUDS, DEFAULT_CLOUD, LOCAL_CLOUD, Cloud, LocalEnvironment, local_cloud
from identity.settings.infrastructure_defaults import fill_in_infrastructure
from identity.settings.schema.hosted_clusters import DEFAULT_ENCODING
from identity.settings.schema.invalid import INVALID
from identity.settings.schema.kms import key_vault_type_of
from identity.settings.schema.problems import Place

_WITHOUT_CREDENTIALS: Final = "workload-identities"


def fill_in(raw: dict[str, Any], local: LocalEnvironment | None) -> dict[Place, tuple[Place, ...]]:
    """Complete `raw` in place. Returns the places filled in, each with the places its value follows from.

    Where one of them is missing or of the wrong type, `INVALID` is filled in: only its own place is worth a complaint.
    """
    raw["cloud"] = _cloud(raw.get("cloud", DEFAULT_CLOUD), local)
    filled: dict[Place, tuple[Place, ...]] = {}
    clusters = raw.get("hostedClusters")
    for index, each in enumerate(clusters if isinstance(clusters, list) else ()):
        if isinstance(each, dict):
            _fill_in_cluster(raw, each, ("hostedClusters", index), filled)
    return filled


def _cloud(name: object, local: LocalEnvironment | None) -> object:
    """The cloud of that name; anything else stays what it is and is refused with its reason later."""
    if name == LOCAL_CLOUD and local:
        return local_cloud(local)
    return CLOUDS.get(name, name) if isinstance(name, str) else name


def _fill_in_cluster(
    raw: dict[str, Any], cluster: dict[str, Any], place: Place, filled: dict[Place, tuple[Place, ...]]
) -> None:
    def follow(mapping: dict[str, Any], key: str, value: object, *, at: Place, source: Place) -> None:
        if key not in mapping:
            mapping[key] = value
            filled[*at, key] = (source,)

    name = cluster.get("name")
    dashed = name.replace(".", "-") if isinstance(name, str) else INVALID
    follow(cluster, "infraID", dashed, at=place, source=(*place, "name"))
    follow(cluster, "location", raw.get("location", INVALID), at=place, source=("location",))
    if cluster.get("infrastructure") == "create":
        fill_in_infrastructure(cluster, raw.get("subscriptionId"), place, filled)
    if cluster.get("issuer") == "create":
        issuer, cloud = cluster.get("issuerName"), raw["cloud"]
        url: object = INVALID
        if isinstance(issuer, str) and isinstance(cloud, Cloud):
            url = naming.issuer_url(issuer, cloud.storage_suffix)
        follow(cluster, "issuerURL", url, at=place, source=(*place, "issuerName"))
    kms = cluster.get("kms")
    if isinstance(kms, dict):
        group = raw.get("resourceGroup", INVALID)
        at: Place = (*place, "kms")
        key = kms.get("activeKey")
        follow(kms, "keyVaultType", key_vault_type_of(key), at=at, source=(*at, "activeKey"))
        follow(kms, "keyVaultResourceGroup", group, at=at, source=("resourceGroup",))
        group = kms["keyVaultResourceGroup"]
        follow(kms, "backupKeyVaultResourceGroup", group, at=at, source=(*at, "keyVaultResourceGroup"))
    encoding = cluster.get("objectEncoding", DEFAULT_ENCODING)
    identities = cluster.setdefault("identities", {})
    if not isinstance(identities, dict):
        return
    has_credentials = cluster.get("authentication") != _WITHOUT_CREDENTIALS
    for row in CONTROL_PLANE:
        if not has_credentials and row.field not in identities:
            continue  # what is given is refused
        identity = identities.setdefault(row.field, {})
        if not isinstance(identity, dict):
            continue
        at = (*place, "identities", row.field)
        is_on = row.enabled_by_default and (row.setting is None or cluster.get(row.setting) is not None)
        follow(identity, "enabled", is_on, at=at, source=(*place, row.setting or "identities"))
        follow(identity, "objectEncoding", encoding, at=at, source=(*place, "objectEncoding"))
        credential = identity.get("credential")
        if isinstance(credential, dict) and "secretName" in credential:
            # A secret that exists already is mounted as it is, not copied.
            source: Place = (*at, "credential", "secretName")
            follow(identity, "secretName", credential["secretName"], at=at, source=source)
        secret = naming.credentials_secret_name(row.secret_stem, name) if isinstance(name, str) else INVALID
        follow(identity, "secretName", secret, at=at, source=(*place, "name"))
