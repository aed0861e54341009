"""When a certificate is due: early enough for its successor, and not in the same night as all others.

Clusters that come up together would have all their certificates renewed in one night. So each identity is due earlier
by a share of its own, derived from the name of its secret: the same in every run, on every machine, in a preview and in
the run after it (decision record 0001). It is never due later, which would leave less time to recover from failed runs.
"""

from __future__ import annotations

import hashlib
import math
from datetime import timedelta
from fractions import Fraction
from typing import Final

# Between two renewals: until then pods may still use the previous certificate, whatever the settings say.
LEAST_AGE: Final = timedelta(days=1)
# The part of the time between two renewals over which the identities are spread: seven and a half days of 45.
SPREAD: Final = Fraction(1, 6)
# The part of a lifetime that is kept for runs that fail (cert-manager renews at two thirds of it), and how many days
# are enough of a long one.
_KEPT: Final = 3
_ENOUGH_DAYS: Final = 30
# A daily run comes up to a day late, and pods may need the previous certificate during the overlap of a third of a day.
_LEAST_DAYS: Final = 2
_BYTES: Final = 8


def age_when_due(valid_days: int, renew_before_days: int, secret_name: str) -> timedelta:
    """How long after its `not_before` a certificate is due, in whole seconds.

    `valid_days` is the lifetime it was issued for, `secret_name` that of its identity's secret in the vault. The age is
    at most `valid_days - renew_before_days`, at most `SPREAD` of that earlier, and never less than `LEAST_AGE`.
    """
    latest = max(timedelta(days=valid_days - renew_before_days), LEAST_AGE)
    earlier = timedelta(seconds=int(latest / timedelta(seconds=1) * SPREAD * share(secret_name)))
    return max(latest - earlier, LEAST_AGE)


def least_renew_before_days(lifetime_days: int) -> int:
    """How long before its end a certificate with a lifetime of at least 2 days has to be renewed at the latest.

    With daily runs the previous certificate then outlives the overlap (`identity/credentials/schedule.py`), except
    possibly with a lifetime of 2 days.
    """
    third = math.ceil(Fraction(lifetime_days, _KEPT))
    return min(max(min(third, _ENOUGH_DAYS), _LEAST_DAYS), lifetime_days - 1)


def share(secret_name: str) -> Fraction:
    """The identity's part of the spread, at least 0 and less than 1; Key Vault ignores the case of a secret's name."""
    digest = hashlib.sha256(secret_name.lower().encode()).digest()
    return Fraction(int.from_bytes(digest[:_BYTES]), 256**_BYTES)
