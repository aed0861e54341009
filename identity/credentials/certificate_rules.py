"""The accepted sizes and the start of certificates, without the library that issues them."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# RSA only: MSAL signs assertions with RS256 or PS256 and refuses every other key.
KEY_SIZES: Final = (2048, 3072, 4096)

# A certificate is valid from this long before its issue, so that a host with a slow clock does not refuse it.
CLOCK_SKEW: Final = timedelta(minutes=5)
