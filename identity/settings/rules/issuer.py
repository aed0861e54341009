"""The rules of a hosted cluster's issuer and signing key; see `hosted_cluster.py`."""

from __future__ import annotations

from typing import Final

from identity.naming import issuer_url
from identity.settings.schema.base import apply, unless_refused
from identity.settings.schema.endpoints import SigningKeySettings
from identity.settings.schema.hosted_clusters import HostedClusterSettings
from identity.settings.schema.model import Settings
from identity.settings.schema.problems import ReportedPlace, enumerate_words

_EXISTING_ONLY: Final = (("vaultSecretName", "vault_secret_name"), ("file", "file"))
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
    owners: dict[str, ReportedPlace] = {}
    for index, cluster in enumerate(settings.hosted_clusters):
        with unless_refused():
            place, name = root / "hostedClusters" / index / "issuerName", cluster.issuer_name
            if name is not None and (first := owners.setdefault(name, place)) != place:
                place.refuse(
                    name,
                    rule="duplicate-issuer-name",
                    accepted=f"a name other than {first}: a storage account holds one issuer",
                    fix=place.to_set("<name>"),
                )


def _name_goes_with_creation(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    at = place / "issuerName"
    if cluster.issuer == "create" and cluster.issuer_name is None:
        at.refuse(
            None,
            rule="issuer-name-missing",
            accepted="the name of the storage account that issuer: create makes, unique in Azure",
            fix=at.to_set("<name>"),
        )
    if cluster.issuer == "existing" and cluster.issuer_name is not None:
        at.refuse(
            cluster.issuer_name,
            rule="issuer-name-unused",
            accepted="nothing with issuer: existing, whose address is issuerURL",
            fix=f"{at.to_remove()}, or {(place / 'issuer').to_set('create')}",
        )


def _url_is_the_created_issuers(settings: Settings, cluster: HostedClusterSettings, place: ReportedPlace) -> None:
    if cluster.issuer != "create" or cluster.issuer_name is None:
        return
    written, at = issuer_url(cluster.issuer_name, settings.cloud.storage_suffix), place / "issuerURL"
    if cluster.issuer_url != written:
        at.refuse(
            cluster.issuer_url,
            rule="issuer-url-of-created",
            accepted=f"nothing with issuer: create, which makes {written}",
            fix=f"{at.to_remove()}, or {(place / 'issuer').to_set('existing')}",
        )


def _created_key_has_no_source(key: SigningKeySettings, place: ReportedPlace) -> None:
    for name, attribute in _EXISTING_ONLY:
        value = getattr(key, attribute)
        if value is not None:
            at = place / name
            at.refuse(
                value,
                rule="signing-key-of-created-issuer",
                accepted="nothing with issuer: create, where the stack makes the key itself",
            )


def _signing_key_is_published(key: SigningKeySettings, place: ReportedPlace) -> None:
    if key.signing not in key.published:
        at = place / "signing"
        published = enumerate_words(map(str, key.published), last="or")
        at.refuse(
            key.signing,
            rule="signing-key-not-published",
            accepted=f"{published}, of {place / 'published'}: Entra ID refuses tokens of any other key",
            fix=at.to_set(str(key.published[-1])),
        )


def _leaked_key_is_not_published(key: SigningKeySettings, place: ReportedPlace) -> None:
    if both := set(key.leaked) & set(key.published):
        at = place / "published"
        at.refuse(
            key.published,
            rule="leaked-key-published",
            accepted=f"numbers that are not in {place / 'leaked'}: the holder of such a key signs tokens of "
            "any service account with it, and takes the roles of the cluster's identities",
            fix=f"publish a new key in place of {enumerate_words(map(str, sorted(both)))}, and let it sign",
        )


def _existing_key_is_not_numbered(key: SigningKeySettings, place: ReportedPlace) -> None:
    for name in _CREATED_ONLY:
        if name in key.model_fields_set:
            at = place / name
            at.refuse(
                getattr(key, name),
                rule="signing-key-of-existing-issuer",
                accepted="nothing with issuer: existing, whose keys are made and published elsewhere",
                fix=f"{at.to_remove()}, or {place.at((*place.place[:-1], 'issuer')).to_set('create')}",
            )


def _existing_key_has_one_source(key: SigningKeySettings, place: ReportedPlace) -> None:
    keys = [name for name, attribute in _EXISTING_ONLY if getattr(key, attribute) is not None]
    if len(keys) != 1:
        place.refuse(
            {},
            rule="one-signing-key",
            accepted="exactly one of vaultSecretName and file",
            fix=" or ".join((place / name).to_remove() for name in keys)
            or (place / "vaultSecretName").to_set("<secret>"),
            reason=f"it holds {enumerate_words(keys)}" if keys else "it is empty",
        )


_OF_A_CREATED_KEY: Final = (_created_key_has_no_source, _signing_key_is_published, _leaked_key_is_not_published)
_OF_AN_EXISTING_KEY: Final = (_existing_key_is_not_numbered, _existing_key_has_one_source)
