"""Compares the signing key of an issuer that exists already with what the issuer publishes, before the first resource.

Entra ID refuses every token that is signed by another key, and nothing on the cluster tells why.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import pulumi

from identity.azure.errors import AccessError, AzureRefusedError
from identity.credentials.openid_documents import UnusableIssuerError, keys_of_issuer
from identity.credentials.service_account_key import PublicKey, UnusableKeyError, public_half
from identity.naming import parse_arm_id
from identity.settings import HostedClusterSettings, Problem, Settings, SigningKeySettings
from identity.settings.schema.problems import Place, enumerate_words

if TYPE_CHECKING:
    from identity.azure.client import AzureClient


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
            keys.problems.append(_unusable(key_settings, place, error))
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
            Problem(
                place=(*place, "file"),
                rule="signing-key-file-unreadable",
                found=f'"{key.file}", which cannot be read ({error.__class__.__name__})',
                accepted="the path of a file with an RSA private key in PEM, from the project's folder",
                fix="put the key there, or correct the path",
            )
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
            Problem(
                place=(*place, "vaultSecretName"),
                rule="signing-key-secret-missing",
                found=f'"{name}", which the vault "{parse_arm_id(vault).name}" does not have',
                accepted="the name of a secret that exists in the vault and holds the private key",
                fix="store the key there, or correct the name",
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
        yield Problem(
            place=place,
            rule="signing-key-not-in-issuer",
            found=f"the key {key.key_id}, but {issuer} publishes {known}",
            accepted="the private half of a key that the issuer publishes: Entra ID refuses tokens of any other key",
            fix="publish its public half in the issuer's JWKS, or take the key that belongs to the issuer",
        )


def _unusable_issuer(place: Place, issuer: str, reason: str) -> Problem:
    return Problem(
        place=place,
        rule="issuer-unusable",
        found=f'"{issuer}", whose keys cannot be read: {reason}',
        accepted="an issuer whose discovery document and JWKS anybody can read over https, as Entra ID does",
        fix="publish them there, or correct the address",
    )


def _unusable(key: SigningKeySettings, place: Place, error: UnusableKeyError) -> Problem:
    return Problem(
        place=(*place, "file" if key.file else "vaultSecretName"),
        rule="signing-key-unusable",
        found=f'"{key.file or key.vault_secret_name}", which holds {error}',
        accepted="an RSA private key in PEM, of at least 2048 bits, without a password",
        fix="put the key there that the issuer publishes",
    )
