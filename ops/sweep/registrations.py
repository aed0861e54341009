"""Certificates that are registered at the stacks' applications, and that no stack knows of.

A state that is older than a renewal does not have what that renewal registered: one of a backup, or a copy in the place
of a state that was cut short. The next `up` registers another certificate and leaves that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from identity.access.azure_client import AzureObject
from identity.access.records import SecretMetadata
from identity.access.registered_certificates import registered
from identity.credentials import rfc3339
from identity.credentials.schedule import OVERLAP
from identity.credentials.secret_tags import DELIVERED_AT, THUMBPRINT


@dataclass(frozen=True)
class UnknownRegistration:
    """A certificate of ours at an application; `free_at` is when no pod signs in with it any more."""

    application: AzureObject
    key_id: str
    thumbprint: str
    free_at: datetime


def find(
    applications: Iterable[AzureObject], secrets: Iterable[SecretMetadata], is_named: Callable[[str], bool]
) -> Iterator[UnknownRegistration]:
    """Those whose successor the vault has: what pods use until then is never among them.

    Args:
        applications: of stacks, as Graph gives them.
        secrets: the vault's.
        is_named: whether a stack has the certificate with this key id.
    """
    delivered = dict(_delivered(secrets))
    for application in applications:
        ours = {made: each.key_id for each in registered(application) if each.is_ours and (made := each.thumbprint)}
        successors = [delivered[made] for made, name in ours.items() if made in delivered and is_named(name)]
        if not successors:
            continue
        for made, name in ours.items():
            if not is_named(name) and made not in delivered:
                yield UnknownRegistration(application, name, made, max(successors) + OVERLAP)


def _delivered(secrets: Iterable[SecretMetadata]) -> Iterator[tuple[str, datetime]]:
    """Thumbprints of the certificates in the vault, and since when; tags that somebody has spoilt do not tell."""
    for each in secrets:
        with suppress(KeyError, ValueError):
            yield each.tags[THUMBPRINT], rfc3339.parse(each.tags[DELIVERED_AT])
