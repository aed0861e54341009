"""When a signing key may change: the order of a rotation, and how long each step has to wait.

A key is published before it signs, because Entra ID keeps an issuer's keys for a while; it stays published after it has
signed until its last token has expired.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from identity.credentials import rfc3339

# learn.microsoft.com/entra/identity-platform/signing-key-rollover ("General considerations"): keys are cached for 24
# hours. Microsoft does not publish for how long Entra ID itself keeps those of an issuer.
PUBLISHED_BEFORE: Final = timedelta(hours=24)
# The longest life of a pod's token for Entra ID that azure-workload-identity takes (annotation
# azure.workload.identity/service-account-token-expiration: 3600 to 86400 seconds).
KEPT_AFTER: Final = timedelta(hours=24)


class TooEarlyError(ValueError):
    """A step of a rotation before its time; the message says what, and until when to wait."""


@dataclass(frozen=True)
class Publication:
    """When each key was published, by its number; which key signs, and since when."""

    since: Mapping[int, datetime]
    signing: int
    signing_since: datetime


def first(published: Iterable[int], signing: int, now: datetime) -> Publication:
    """The first publication of a new issuer: no token was signed yet, so nothing has to wait."""
    return Publication(dict.fromkeys(published, now), signing, now)


def changed(
    before: Publication, published: Iterable[int], signing: int, now: datetime, *, leaked: Collection[int] = ()
) -> Publication:
    """The publication after a change; raises TooEarlyError for a step that would invalidate tokens in use.

    A `leaked` key goes at once, and the one after it signs at once: tokens of both may be refused for a while.
    """
    kept = set(published)
    since = {number: before.since.get(number, now) for number in sorted(kept)}
    if signing == before.signing:
        changed_to = Publication(since, signing, before.signing_since)
    else:
        changed_to = Publication(since, signing, now)
        if before.signing not in leaked:
            _require_published(signing, before, now)
    _require_expired(set(before.since) - kept - set(leaked), before, changed_to, now)
    return changed_to


def _require_published(signing: int, before: Publication, now: datetime) -> None:
    if signing not in before.since:
        raise TooEarlyError(
            f"key {signing} is not published yet; publish it first, with key {before.signing} still signing, and let "
            f"it sign {_hours(PUBLISHED_BEFORE)} later"
        )
    ready = before.since[signing] + PUBLISHED_BEFORE
    if now < ready:
        raise TooEarlyError(
            f"key {signing} has been published since {rfc3339.render(before.since[signing])}, and Entra ID may not "
            f"know it yet; let it sign after {rfc3339.render(ready)}"
        )


def _require_expired(removed: set[int], before: Publication, after: Publication, now: datetime) -> None:
    for number in sorted(removed):
        if number == before.signing:
            raise TooEarlyError(
                f"tokens of key {number} are still in use; keep it published until {_hours(KEPT_AFTER)} after key "
                f"{after.signing} has begun to sign"
            )
        ready = before.signing_since + KEPT_AFTER
        # A key that was published only after the present one began to sign has never signed.
        if before.since[number] < before.signing_since and now < ready:
            raise TooEarlyError(
                f"tokens of key {number} are in use until {rfc3339.render(ready)}; keep it published until then"
            )


def _hours(span: timedelta) -> str:
    return f"{span // timedelta(hours=1)} hours"
