"""The rules of hosted clusters' infrastructure; see `stack.py`."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network, ip_network
from typing import Final

from identity.hypershift import POD_NETWORK, SERVICE_NETWORK
from identity.naming import issuer_url, parse_arm_id
from identity.settings.schema.base import apply, unless_refused
from identity.settings.schema.endpoints import SigningKeySettings
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import enumerate_words, value_at
from identity.settings.schema.schema_node import ReportedPlace

# Of a virtual network's name, which is shorter than all the others (azure-docs `resource-name-rules`).
LONGEST_STEM: Final = 64


def validate_infrastructure(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule about infrastructure to the hosted cluster at `place`."""
    if cluster.infrastructure == "existing":
        _nothing_is_said_of_an_existing_network(cluster, place)
        return
    rules = (
        _names_are_short_enough,
        _zones_are_known,
        _subnet_is_inside,
        _nodes_are_apart_from_pods_and_services,
        _nothing_else_is_named,
    )
    apply(rules, settings, cluster, place)


def created_groups_are_the_clusters_own(settings: Settings, root: ReportedPlace) -> None:
    """A group that the stack makes is deleted with its content, so nothing else may be in it."""
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            if cluster.infrastructure == "existing":
                continue
            own = {group.lower(): group for group in cluster.names(settings.subscription_id).groups}
            for place, group in _other_groups(settings, index, root):
                if group.lower() in own:
                    (root / "hostedClusters" / index / "infraID").require(
                        "created-group-shared", place=place, group=own[group.lower()]
                    )
                    break


def _other_groups(settings: Settings, own: int, root: ReportedPlace) -> Iterator[tuple[ReportedPlace, str]]:
    """Resource groups that the rest of the configuration names, each with its place."""
    yield root / "resourceGroup", settings.resource_group
    if settings.management_cluster is not None:
        yield root / "managementCluster" / "resourceGroup", settings.management_cluster.resource_group
    for index, cluster in enumerate(settings.hosted_clusters):
        place = root / "hostedClusters" / index
        with unless_refused():
            if cluster.kms is not None:
                yield place / "kms" / "keyVaultResourceGroup", cluster.kms.key_vault_resource_group
                yield place / "kms" / "backupKeyVaultResourceGroup", cluster.kms.backup_key_vault_resource_group
        with unless_refused():
            yield place / "dnsZoneResourceGroup", cluster.dns_zone_resource_group
        if index == own:
            continue
        with unless_refused():
            yield place / "resourceGroup", cluster.resource_group
            yield place / "vnetID", parse_arm_id(cluster.vnet_id.lower()).resource_group
            yield place / "securityGroupID", parse_arm_id(cluster.security_group_id.lower()).resource_group


def _nothing_is_said_of_an_existing_network(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if cluster.network is not None:
        (place / "network").refuse("ranges-of-existing-network", otherwise=(place / "infrastructure").to_set("create"))


def _names_are_short_enough(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    length = len(cluster.names(settings.subscription_id).stem)
    if length > LONGEST_STEM:
        (place / "infraID").require(
            "created-network-name-too-long", reason=f"the name has {length} characters", longest=LONGEST_STEM
        )


def _zones_are_known(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    at = place / "dns"
    if cluster.dns is None:
        at.refuse(
            "created-infrastructure-without-domain",
            f"{(at / 'baseDomain').to_set()} and {(at / 'publicZoneID').to_set()}",
        )
    elif cluster.dns.public_zone_id is None:
        zone = at / "publicZoneID"
        zone.refuse(
            "created-infrastructure-without-public-zone",
            f"{zone.to_set()}; `az network dns zone show -g <group> -n <domain> --query id` prints it",
        )


def _subnet_is_inside(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    network = cluster.network
    if network is None:
        return
    if not IPv4Network(network.subnet_address_prefix).subnet_of(IPv4Network(network.address_prefix)):
        (place / "network" / "subnetAddressPrefix").require(
            "subnet-range-outside-network", range=network.address_prefix
        )


def _nodes_are_apart_from_pods_and_services(
    settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace
) -> None:
    if cluster.network is None:
        return
    nodes = cluster.network.subnet_address_prefix
    for key, taken in default_networks_in(nodes, cluster):
        (place / "network" / "subnetAddressPrefix").require(
            "network-of-pods-or-services",
            otherwise=f"set spec.networking.{key} in the HostedCluster",
            key=key,
            taken=taken,
        )


def default_networks_in(nodes: str, cluster: HostedClusterSettings) -> Iterator[tuple[str, str]]:
    """Key of `spec.networking` and range of HyperShift's default networks that the range `nodes` meets.

    Of a HostedCluster that the stack applies, and that names no other; the one in a file may.
    """
    applied = cluster.hosted_cluster
    if applied is None or applied.file is not None:
        return
    for key, taken in (("clusterNetwork", POD_NETWORK), ("serviceNetwork", SERVICE_NETWORK)):
        is_default = value_at(applied.manifest or {}, ("spec", "networking", key)) is None
        if is_default and ip_network(nodes).overlaps(ip_network(taken)):
            yield key, taken


def _nothing_else_is_named(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    names = cluster.names(settings.subscription_id)
    values: list[tuple[ReportedPlace, str | None, str | None]] = [
        (place / "resourceGroup", cluster.resource_group, names.managed_group),
        (place / "vnetID", cluster.vnet_id, names.network_id),
        (place / "subnetID", cluster.subnet_id, names.subnet_id),
        (place / "securityGroupID", cluster.security_group_id, names.security_group_id),
        (place / "routeTableID", cluster.route_table_id, None),
        (place / "natGatewayID", cluster.nat_gateway_id, None),
    ]
    with unless_refused():
        if cluster.dns is not None:
            zone = names.private_zone_id(str(cluster.dns.base_domain))
            values.append((place / "dns" / "privateZoneID", cluster.dns.private_zone_id, zone))
    for at, value, expected in values:
        with unless_refused():
            if value != expected:
                made = f"{expected}, as HyperShift names it" if expected else "a subnet without it"
                otherwise = (place / "infrastructure").to_set("existing")
                at.refuse("created-infrastructure-named", otherwise=otherwise, made=made)


_EXISTING_ONLY: Final = ("vaultSecretName", "file")
_CREATED_ONLY: Final = ("published", "signing", "leaked")


def validate_issuer(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the issuer of the hosted cluster at `place`."""
    apply((_name_goes_with_creation, _url_is_the_created_issuers), settings, cluster, place)
    key = cluster.service_account_signing_key
    if key is not None:
        rules = _OF_A_CREATED_KEY if cluster.issuer == "create" else _OF_AN_EXISTING_KEY
        apply(rules, key, place / "serviceAccountSigningKey")


def created_issuers_have_names_of_their_own(settings: Settings, root: ReportedPlace) -> None:
    """A storage account belongs to one issuer."""
    owners: dict[str, object] = {}
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            if cluster.issuer_name is not None:
                place = root / "hostedClusters" / index / "issuerName"
                place.require_own("duplicate-issuer-name", owners, cluster.issuer_name)


def _name_goes_with_creation(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    at = place / "issuerName"
    if cluster.issuer == "create" and cluster.issuer_name is None:
        at.require("issuer-name-missing")
    if cluster.issuer == "existing" and cluster.issuer_name is not None:
        at.refuse("issuer-name-unused", otherwise=(place / "issuer").to_set("create"))


def _url_is_the_created_issuers(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if cluster.issuer != "create" or cluster.issuer_name is None:
        return
    written, at = issuer_url(cluster.issuer_name, settings.cloud.storage_suffix), place / "issuerURL"
    if cluster.issuer_url != written:
        at.refuse("issuer-url-of-created", otherwise=(place / "issuer").to_set("existing"), url=written)


def _created_key_has_no_source(key: SigningKeySettings, place: ReportedPlace) -> None:
    for at in (place / name for name in _EXISTING_ONLY):
        if at.value is not None:
            at.refuse("signing-key-of-created-issuer")


def _signing_key_is_published(key: SigningKeySettings, place: ReportedPlace) -> None:
    if key.signing not in key.published:
        published = enumerate_words(map(str, key.published), last="or")
        (place / "signing").require("signing-key-not-published", str(key.published[-1]), published=published)


def _leaked_key_is_not_published(key: SigningKeySettings, place: ReportedPlace) -> None:
    if both := set(key.leaked) & set(key.published):
        (place / "published").refuse(
            "leaked-key-published",
            f"publish a new key in place of {enumerate_words(map(str, sorted(both)))}, and let it sign",
        )


def _existing_key_is_not_numbered(key: SigningKeySettings, place: ReportedPlace) -> None:
    for name in _CREATED_ONLY:
        if name in key.model_fields_set:
            (place / name).refuse(
                "signing-key-of-existing-issuer", otherwise=place.at((*place.place[:-1], "issuer")).to_set("create")
            )


def _existing_key_has_one_source(key: SigningKeySettings, place: ReportedPlace) -> None:
    place.require_one("one-signing-key", *_EXISTING_ONLY)


_OF_A_CREATED_KEY: Final = (_created_key_has_no_source, _signing_key_is_published, _leaked_key_is_not_published)
_OF_AN_EXISTING_KEY: Final = (_existing_key_is_not_numbered, _existing_key_has_one_source)
