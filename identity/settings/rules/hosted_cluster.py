"""The rules of a hosted cluster, its identities and the HostedCluster that the stack applies; see `stack.py`."""

from __future__ import annotations

from typing import Final

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.naming import parse_arm_id
from identity.roles import OWNER_ROLE, RBAC_ADMINISTRATOR_ROLE, USER_ACCESS_ADMINISTRATOR_ROLE
from identity.settings.rules.authentication import validate_authentication
from identity.settings.rules.hosted_cluster_parts import (
    validate_dns,
    validate_endpoint_access,
    validate_kms,
    validate_optional_identities,
    validate_workloads,
)
from identity.settings.rules.infrastructure import validate_infrastructure, validate_issuer
from identity.settings.schema.base import apply, unless_refused
from identity.settings.schema.hosted_clusters import (
    HostedClusterObjectSettings,
    HostedClusterSettings,
    IdentitySettings,
)
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import enumerate_words
from identity.settings.schema.schema_node import ReportedPlace

# A Kubernetes namespace is a DNS label.
_LONGEST_NAMESPACE: Final = 63


def validate_cluster(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the hosted cluster at `place`."""
    apply(_RULES, settings, cluster, place)
    apply(_RULES_OF_THE_CLUSTER_ALONE, cluster, place)


def _validate_identities(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    for row in CONTROL_PLANE if cluster.has_credentials else ():
        apply((_identity_has_its_setting, _needed_identity_is_on), row, cluster, place)
        with unless_refused():
            apply(_IDENTITY_RULES, cluster.identity(row), place / "identities" / row.field)


def _federated_credentials_are_their_own(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    for row in cluster.federated_rows:
        own = [subject.word for subject in row.subjects]
        with unless_refused():
            for suffix in cluster.federated_identity(row.field).federated_credentials:
                if suffix not in own:
                    (place / cluster.federated_key / row.field / "federatedCredentials" / suffix).refuse(
                        "federated-credential-of-other-identity", own=enumerate_words(own, last="or"), field=row.field
                    )


def _namespace_is_short_enough(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    length = len(cluster.namespace_name)
    if length > _LONGEST_NAMESPACE:
        (place / "name").require(
            "namespace-too-long",
            otherwise=f"a shorter {place / 'namespace'}",
            reason=f"the namespace has {length} characters",
            longest=_LONGEST_NAMESPACE,
        )


def _network_is_in_the_subscription(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    for key in ("vnetID", "subnetID", "securityGroupID", "routeTableID", "natGatewayID"):
        at = place / key
        with unless_refused():
            if at.value is not None and parse_arm_id(at.value.lower()).subscription != settings.subscription_id:
                at.require("network-in-other-subscription")


def _subnet_is_in_the_network(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    vnet, subnet = cluster.vnet_id.lower(), cluster.subnet_id.lower()
    if not subnet.startswith(f"{vnet}/subnets/"):
        (place / "subnetID").require("subnet-outside-vnet")


def _identity_has_its_setting(row: ControlPlaneIdentity, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if row.setting is None:
        return
    setting, at = place / row.setting, place / "identities" / row.field / "enabled"
    is_given = getattr(cluster, row.setting) is not None
    if cluster.identity(row).enabled and not is_given:
        at.refuse("identity-without-purpose", otherwise=f"write {setting} in the stack file", setting=setting)
    if is_given and not cluster.identity(row).enabled:
        at.refuse("identity-required", otherwise=setting.to_remove(), needed=f"{setting} needs this identity")


def _needed_identity_is_on(row: ControlPlaneIdentity, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if not cluster.identity(row).enabled and not row.optional and row.setting is None:
        optional = enumerate_words(row.field for row in CONTROL_PLANE if row.optional)
        needed = f"a HostedCluster needs this identity; only {optional} may be switched off"
        (place / "identities" / row.field / "enabled").refuse("identity-required", needed=needed)


def _managed_identities_are_described(identity: IdentitySettings, place: ReportedPlace) -> None:
    if identity.source != "managed-identity" or not identity.enabled:
        return
    if identity.resource_id is None:
        (place / "resourceId").require("managed-identity-without-resource-id")
    if identity.credential is None:
        at = place / "credential"
        at.refuse("managed-identity-without-credential", (at / "file").to_set())


def _applications_have_nothing_imported(identity: IdentitySettings, place: ReportedPlace) -> None:
    if identity.source != "entra-application":
        return
    for at in (place / key for key in ("resourceId", "clientId", "credential")):
        if at.value is not None:
            at.refuse("application-with-managed-identity-key", otherwise=(place / "source").to_set("managed-identity"))


def _one_credential_is_imported(identity: IdentitySettings, place: ReportedPlace) -> None:
    if identity.credential is not None:
        (place / "credential").require_one("one-imported-credential", "file", "secretName")


def _existing_secrets_keep_their_name(identity: IdentitySettings, place: ReportedPlace) -> None:
    existing = identity.credential.secret_name if identity.credential is not None else None
    if existing is not None and identity.secret_name != existing:
        (place / "secretName").refuse("existing-secret-renamed")


def _kept_roles_assign_no_roles(identity: IdentitySettings, place: ReportedPlace) -> None:
    names = {role.guid: role.name for role in (OWNER_ROLE, RBAC_ADMINISTRATOR_ROLE, USER_ACCESS_ADMINISTRATOR_ROLE)}
    if identity.custom_role is not None and (name := names.get(identity.custom_role.lower())):
        (place / "customRole").refuse("custom-role-assigns-roles", name=name)


def _validate_object(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    given, at = cluster.hosted_cluster, place / "hostedCluster"
    if given is None:
        return
    apply((_side_is_hypershifts,), settings, cluster, at)
    apply((_users_part_is_given_once, _release_comes_with_a_pull_secret), given, at)
    apply(_OBJECT_RULES, cluster, given, place)


def _side_is_hypershifts(settings: Settings, cluster: HostedClusterSettings, at: ReportedPlace) -> None:
    if settings.makes_cluster_side(cluster):
        at.refuse("hosted-cluster-with-stack-side", otherwise=at.at(("clusterSide",)).to_set("hypershift"))


def _users_part_is_given_once(applied: HostedClusterObjectSettings, at: ReportedPlace) -> None:
    given = (applied.manifest, applied.file)
    if None not in given:
        at.refuse("hosted-cluster-given-once", (at / "manifest").to_remove(), reason="it holds both")
    elif all(value is None for value in (*given, applied.release_image, applied.pull_secret)):
        at.refuse(
            "hosted-cluster-missing",
            f"{(at / 'releaseImage').to_set()} and {(at / 'pullSecret').to_set()}",
            otherwise=(at / "file").to_set(),
        )


def _release_comes_with_a_pull_secret(applied: HostedClusterObjectSettings, at: ReportedPlace) -> None:
    missing = [part for part in (at / "releaseImage", at / "pullSecret") if part.value is None]
    if len(missing) == 1:
        missing[0].require("release-without-pull-secret")


def _written_cluster_has_its_domains(
    cluster: HostedClusterSettings, applied: HostedClusterObjectSettings, place: ReportedPlace
) -> None:
    if applied.release_image is None:
        return
    for at in (place / "dns" / key for key in ("baseDomain", "publicZoneID", "privateZoneID")):
        if at.value is None:
            at.require("hosted-cluster-without-domain", release=place / "hostedCluster" / "releaseImage")


def _written_cluster_has_its_host_names(
    cluster: HostedClusterSettings, applied: HostedClusterObjectSettings, place: ReportedPlace
) -> None:
    if applied.release_image is not None and cluster.external_dns_domain is None and cluster.needs_host_names:
        (place / "externalDnsDomain").require("hosted-cluster-without-host-names")


def _signing_key_is_named(
    cluster: HostedClusterSettings, applied: HostedClusterObjectSettings, place: ReportedPlace
) -> None:
    at = place / "hostedCluster" / "serviceAccountSigningKey"
    if cluster.signing_key is not None and applied.service_account_signing_key is not None:
        at.refuse("signing-key-named-twice", secret=cluster.signing_key_secret)
    # A manifest may name the Secret: it is read later (`components/preflight/hosted_cluster_manifest.py`).
    elif cluster.signing_key_reference is None and applied.manifest is None and applied.file is None:
        at.require(
            "signing-key-missing",
            otherwise=f"{(place / 'issuer').to_set('create')}, or name the key in {place / 'serviceAccountSigningKey'}",
        )


def _etcd_is_encrypted_once(
    cluster: HostedClusterSettings, applied: HostedClusterObjectSettings, place: ReportedPlace
) -> None:
    at = place / "hostedCluster" / "etcdEncryption"
    if applied.etcd_encryption is None:
        return
    if applied.release_image is None:
        at.refuse("etcd-encryption-of-given")
    elif cluster.kms is not None:
        at.refuse("etcd-encryption-twice", otherwise=(place / "kms").to_remove(), kms=place / "kms")


_RULES: Final = (
    _network_is_in_the_subscription,
    validate_issuer,
    validate_infrastructure,
    validate_dns,
    _validate_object,
    validate_kms,
    validate_workloads,
    validate_optional_identities,
)
_RULES_OF_THE_CLUSTER_ALONE: Final = (
    validate_authentication,
    _namespace_is_short_enough,
    _subnet_is_in_the_network,
    validate_endpoint_access,
    _validate_identities,
    _federated_credentials_are_their_own,
)
_IDENTITY_RULES: Final = (
    _kept_roles_assign_no_roles,
    _managed_identities_are_described,
    _applications_have_nothing_imported,
    _one_credential_is_imported,
    _existing_secrets_keep_their_name,
)
_OBJECT_RULES: Final = (
    _written_cluster_has_its_domains,
    _written_cluster_has_its_host_names,
    _signing_key_is_named,
    _etcd_is_encrypted_once,
)
