"""What must fit together in a hosted cluster and in each of its identities; see `rules.py`."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import ControlPlaneIdentity
from identity.naming import parse_arm_id
from identity.settings.hosted_clusters import HostedClusterSettings, IdentitySettings
from identity.settings.invalid import DependsOnInvalid
from identity.settings.model import Settings
from identity.settings.problems import Place, ProblemReport, enumerate_words, path_of, to_remove, to_set
from identity.settings.workload_rules import validate_workloads

# A Kubernetes namespace is a DNS label.
_LONGEST_NAMESPACE: Final = 63


def validate_cluster(settings: Settings, cluster: HostedClusterSettings, place: Place, report: ProblemReport) -> None:
    """Apply every rule to the hosted cluster at `place`."""
    with suppress(DependsOnInvalid):
        _namespace_is_short_enough(cluster, place, report)
    with suppress(DependsOnInvalid):
        _subnet_is_in_the_network(cluster, place, report)
    with suppress(DependsOnInvalid):
        _network_is_in_the_subscription(settings.subscription_id, cluster, place, report)
    with suppress(DependsOnInvalid):
        _hosted_cluster_is_given_once(settings, cluster, (*place, "hostedCluster"), report)
    with suppress(DependsOnInvalid):
        validate_workloads(settings, cluster, (*place, "workloads"), report)
    for row in CONTROL_PLANE:
        for rule in _IDENTITY_RULES:
            with suppress(DependsOnInvalid):
                rule(row, cluster.identity(row), (*place, "identities", row.field), report)


def _hosted_cluster_is_given_once(
    settings: Settings, cluster: HostedClusterSettings, place: Place, report: ProblemReport
) -> None:
    given = cluster.hosted_cluster
    if given is None:
        return
    if settings.cluster_side != "hypershift":
        report.refuse(
            place,
            {},
            rule="hosted-cluster-with-stack-side",
            accepted="nothing with clusterSide: stack, which writes what HyperShift's operators would make of it",
            fix=f"{to_remove(place)}, or {to_set(('clusterSide',), 'hypershift')}",
        )
    elif (given.manifest is None) == (given.file is None):
        both = given.manifest is not None
        report.refuse(
            place,
            {},
            rule="hosted-cluster-given-once",
            accepted="exactly one of manifest (a HostedCluster) and file (the path of one)",
            fix=to_remove((*place, "manifest")) if both else to_set((*place, "file"), "<path>"),
            reason="it holds both" if both else "it is empty",
        )


def _namespace_is_short_enough(cluster: HostedClusterSettings, place: Place, report: ProblemReport) -> None:
    length = len(cluster.namespace_name)
    if length > _LONGEST_NAMESPACE:
        name = (*place, "name")
        report.refuse(
            name,
            cluster.name,
            rule="namespace-too-long",
            accepted=f"a name with which the namespace <namespace>-<name> has at most {_LONGEST_NAMESPACE} characters",
            fix=f"{to_set(name, '<cluster>')}, or a shorter {path_of((*place, 'namespace'))}",
            reason=f"the namespace has {length}",
        )


def _network_is_in_the_subscription(
    subscription: str, cluster: HostedClusterSettings, place: Place, report: ProblemReport
) -> None:
    for key, arm_id in (
        ("vnetID", cluster.vnet_id),
        ("subnetID", cluster.subnet_id),
        ("securityGroupID", cluster.security_group_id),
    ):
        with suppress(DependsOnInvalid):
            if parse_arm_id(arm_id.lower()).subscription != subscription:
                report.refuse(
                    (*place, key),
                    arm_id,
                    rule="network-in-other-subscription",
                    accepted="a resource in the subscription of subscriptionId: a HostedCluster has one for all",
                    fix=to_set((*place, key), "<resource id>"),
                )


def _subnet_is_in_the_network(cluster: HostedClusterSettings, place: Place, report: ProblemReport) -> None:
    vnet, subnet = cluster.vnet_id.lower(), cluster.subnet_id.lower()
    if not subnet.startswith(f"{vnet}/subnets/"):
        at = (*place, "subnetID")
        accepted = f"a subnet of {path_of((*place, 'vnetID'))}"
        report.refuse(
            at, cluster.subnet_id, rule="subnet-outside-vnet", accepted=accepted, fix=to_set(at, "<resource id>")
        )


def _needed_identities_are_on(
    row: ControlPlaneIdentity, identity: IdentitySettings, place: Place, report: ProblemReport
) -> None:
    if not identity.enabled and not row.optional:
        at = (*place, "enabled")
        optional = enumerate_words((each.field for each in CONTROL_PLANE if each.optional), last="or")
        accepted = f"true: a HostedCluster needs this identity; only {optional} may be switched off"
        report.refuse(at, False, rule="identity-required", accepted=accepted, fix=to_remove(at))


def _managed_identities_are_described(
    row: ControlPlaneIdentity, identity: IdentitySettings, place: Place, report: ProblemReport
) -> None:
    if identity.source != "managed-identity" or not identity.enabled:
        return
    if identity.resource_id is None:
        at = (*place, "resourceId")
        accepted = "the resource id of the managed identity, to which the roles are assigned"
        report.refuse(
            at, None, rule="managed-identity-without-resource-id", accepted=accepted, fix=to_set(at, "<resource id>")
        )
    if identity.credential is None:
        at = (*place, "credential")
        accepted = (
            "the credential of the managed identity, issued elsewhere, as one of value (a secret), file and secretName"
        )
        report.refuse(
            at, None, rule="managed-identity-without-credential", accepted=accepted, fix=to_set((*at, "file"), "<path>")
        )


def _applications_have_nothing_imported(
    row: ControlPlaneIdentity, identity: IdentitySettings, place: Place, report: ProblemReport
) -> None:
    if identity.source != "entra-application":
        return
    for key, value in (
        ("resourceId", identity.resource_id),
        ("clientId", identity.client_id),
        ("credential", identity.credential),
    ):
        if value is not None:
            at = (*place, key)
            report.refuse(
                at,
                value if isinstance(value, str) else {},
                rule="application-with-managed-identity-key",
                accepted="nothing with source: entra-application, where the stack issues the credential itself",
                fix=f"{to_remove(at)}, or {to_set((*place, 'source'), 'managed-identity')}",
            )


def _one_credential_is_imported(
    row: ControlPlaneIdentity, identity: IdentitySettings, place: Place, report: ProblemReport
) -> None:
    credential = identity.credential
    if credential is None:
        return
    given = [
        key
        for key, value in (
            ("value", credential.value),
            ("file", credential.file),
            ("secretName", credential.secret_name),
        )
        if value is not None
    ]
    if len(given) != 1:
        at = (*place, "credential")
        report.refuse(
            at,
            {},
            rule="one-imported-credential",
            accepted="exactly one of value (a secret), file and secretName",
            fix=" or ".join(to_remove((*at, key)) for key in given) or to_set((*at, "file"), "<path>"),
            reason=f"it holds {enumerate_words(given)}" if given else "it is empty",
        )


def _imported_values_are_secret(
    row: ControlPlaneIdentity, identity: IdentitySettings, place: Place, report: ProblemReport
) -> None:
    if identity.credential is not None and identity.credential.value is not None and not report.hides(place):
        at = (*place, "credential", "value")
        report.refuse(
            at,
            identity.credential.value.get_secret_value(),
            rule="credential-not-secret",
            accepted="a secret, which is encrypted in the stack file; this one stands there in clear",
            fix=f"{to_set(at, '< <file>', options='--secret')}; "
            "have a new credential issued if others could read this one",
        )


def _existing_secrets_keep_their_name(
    row: ControlPlaneIdentity, identity: IdentitySettings, place: Place, report: ProblemReport
) -> None:
    existing = identity.credential.secret_name if identity.credential is not None else None
    if existing is not None and identity.secret_name != existing:
        at = (*place, "secretName")
        accepted = (
            f"nothing beside {path_of((*place, 'credential', 'secretName'))}: the secret is used under its own name"
        )
        report.refuse(at, identity.secret_name, rule="existing-secret-renamed", accepted=accepted, fix=to_remove(at))


_IDENTITY_RULES: Final = (
    _needed_identities_are_on,
    _managed_identities_are_described,
    _applications_have_nothing_imported,
    _one_credential_is_imported,
    _imported_values_are_secret,
    _existing_secrets_keep_their_name,
)
