"""The rules of a hosted cluster's optional identities: the resources where they have their roles; see `stack.py`."""

from __future__ import annotations

from identity.catalogue_rows import Scope
from identity.naming import parse_arm_id
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.invalid import apply, unless_refused
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ReportedPlace, enumerate_words


def validate_optional_identities(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to the resources that only optional identities use."""
    apply((_management_issuer_is_given,), cluster, place / "managementIssuerURL")
    for scope, key in _KEYS.items():
        apply((_resource_is_given,), settings, cluster, scope, place / key)


def used_once_is_switched_on_once(settings: Settings, root: ReportedPlace) -> None:
    """The hosted clusters of a stack are on one management cluster, so a second identity would be useless."""
    owners: dict[str, ReportedPlace] = {}
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            for row in cluster.optional_rows:
                place = root / "hostedClusters" / index / "managedIdentities"
                if row.used_once is not None and (first := owners.setdefault(row.field, place)) != place:
                    at = place / cluster.managed_identities.index(row.field)
                    at.refuse(
                        row.field,
                        rule="optional-identity-used-once",
                        accepted=f"nothing: {first} has it for all hosted clusters of the management "
                        f"cluster, because {row.used_once}",
                    )


# The key that names the resource of a scope; all other scopes follow from keys that every hosted cluster has.
_KEYS = {
    Scope.BACKUP_STORAGE: "backupStorageAccountID",
    Scope.REGISTRY: "containerRegistryID",
    Scope.EXTERNAL_ZONE: "externalDnsZoneID",
}


def _resource_is_given(settings: Settings, cluster: HostedClusterSettings, scope: Scope, at: ReportedPlace) -> None:
    """In the stack's subscription, if an identity has a role there."""
    arm_id = cluster.optional_resource(scope)
    if arm_id is not None:
        if parse_arm_id(arm_id.lower()).subscription != settings.subscription_id:
            at.refuse(
                arm_id,
                rule="optional-resource-in-other-subscription",
                accepted="a resource in the subscription of subscriptionId, where the stack looks it up",
                fix=at.to_set("<resource id>"),
            )
        return
    if users := cluster.users_of(scope):
        at.refuse(
            None,
            rule="optional-resource-missing",
            accepted=f"the resource id of the {scope}, where the role of {enumerate_words(users)} is",
            fix=at.to_set("<resource id>"),
        )


def _management_issuer_is_given(cluster: HostedClusterSettings, at: ReportedPlace) -> None:
    users = [row.field for row in cluster.optional_rows if row.subjects]
    if users and cluster.management_issuer_url is None:
        at.refuse(
            None,
            rule="management-issuer-missing",
            accepted=f"the management cluster's OIDC issuer, whose service accounts use {enumerate_words(users)}; "
            "`az aks show --query oidcIssuerProfile.issuerUrl` prints it",
            fix=at.to_set("<url>"),
        )
