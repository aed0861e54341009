"""The rules of a hosted cluster and its identities; see `stack.py`."""

from __future__ import annotations

from typing import Final

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.naming import parse_arm_id
from identity.roles import OWNER_ROLE, RBAC_ADMINISTRATOR_ROLE, USER_ACCESS_ADMINISTRATOR_ROLE
from identity.settings.rules.authentication import validate_authentication
from identity.settings.rules.hosted_cluster_object import validate_hosted_cluster_object
from identity.settings.rules.hosted_cluster_parts import (
    validate_dns,
    validate_endpoint_access,
    validate_kms,
    validate_optional_identities,
    validate_workloads,
)
from identity.settings.rules.infrastructure import validate_infrastructure, validate_issuer
from identity.settings.schema.base import apply, unless_refused
from identity.settings.schema.hosted_clusters import HostedClusterSettings, IdentitySettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ReportedPlace, enumerate_words

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
            for suffix, name in cluster.federated_identity(row.field).federated_credentials.items():
                if suffix not in own:
                    at = place / cluster.federated_key / row.field / "federatedCredentials" / suffix
                    at.refuse(
                        name,
                        rule="federated-credential-of-other-identity",
                        accepted=f"{enumerate_words(own, last='or')} with {row.field}",
                    )


def _namespace_is_short_enough(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    length = len(cluster.namespace_name)
    if length > _LONGEST_NAMESPACE:
        name = place / "name"
        name.refuse(
            cluster.name,
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
                    arm_id,
                    rule="network-in-other-subscription",
                    accepted="a resource in the subscription of subscriptionId: a HostedCluster has one for all",
                    fix=at.to_set("<resource id>"),
                )


def _subnet_is_in_the_network(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    vnet, subnet = cluster.vnet_id.lower(), cluster.subnet_id.lower()
    if not subnet.startswith(f"{vnet}/subnets/"):
        at = place / "subnetID"
        accepted = f"a subnet of {place / 'vnetID'}"
        at.refuse(cluster.subnet_id, rule="subnet-outside-vnet", accepted=accepted, fix=at.to_set("<resource id>"))


def _identity_has_its_setting(row: ControlPlaneIdentity, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if row.setting is None:
        return
    setting, at = place / row.setting, place / "identities" / row.field / "enabled"
    is_given = getattr(cluster, row.setting) is not None
    if cluster.identity(row).enabled and not is_given:
        at.refuse(
            True,
            rule="identity-without-purpose",
            accepted=f"false, or nothing: without {setting} nobody uses this identity",
            fix=f"{at.to_remove()}, or write {setting} in the stack file",
        )
    if is_given and not cluster.identity(row).enabled:
        at.refuse(
            False,
            rule="identity-required",
            accepted=f"true: {setting} needs this identity",
            fix=f"{at.to_remove()}, or {setting.to_remove()}",
        )


def _needed_identity_is_on(row: ControlPlaneIdentity, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if not cluster.identity(row).enabled and not row.optional and row.setting is None:
        at = place / "identities" / row.field / "enabled"
        optional = enumerate_words(row.field for row in CONTROL_PLANE if row.optional)
        accepted = f"true: a HostedCluster needs this identity; only {optional} may be switched off"
        at.refuse(False, rule="identity-required", accepted=accepted)


def _managed_identities_are_described(identity: IdentitySettings, place: ReportedPlace) -> None:
    if identity.source != "managed-identity" or not identity.enabled:
        return
    if identity.resource_id is None:
        at = place / "resourceId"
        accepted = "the resource id of the managed identity, to which the roles are assigned"
        fix = at.to_set("<resource id>")
        at.refuse(None, rule="managed-identity-without-resource-id", accepted=accepted, fix=fix)
    if identity.credential is None:
        at = place / "credential"
        accepted = "the credential of the managed identity, issued elsewhere, as one of file and secretName"
        fix = (at / "file").to_set("<path>")
        at.refuse(None, rule="managed-identity-without-credential", accepted=accepted, fix=fix)


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
                value,
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
            {},
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
        at.refuse(identity.secret_name, rule="existing-secret-renamed", accepted=accepted)


def _kept_roles_assign_no_roles(identity: IdentitySettings, place: ReportedPlace) -> None:
    names = {role.guid: role.name for role in (OWNER_ROLE, RBAC_ADMINISTRATOR_ROLE, USER_ACCESS_ADMINISTRATOR_ROLE)}
    if identity.custom_role is not None and (name := names.get(identity.custom_role.lower())):
        at = place / "customRole"
        at.refuse(
            identity.custom_role,
            rule="custom-role-assigns-roles",
            accepted=f"a role that assigns no roles; this one is {name}",
        )


_RULES: Final = (
    _network_is_in_the_subscription,
    validate_issuer,
    validate_infrastructure,
    validate_dns,
    validate_hosted_cluster_object,
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
