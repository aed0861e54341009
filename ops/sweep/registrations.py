"""Certificates that are registered at the stacks' applications, but unknown to every stack.

A state from before a renewal does not have the renewal's registration: a backup, or a copy of a truncated state. The
next `up` registers a new certificate and leaves that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime

from identity.azure.client import AzureObject
from identity.azure.records import SecretMetadata
from identity.azure.registered_certificates import registered
from identity.credentials import rfc3339
from identity.credentials.schedule import OVERLAP
from identity.credentials.secret_tags import DELIVERED_AT, THUMBPRINT
from ops.sweep.model import CERTIFICATE, LeftOver, Swept


def find(
    applications: Iterable[AzureObject],
    secrets: Iterable[SecretMetadata],
    is_named: Callable[[str], bool],
    now: datetime,
) -> Iterator[LeftOver]:
    """The unknown registrations of ours with a successor in the vault, so that pods do not depend on them for long.

    Args:
        applications: of stacks, as objects of Graph.
        secrets: the vault's.
        is_named: whether a stack has the certificate with this key id.
        now: with a time zone.
    """
    delivered = dict(_delivered(secrets))
    for application in applications:
        ours = {
            thumbprint: certificate.key_id
            for certificate in registered(application)
            if certificate.is_ours and (thumbprint := certificate.thumbprint)
        }
        successors = [
            delivered[thumbprint] for thumbprint, name in ours.items() if thumbprint in delivered and is_named(name)
        ]
        if not successors:
            continue
        free_at = max(successors) + OVERLAP
        for thumbprint, key_id in ours.items():
            if not is_named(key_id) and thumbprint not in delivered:
                yield LeftOver(
                    Swept.REGISTRATION,
                    f"/applications/{application['id']}{CERTIFICATE}{key_id}",
                    f"{thumbprint} of {application['displayName']}",
                    "no stack has it, and the vault has a newer one",
                    too_soon=f"pods may sign in with it until {rfc3339.render(free_at)}" if now < free_at else None,
                )


def _delivered(secrets: Iterable[SecretMetadata]) -> Iterator[tuple[str, datetime]]:
    """Thumbprint and time of each certificate in the vault, by valid tags."""
    for secret in secrets:
        with suppress(KeyError, ValueError):
            yield secret.tags[THUMBPRINT], rfc3339.parse(secret.tags[DELIVERED_AT])
