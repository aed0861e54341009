"""What a token says about itself, read without checking its signature: to tell people, never to decide."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any


def claims_of(token: str) -> Mapping[str, Any]:
    """The payload of a JWT; empty for anything else."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (IndexError, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}
