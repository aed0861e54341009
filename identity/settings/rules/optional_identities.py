"""The rules of a hosted cluster's optional identities: the resources where they have their roles; see `stack.py`."""

from __future__ import annotations

from identity.catalogue import CONTROL_PLANE
from identity.catalogue_rows import Scope
from identity.naming import parse_arm_id
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.invalid import apply, unless_refused
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import Place, ProblemReport, enumerate_words, path_of, to_set


def validate_optional_identities(
    settings: Settings, cluster: HostedClusterSettings, place: Place, report: ProblemReport
) -> None:
    """Apply every rule to the resources that only optional identities use."""
    apply((_management_issuer_is_given,), cluster, (*place, "managementIssuerURL"), report)
    for scope, key in _KEYS.items():
        rules = (_resource_is_given, _resource_is_in_the_subscription)
        apply(rules, settings, cluster, scope, (*place, key), report)


def used_once_is_switched_on_once(settings: Settings, report: ProblemReport) -> None:
    """The hosted clusters of a stack are on one management cluster, so a second identity would be useless."""
    owners: dict[str, Place] = {}
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            for row in cluster.optional_rows:
                place: Place = ("hostedClusters", index, "managedIdentities")
                if row.used_once is not None and (first := owners.setdefault(row.field, place)) != place:
                    at = (*place, cluster.managed_identities.index(row.field))
                    report.refuse(
                        at,
                        row.field,
                        rule="optional-identity-used-once",
                        accepted=f"nothing: {path_of(first)} has it for all hosted clusters of the management "
                        f"cluster, because {row.used_once}",
                    )


# The key that names the resource of a scope; all other scopes follow from keys that every hosted cluster has.
_KEYS = {
    Scope.BACKUP_STORAGE: "backupStorageAccountID",
    Scope.REGISTRY: "containerRegistryID",
    Scope.EXTERNAL_ZONE: "externalDnsZoneID",
}


def _resource_is_given(
    settings: Settings, cluster: HostedClusterSettings, scope: Scope, at: Place, report: ProblemReport
) -> None:
    users = [
        row.field
        for row in CONTROL_PLANE
        if cluster.identity(row).enabled and scope in (*row.hypershift.scopes, *row.builtin.scopes)
    ]
    users += [row.field for row in cluster.optional_rows if any(scope in grant.scopes for grant in row.grants)]
    if users and cluster.optional_resource(scope) is None:
        report.refuse(
            at,
            None,
            rule="optional-resource-missing",
            accepted=f"the resource id of the {scope}, where the role of {enumerate_words(users)} is",
            fix=to_set(at, "<resource id>"),
        )


def _resource_is_in_the_subscription(
    settings: Settings, cluster: HostedClusterSettings, scope: Scope, at: Place, report: ProblemReport
) -> None:
    arm_id = cluster.optional_resource(scope)
    if arm_id is not None and parse_arm_id(arm_id.lower()).subscription != settings.subscription_id:
        report.refuse(
            at,
            arm_id,
            rule="optional-resource-in-other-subscription",
            accepted="a resource in the subscription of subscriptionId, where the stack looks it up",
            fix=to_set(at, "<resource id>"),
        )


def _management_issuer_is_given(cluster: HostedClusterSettings, at: Place, report: ProblemReport) -> None:
    users = [row.field for row in cluster.optional_rows if row.subjects]
    if users and cluster.management_issuer_url is None:
        report.refuse(
            at,
            None,
            rule="management-issuer-missing",
            accepted=f"the management cluster's OIDC issuer, whose service accounts use {enumerate_words(users)}; "
            "`az aks show --query oidcIssuerProfile.issuerUrl` prints it",
            fix=to_set(at, "<url>"),
        )
