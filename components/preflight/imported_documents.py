"""Credentials from elsewhere: documents of managed identities, and the signing keys of issuers that exist already.

A signing key has to be one that its issuer publishes: Entra ID refuses every token of another one, and nothing on the
cluster tells why.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pulumi

from components.azure.control_plane_identity import CredentialSummary, ImportedCredential, summary_of
from components.preflight.azure_objects import Answers, Existence, NamedObject, managed_identity, stored_secret
from components.preflight.problems import problem
from identity.azure.errors import AccessError, AzureRefusedError
from identity.credentials import renewal_request, rfc3339
from identity.credentials.certificate_rules import CLOCK_SKEW
from identity.credentials.document import (
    Credential,
    InvalidCredentialError,
    StoredBefore,
    unlikely_dates,
    validate,
    wrap,
)
from identity.credentials.openid_documents import UnusableIssuerError, keys_of_issuer
from identity.credentials.secret_tags import THUMBPRINT
from identity.credentials.service_account_key import PublicKey, UnusableKeyError, public_half
from identity.naming import parse_arm_id
from identity.plugin_schema import CredentialDocument
from identity.settings import (
    ConfigurationError,
    HostedClusterSettings,
    IdentitySettings,
    ImportedCredentialSettings,
    Problem,
    Settings,
    SigningKeySettings,
)
from identity.settings.schema.problems import Place, enumerate_words

if TYPE_CHECKING:
    from identity.azure.client import AzureClient


# The credentials of managed identities by hosted cluster and catalogue field.
ImportedCredentials: TypeAlias = Mapping[str, Mapping[str, ImportedCredential]]


@dataclass(frozen=True)
class ImportedIdentity:
    """A managed identity of a hosted cluster whose credential was made elsewhere, and the secret of that credential."""

    cluster: str
    place: Place
    settings: IdentitySettings
    managed: NamedObject
    secret: NamedObject


def imported_identities(settings: Settings, vault: str) -> Iterator[ImportedIdentity]:
    """The managed identities and their secrets; one that a document from a file is written to need not exist."""
    for index, cluster in enumerate(settings.hosted_clusters):
        for row in cluster.enabled_rows:
            if (identity := cluster.identity(row)).source == "managed-identity":
                place: Place = ("hostedClusters", index, "identities", row.field)
                is_stored = identity.credential is not None and identity.credential.secret_name is not None
                existence = Existence.REQUIRED if is_stored else Existence.OPTIONAL
                managed = NamedObject((*place, "resourceId"), managed_identity(identity.resource_id or ""))
                at = (*place, "credential", "secretName")
                secret = NamedObject(at, stored_secret(vault, identity), existence=existence)
                yield ImportedIdentity(cluster.name, place, identity, managed, secret)


def imported_credentials(
    settings: Settings, imported: Iterable[ImportedIdentity], answers: Answers, vault: str
) -> tuple[ImportedCredentials, Sequence[Problem]]:
    """The credentials of which nothing is missing, and what is wrong with the others; `vault` is the vault's ARM id."""
    found: dict[str, dict[str, ImportedCredential]] = {cluster.name: {} for cluster in settings.hosted_clusters}
    problems: list[Problem] = []
    for one in imported:
        try:
            if (credential := _credential(settings, one, answers, vault)) is not None:
                found[one.cluster][str(one.place[-1])] = credential
        except ConfigurationError as error:
            problems += error.problems
    return found, problems


def _credential(
    settings: Settings, imported: ImportedIdentity, answers: Answers, vault: str
) -> ImportedCredential | None:
    """The credential of the managed identity; None if what it needs is missing, which is reported already.

    Raises ConfigurationError with everything that is wrong with it.
    """
    identity, place = imported.settings, imported.place
    answer, credential = answers.get(imported.managed.lookup), identity.credential
    stored = answers.get(imported.secret.lookup)
    if answer is None or credential is None:
        return None
    client_id: str = answer["clientId"]
    problems = list(_other_client_id(identity, client_id, place))
    document: CredentialDocument[pulumi.Input[str]] | None = None
    summary: CredentialSummary | None = None
    now = datetime.now(UTC)
    try:
        if credential.secret_name is not None:
            summary = None if stored is None else read_stored(stored, now=now)
        else:
            known = read_document(
                credential,
                now=now,
                tenant_id=settings.tenant_id,
                client_id=client_id,
                object_encoding=identity.object_encoding,
            )
            document = document_in(credential, known, client_id)
            summary = summary_of(document)
            if stored is not None:
                before = stored_before(stored, parse_arm_id(vault).name, identity.secret_name)
                problems += _older(credential, known, before, place)
    except InvalidCredentialError as error:
        problems.append(_unusable((*place, "credential"), error))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(
            problem(
                "credential-file-unreadable",
                (*place, "credential", "file"),
                file=credential.file,
                error=error.__class__.__name__,
            )
        )
    if problems:
        raise ConfigurationError(problems)
    if summary is None:
        return None
    return ImportedCredential(
        client_id=client_id, principal_id=answer["principalId"], document=document, summary=summary
    )


def _other_client_id(identity: IdentitySettings, client_id: str, place: Place) -> Iterator[Problem]:
    if identity.client_id is not None and identity.client_id != client_id:
        yield problem("client-id-mismatch", (*place, "clientId"), configured=identity.client_id, client_id=client_id)


def _older(
    credential: ImportedCredentialSettings, known: Credential, before: StoredBefore, place: Place
) -> Iterator[Problem]:
    """Refuse a document that is older than the vault's; a run that only renews writes none."""
    why = before.why_it_stays(known.thumbprint, known.not_before)
    if why and not renewal_request.is_renewal_run(os.environ):
        yield problem(
            "credential-document-older",
            (*place, "credential", "file"),
            file=credential.file,
            why=why,
            ways_out=before.ways_out,
        )


def _unusable(place: Place, error: InvalidCredentialError) -> Problem:
    return Problem(
        place=place,
        rule="credential-document-invalid",
        found="\n    - ".join(("a credential document that cannot be used:", *error.problems)),
        accepted="the document that the MSI data plane issued for this identity, as it is",
        fix="have it issued again",
    )


def read_document(
    credential: ImportedCredentialSettings, *, now: datetime, tenant_id: str, client_id: str, object_encoding: str
) -> Credential:
    """Read and validate the document in a file; warns of its implausible dates.

    Raises OSError or UnicodeDecodeError for a file that cannot be read, and InvalidCredentialError with every problem
    of the document.
    """
    path = credential.file or ""
    text = Path(path).read_text(encoding="utf-8")
    known = validate(
        wrap(text, object_encoding),
        now=now,
        expected_tenant=tenant_id,
        expected_client_id=client_id,
        object_encoding=object_encoding,
    )
    for remark in unlikely_dates(known):
        pulumi.log.warn(f"the credential document {path} is used although {remark}")
    return known


def document_in(
    credential: ImportedCredentialSettings, known: Credential, client_id: str
) -> CredentialDocument[pulumi.Input[str]]:
    """The secret's inputs for the document in a file; `client_id` is spelled as Azure spells it."""
    if known.renew_after is None or known.cannot_renew_after is None:
        raise AssertionError("validate lets no document pass that lacks a date")
    return {
        "file": credential.file or "",
        "clientId": client_id,
        "thumbprint": known.thumbprint,
        "notBefore": rfc3339.render(known.not_before),
        # Status and alerts use it: the certificate's end counts, whatever the document says.
        "notAfter": rfc3339.render(known.expires),
        "renewAfter": rfc3339.render(known.renew_after),
        "cannotRenewAfter": rfc3339.render(known.cannot_renew_after),
    }


def read_stored(secret: Mapping[str, Any], *, now: datetime) -> CredentialSummary:
    """Validate a secret that holds the document by its metadata, as ARM does not show its value.

    `secret` is ARM's answer (Microsoft.KeyVault/vaults/secrets). Raises InvalidCredentialError with every reason why
    no pod could use it.
    """
    attributes = secret["properties"].get("attributes") or {}
    begins, ends = (rfc3339.from_unix(attributes.get(name)) for name in ("notBefore", "expires"))
    problems = []
    if attributes.get("enabled") is False:
        problems.append("enabled: found false, so that no pod can mount it; accepted: true; enable the secret")
    if begins is not None and begins > now + CLOCK_SKEW:
        problems.append(
            f'nbf: found "{rfc3339.render(begins)}", which is in the future; accepted: a time in the past; wait until '
            "then"
        )
    if ends is not None and ends <= now:
        problems.append(
            f'exp: found "{rfc3339.render(ends)}", which is in the past; accepted: a time in the future; have it '
            "issued again and store it as a new version"
        )
    if problems:
        raise InvalidCredentialError(problems)
    return {
        "notAfter": None if ends is None else rfc3339.render(ends),
        "renewAfter": (secret.get("tags") or {}).get("renew_after"),
        "thumbprint": None,
        "generation": None,
    }


def stored_before(secret: Mapping[str, Any], vault: str, name: str) -> StoredBefore:
    """What a vault has under the name that a document from a file is written to; `secret` as in `read_stored`."""
    begins = rfc3339.from_unix((secret["properties"].get("attributes") or {}).get("notBefore"))
    return StoredBefore(vault, name, (secret.get("tags") or {}).get(THUMBPRINT), begins)


@dataclass(frozen=True)
class ExistingKeys:
    """The ids of the keys in files, by hosted cluster, and what is wrong with keys and issuers."""

    of_files: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_existing_keys(settings: Settings, vault: str) -> ExistingKeys:
    """Read the signing keys that somebody else made, and compare them with their issuers; `vault` is an ARM id."""
    keys = ExistingKeys()
    clusters = settings.hosted_clusters
    if not any(cluster.issuer == "existing" and cluster.service_account_signing_key for cluster in clusters):
        return keys
    # azure-identity takes a tenth of the program's memory, and few stacks get here.
    from identity.azure.connection import connected

    azure = connected(settings.cloud.name, settings.tenant_id, os.environ)
    for index, cluster in enumerate(clusters):
        key_settings = cluster.service_account_signing_key
        if cluster.issuer != "existing" or key_settings is None:
            continue
        place: Place = ("hostedClusters", index, "serviceAccountSigningKey")
        try:
            if key_settings.file:
                key = _of_file(key_settings, place, keys)
            else:
                key = _of_vault(azure, vault, key_settings, place, keys)
        except UnusableKeyError as error:
            keys.problems.append(_unusable_key(key_settings, place, error))
            continue
        if key is None:
            continue
        if key_settings.file:
            keys.of_files[cluster.name] = key.key_id
        keys.problems.extend(_compared(azure, cluster, key, place))
    return keys


def _of_file(key: SigningKeySettings, place: Place, keys: ExistingKeys) -> PublicKey | None:
    try:
        return public_half(Path(key.file or "").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        keys.problems.append(
            problem("signing-key-file-unreadable", (*place, "file"), file=key.file, error=error.__class__.__name__)
        )
        return None


def _of_vault(
    azure: AzureClient, vault: str, key: SigningKeySettings, place: Place, keys: ExistingKeys
) -> PublicKey | None:
    """The key in the vault; None, with a log line, for a caller who may not read it, such as a reader's preview."""
    name = key.vault_secret_name or ""
    try:
        secret = azure.vault(parse_arm_id(vault).name, "GET", f"/secrets/{name}")
    except AccessError as error:
        if isinstance(error, AzureRefusedError) and error.status in (HTTPStatus.FORBIDDEN, None):
            pulumi.log.info(f"the signing key {name} is not compared with its issuer: it cannot be read here")
            return None
        raise pulumi.RunError(f"the signing key {name} cannot be read: {error}. Nothing was changed.") from None
    if secret is None:
        keys.problems.append(
            problem(
                "signing-key-secret-missing", (*place, "vaultSecretName"), name=name, vault=parse_arm_id(vault).name
            )
        )
        return None
    return public_half(str(secret["value"]))


def _compared(azure: AzureClient, cluster: HostedClusterSettings, key: PublicKey, place: Place) -> Iterator[Problem]:
    issuer = cluster.issuer_url
    at: Place = (*place[:-1], "issuerURL")
    try:
        published = keys_of_issuer(azure.public_document, issuer)
    except (UnusableIssuerError, AccessError) as error:
        yield _unusable_issuer(at, issuer, str(error))
        return
    if published.get(key.key_id) != (key.jwk["n"], key.jwk["e"]):
        known = enumerate_words(sorted(published), last="and") if published else "no RSA key"
        yield problem("signing-key-not-in-issuer", place, key=key.key_id, issuer=issuer, known=known)


def _unusable_issuer(place: Place, issuer: str, reason: str) -> Problem:
    return problem("issuer-unusable", place, issuer=issuer, why=reason)


def _unusable_key(key: SigningKeySettings, place: Place, error: UnusableKeyError) -> Problem:
    return problem(
        "signing-key-unusable",
        (*place, "file" if key.file else "vaultSecretName"),
        name=key.file or key.vault_secret_name,
        error=error,
    )
