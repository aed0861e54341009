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
from identity.settings.schema.problems import ReportedPlace, enumerate_words, to_set

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
                    at = place / cluster.federated_key / row.field / "federatedCredentials" / suffix
                    at.refuse(
                        rule="federated-credential-of-other-identity",
                        accepted=f"{enumerate_words(own, last='or')} with {row.field}",
                    )


def _namespace_is_short_enough(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    length = len(cluster.namespace_name)
    if length > _LONGEST_NAMESPACE:
        name = place / "name"
        name.refuse(
            rule="namespace-too-long",
            accepted=f"a name with which the namespace <namespace>-<name> has at most {_LONGEST_NAMESPACE} characters",
            fix=f"{name.to_set('<cluster>')}, or a shorter {place / 'namespace'}",
            reason=f"the namespace has {length} characters",
        )


def _network_is_in_the_subscription(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    subscription = settings.subscription_id
    for key, arm_id in (
        ("vnetID", cluster.vnet_id),
        ("subnetID", cluster.subnet_id),
        ("securityGroupID", cluster.security_group_id),
        ("routeTableID", cluster.route_table_id),
        ("natGatewayID", cluster.nat_gateway_id),
    ):
        with unless_refused():
            if arm_id is not None and parse_arm_id(arm_id.lower()).subscription != subscription:
                at = place / key
                at.refuse(
                    rule="network-in-other-subscription",
                    accepted="a resource in the subscription of subscriptionId: a HostedCluster has one for all",
                    fix=at.to_set("<resource id>"),
                )


def _subnet_is_in_the_network(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    vnet, subnet = cluster.vnet_id.lower(), cluster.subnet_id.lower()
    if not subnet.startswith(f"{vnet}/subnets/"):
        at = place / "subnetID"
        accepted = f"a subnet of {place / 'vnetID'}"
        at.refuse(rule="subnet-outside-vnet", accepted=accepted, fix=at.to_set("<resource id>"))


def _identity_has_its_setting(row: ControlPlaneIdentity, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if row.setting is None:
        return
    setting, at = place / row.setting, place / "identities" / row.field / "enabled"
    is_given = getattr(cluster, row.setting) is not None
    if cluster.identity(row).enabled and not is_given:
        at.refuse(
            rule="identity-without-purpose",
            accepted=f"false, or nothing: without {setting} nobody uses this identity",
            fix=f"{at.to_remove()}, or write {setting} in the stack file",
        )
    if is_given and not cluster.identity(row).enabled:
        at.refuse(
            rule="identity-required",
            accepted=f"true: {setting} needs this identity",
            fix=f"{at.to_remove()}, or {setting.to_remove()}",
        )


def _needed_identity_is_on(row: ControlPlaneIdentity, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if not cluster.identity(row).enabled and not row.optional and row.setting is None:
        at = place / "identities" / row.field / "enabled"
        optional = enumerate_words(row.field for row in CONTROL_PLANE if row.optional)
        accepted = f"true: a HostedCluster needs this identity; only {optional} may be switched off"
        at.refuse(rule="identity-required", accepted=accepted)


def _managed_identities_are_described(identity: IdentitySettings, place: ReportedPlace) -> None:
    if identity.source != "managed-identity" or not identity.enabled:
        return
    if identity.resource_id is None:
        at = place / "resourceId"
        accepted = "the resource id of the managed identity, to which the roles are assigned"
        fix = at.to_set("<resource id>")
        at.refuse(rule="managed-identity-without-resource-id", accepted=accepted, fix=fix)
    if identity.credential is None:
        at = place / "credential"
        accepted = "the credential of the managed identity, issued elsewhere, as one of file and secretName"
        fix = (at / "file").to_set("<path>")
        at.refuse(rule="managed-identity-without-credential", accepted=accepted, fix=fix)


def _applications_have_nothing_imported(identity: IdentitySettings, place: ReportedPlace) -> None:
    if identity.source != "entra-application":
        return
    for key, value in (
        ("resourceId", identity.resource_id),
        ("clientId", identity.client_id),
        ("credential", identity.credential),
    ):
        if value is not None:
            at = place / key
            at.refuse(
                rule="application-with-managed-identity-key",
                accepted="nothing with source: entra-application, where the stack issues the credential itself",
                fix=f"{at.to_remove()}, or {(place / 'source').to_set('managed-identity')}",
            )


def _one_credential_is_imported(identity: IdentitySettings, place: ReportedPlace) -> None:
    credential = identity.credential
    if credential is None:
        return
    keys = [
        key for key, value in (("file", credential.file), ("secretName", credential.secret_name)) if value is not None
    ]
    if len(keys) != 1:
        at = place / "credential"
        at.refuse(
            rule="one-imported-credential",
            accepted="exactly one of file and secretName",
            fix=" or ".join((at / key).to_remove() for key in keys) or (at / "file").to_set("<path>"),
            reason=f"it holds {enumerate_words(keys)}" if keys else "it is empty",
        )


def _existing_secrets_keep_their_name(identity: IdentitySettings, place: ReportedPlace) -> None:
    existing = identity.credential.secret_name if identity.credential is not None else None
    if existing is not None and identity.secret_name != existing:
        at = place / "secretName"
        accepted = f"nothing beside {place / 'credential' / 'secretName'}: the secret is used under its own name"
        at.refuse(rule="existing-secret-renamed", accepted=accepted)


def _kept_roles_assign_no_roles(identity: IdentitySettings, place: ReportedPlace) -> None:
    names = {role.guid: role.name for role in (OWNER_ROLE, RBAC_ADMINISTRATOR_ROLE, USER_ACCESS_ADMINISTRATOR_ROLE)}
    if identity.custom_role is not None and (name := names.get(identity.custom_role.lower())):
        at = place / "customRole"
        at.refuse(rule="custom-role-assigns-roles", accepted=f"a role that assigns no roles; this one is {name}")


def _validate_object(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    given, at = cluster.hosted_cluster, place / "hostedCluster"
    if given is None:
        return
    apply((_side_is_hypershifts,), settings, cluster, at)
    apply((_users_part_is_given_once, _release_comes_with_a_pull_secret), given, at)
    apply(_OBJECT_RULES, cluster, given, place)


def _side_is_hypershifts(settings: Settings, cluster: HostedClusterSettings, at: ReportedPlace) -> None:
    if settings.makes_cluster_side(cluster):
        at.refuse(
            rule="hosted-cluster-with-stack-side",
            accepted="nothing with clusterSide: stack, which writes what HyperShift's operators would make of it",
            fix=f"{at.to_remove()}, or {to_set(('clusterSide',), 'hypershift')}",
        )


def _users_part_is_given_once(applied: HostedClusterObjectSettings, at: ReportedPlace) -> None:
    if applied.manifest is not None and applied.file is not None:
        at.refuse(
            rule="hosted-cluster-given-once",
            accepted="at most one of manifest (a HostedCluster) and file (the path of one)",
            fix=(at / "manifest").to_remove(),
            reason="it holds both",
        )
    elif (
        applied.manifest is None
        and applied.file is None
        and applied.release_image is None
        and applied.pull_secret is None
    ):
        at.refuse(
            rule="hosted-cluster-missing",
            accepted="releaseImage and pullSecret, for a HostedCluster that the stack writes, or one of your own as "
            "manifest or file",
            fix=f"{(at / 'releaseImage').to_set('<image>')} and {(at / 'pullSecret').to_set('<secret>')}, "
            f"or {(at / 'file').to_set('<path>')}",
        )


def _release_comes_with_a_pull_secret(applied: HostedClusterObjectSettings, at: ReportedPlace) -> None:
    for key, value, other, blank in (
        ("releaseImage", applied.release_image, applied.pull_secret, "<image>"),
        ("pullSecret", applied.pull_secret, applied.release_image, "<secret>"),
    ):
        if value is None and other is not None:
            (at / key).refuse(
                rule="release-without-pull-secret",
                accepted="both or neither of releaseImage and pullSecret: with both the stack writes the HostedCluster",
                fix=(at / key).to_set(blank),
            )


def _written_cluster_has_its_domains(
    cluster: HostedClusterSettings, applied: HostedClusterObjectSettings, place: ReportedPlace
) -> None:
    if applied.release_image is None:
        return
    for key, value, blank in (
        ("baseDomain", cluster.dns and cluster.dns.base_domain, "<domain>"),
        ("publicZoneID", cluster.dns and cluster.dns.public_zone_id, "<resource id>"),
        ("privateZoneID", cluster.dns and cluster.dns.private_zone_id, "<resource id>"),
    ):
        at = place / "dns" / key
        if value is None:
            at.refuse(
                rule="hosted-cluster-without-domain",
                accepted=f"a value with {place / 'hostedCluster' / 'releaseImage'}: the HostedCluster that "
                "the stack writes has both zones",
                fix=at.to_set(blank),
            )


def _written_cluster_has_its_host_names(
    cluster: HostedClusterSettings, applied: HostedClusterObjectSettings, place: ReportedPlace
) -> None:
    at = place / "externalDnsDomain"
    if applied.release_image is not None and cluster.external_dns_domain is None and cluster.needs_host_names:
        at.refuse(
            rule="hosted-cluster-without-host-names",
            accepted=f"a domain with {place / 'hostedCluster' / 'releaseImage'}: HyperShift tells the "
            "control plane's services apart by host names in it, unless "
            f"{place / 'topology'} is Private with a Private Link",
            fix=at.to_set("<domain>"),
        )


def _signing_key_is_named(
    cluster: HostedClusterSettings, applied: HostedClusterObjectSettings, place: ReportedPlace
) -> None:
    at = place / "hostedCluster" / "serviceAccountSigningKey"
    if cluster.signing_key is not None and applied.service_account_signing_key is not None:
        at.refuse(
            rule="signing-key-named-twice",
            accepted=f"nothing: the stack itself makes the Secret, {cluster.signing_key_secret}",
        )
    # A manifest may name the Secret: it is read later (`components/preflight/hosted_cluster_manifest.py`).
    elif cluster.signing_key_reference is None and applied.manifest is None and applied.file is None:
        at.refuse(
            rule="signing-key-missing",
            accepted="a Secret with the key whose public half the issuer publishes: without one HyperShift makes a key "
            "of its own, and Entra ID refuses every data-plane identity",
            fix=f"{at.to_set('<secret>')}, or {(place / 'issuer').to_set('create')}, or name the key in "
            f"{place / 'serviceAccountSigningKey'}",
        )


def _etcd_is_encrypted_once(
    cluster: HostedClusterSettings, applied: HostedClusterObjectSettings, place: ReportedPlace
) -> None:
    at = place / "hostedCluster" / "etcdEncryption"
    if applied.etcd_encryption is None:
        return
    if applied.release_image is None:
        accepted = "nothing without releaseImage: your own HostedCluster has its encryption"
        at.refuse(rule="etcd-encryption-of-given", accepted=accepted)
    elif cluster.kms is not None:
        at.refuse(
            rule="etcd-encryption-twice",
            accepted=f"nothing with {place / 'kms'}, which encrypts etcd",
            fix=f"{at.to_remove()}, or {(place / 'kms').to_remove()}",
        )


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
