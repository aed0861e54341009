"""The rules of a HostedCluster that the stack applies; see `hosted_cluster.py`."""

from __future__ import annotations

from typing import Final

from identity.settings.schema.base import apply
from identity.settings.schema.hosted_clusters import HostedClusterObjectSettings, HostedClusterSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ReportedPlace, to_set


def validate_hosted_cluster_object(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    """Apply every rule about `hostedCluster` to the hosted cluster at `place`."""
    given, at = cluster.hosted_cluster, place / "hostedCluster"
    if given is None:
        return
    apply((_side_is_hypershifts,), settings, cluster, at)
    apply((_users_part_is_given_once, _release_comes_with_a_pull_secret), given, at)
    apply(_RULES, cluster, given, place)


def _side_is_hypershifts(settings: Settings, cluster: HostedClusterSettings, at: ReportedPlace) -> None:
    if settings.makes_cluster_side(cluster):
        at.refuse(
            {},
            rule="hosted-cluster-with-stack-side",
            accepted="nothing with clusterSide: stack, which writes what HyperShift's operators would make of it",
            fix=f"{at.to_remove()}, or {to_set(('clusterSide',), 'hypershift')}",
        )


def _users_part_is_given_once(applied: HostedClusterObjectSettings, at: ReportedPlace) -> None:
    if applied.manifest is not None and applied.file is not None:
        at.refuse(
            {},
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
            {},
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
                None,
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
                None,
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
            None,
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
            applied.service_account_signing_key,
            rule="signing-key-named-twice",
            accepted=f"nothing: the stack itself makes the Secret, {cluster.signing_key_secret}",
        )
    # A manifest may name the Secret: it is read later (`components/preflight/hosted_cluster_manifest.py`).
    elif cluster.signing_key_reference is None and applied.manifest is None and applied.file is None:
        at.refuse(
            None,
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
        at.refuse(applied.etcd_encryption, rule="etcd-encryption-of-given", accepted=accepted)
    elif cluster.kms is not None:
        at.refuse(
            applied.etcd_encryption,
            rule="etcd-encryption-twice",
            accepted=f"nothing with {place / 'kms'}, which encrypts etcd",
            fix=f"{at.to_remove()}, or {(place / 'kms').to_remove()}",
        )


_RULES: Final = (
    _written_cluster_has_its_domains,
    _written_cluster_has_its_host_names,
    _signing_key_is_named,
    _etcd_is_encrypted_once,
)
