"""The rules of certificates, without the library that issues them."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# RSA only: MSAL signs assertions with RS256 or PS256 and refuses every other key.
KEY_SIZES: Final = (2048, 3072, 4096)

# RFC 5280 appendix A, ub-common-name.
LONGEST_COMMON_NAME: Final = 64

# A certificate is valid from this long before its issue, so that a host with a slow clock does not refuse it. Entra ID
# accepts assertions from a clock that is off by as much.
CLOCK_SKEW: Final = timedelta(minutes=5)
