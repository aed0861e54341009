"""The rules of the access to a hosted cluster's API server; see `stack.py`.

The rules are those of the HostedCluster API (openshift/hypershift at 3ee9615, api/hypershift/v1beta1/azure.go:362-366,
743-800), which would refuse the object only after everything else is there.
"""

from __future__ import annotations

from typing import Final

from identity.settings.schema.endpoint_access import PrivateSettings
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.invalid import apply
from identity.settings.schema.problems import ReportedPlace

# MaxItems of `additionalAllowedSubscriptions`.
_MOST_SUBSCRIPTIONS: Final = 50


def validate_endpoint_access(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule to `topology` and `private` of the hosted cluster at `place`."""
    apply((_private_access_is_described,), cluster, place)
    if cluster.private is not None:
        apply((_one_way_is_described, _private_link_is_whole), cluster.private, place / "private")


def _private_access_is_described(cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    at, topology = place / "private", place / "topology"
    is_private = cluster.topology is not None and cluster.topology != "Public"
    if is_private and cluster.private is None:
        at.refuse(
            None,
            rule="private-access-missing",
            accepted=f"how the API server is reached privately, with {topology}: {cluster.topology}",
            fix=f"{(at / 'type').to_set('<PrivateLink|Swift>')}, or {topology.to_set('Public')}",
        )
    if cluster.private is not None and not is_private:
        at.refuse(
            {},
            rule="private-access-without-topology",
            accepted=f"nothing, unless {topology} is PublicAndPrivate or Private",
            fix=f"{at.to_remove()}, or {topology.to_set('<PublicAndPrivate|Private>')}",
        )


def _one_way_is_described(private: PrivateSettings, place: ReportedPlace) -> None:
    for key, way, value in (("privateLink", "PrivateLink", private.private_link), ("swift", "Swift", private.swift)):
        at = place / key
        if private.type == way and value is None:
            at.refuse(
                None,
                rule="private-access-incomplete",
                accepted=f"the keys of {way}, which is the type",
                fix=f"write it as YAML at {at} in the stack file",
            )
        if private.type != way and value is not None:
            at.refuse(
                {},
                rule="private-access-unused",
                accepted=f"nothing with type: {private.type}",
                fix=f"{at.to_remove()}, or {(place / 'type').to_set(way)}",
            )


def _private_link_is_whole(private: PrivateSettings, place: ReportedPlace) -> None:
    link = private.private_link
    if link is None:
        return
    place = place / "privateLink"
    subscriptions = link.additional_allowed_subscriptions
    if link.nat_subnet_id is None and not subscriptions:
        place.refuse(
            {},
            rule="private-link-empty",
            accepted="natSubnetID, additionalAllowedSubscriptions or both: the API refuses an empty privateLink",
            fix=(place / "natSubnetID").to_set("<resource id>"),
            reason="it is empty",
        )
    at = place / "additionalAllowedSubscriptions"
    if len(subscriptions) > _MOST_SUBSCRIPTIONS or len(set(subscriptions)) < len(subscriptions):
        at.refuse(
            subscriptions,
            rule="private-link-subscriptions",
            accepted=f"at most {_MOST_SUBSCRIPTIONS} subscriptions, each once",
            fix=f"write it as YAML at {at} in the stack file",
            reason=f"{len(subscriptions)} entries, {len(set(subscriptions))} of them different",
        )
