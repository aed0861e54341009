"""Interactive sign-ins: the device code flow (RFC 8628) and the refresh tokens that it issues.

Sources: Microsoft's pages on the device authorization grant, on refresh tokens and on AADSTS codes; `slow_down`
is RFC 8628's, which Entra's page does not list. Only digests of codes and refresh tokens are kept.
"""

from __future__ import annotations

import hashlib
import html
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from localcloud.azure.entra import errors
from localcloud.azure.shared.faults import Faults
from localcloud.azure.shared.refusals import refusal
from localcloud.azure.tenant.objects import People, User
from localcloud.core import clock
from localcloud.core.store import Document, Store

# RFC 8628's name, which MSAL for Python sends, and the one of MSAL for Go and JavaScript (`grant.go`, `Constants.ts`).
DEVICE_CODE_GRANTS = ("urn:ietf:params:oauth:grant-type:device_code", "device_code")
_CODES = "entra-device-code"
_USER_CODES = "entra-user-code"
_REFRESH_TOKENS = "entra-refresh-token"
_CODE_LIFETIME = timedelta(minutes=15)
_REFRESH_LIFETIME = timedelta(days=90)  # for a public client, counted from its last use
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # without characters that look alike


class Sessions:
    """Device codes and refresh tokens of the tenant."""

    def __init__(self, store: Store, faults: Faults, people: People) -> None:
        self._store = store
        self._interval = timedelta(seconds=faults.device_code_interval)
        self._people = people

    def begin(self, client_id: str, resource: str, page: str) -> dict[str, Any]:
        """The answer of the device code endpoint; `page` is where the user code is entered."""
        device_code = secrets.token_urlsafe(48)
        user_code = "".join(secrets.choice(_ALPHABET) for _ in range(9))
        key = _digest(device_code)
        self._store.put(
            _CODES,
            key,
            {
                "clientId": client_id,
                "resource": resource,
                "expires": (clock.now() + _CODE_LIFETIME).isoformat(),
                "polled": None,
                "outcome": None,
            },
        )
        self._store.put(_USER_CODES, user_code, {"code": key})
        return {
            "user_code": user_code,
            "device_code": device_code,
            "verification_uri": page,
            "expires_in": int(_CODE_LIFETIME.total_seconds()),
            "interval": max(1, round(self._interval.total_seconds())),
            "message": (
                f"To sign in, use a web browser to open the page {page} and enter the code {user_code} to authenticate."
            ),
        }

    def decide(self, user_code: str, user_principal_name: str, *, approve: bool) -> bool:
        """Approve or decline a code, as the person on the page chose; returns whether code and user are known."""
        index = self._store.get(_USER_CODES, user_code.strip().upper())
        user = self._people.user_by_name(user_principal_name.strip())
        if index is None or user is None:
            return False
        code = self._store.get(_CODES, index["code"])
        if code is None or code["outcome"] is not None:
            return False
        self._store.put(_CODES, index["code"], {**code, "outcome": user.object_id if approve else "declined"})
        return True

    def redeem(self, form: Mapping[str, str]) -> tuple[User, str]:
        """User and resource of an approved device code, which works once; raises ServiceError."""
        key = _digest(form.get("device_code", ""))
        code = self._store.get(_CODES, key)
        if code is None or code["clientId"] != form["client_id"].lower():
            raise refusal("bad_verification_code")
        now = clock.now()
        if now >= datetime.fromisoformat(code["expires"]):
            raise refusal("expired_token")
        polled = code["polled"] and datetime.fromisoformat(code["polled"])
        self._store.put(_CODES, key, {**code, "polled": now.isoformat()})
        if code["outcome"] is None:
            # Half the interval is tolerated, for network jitter.
            is_early = polled and now - polled < self._interval / 2
            raise refusal("slow_down") if is_early else refusal("authorization_pending")
        self._store.delete(_CODES, key)
        user = self._people.user(code["outcome"])
        if user is None:
            raise refusal("authorization_declined")
        return user, code["resource"]

    def refresh_token(self, user: User, client_id: str) -> str:
        """A new refresh token; it is bound to user and client, not to a resource."""
        token = secrets.token_urlsafe(96)
        document: Document = {
            "userId": user.object_id,
            "clientId": client_id.lower(),
            "issued": clock.now().isoformat(),
        }
        self._store.put(_REFRESH_TOKENS, _digest(token), document)
        return token

    def user_of(self, form: Mapping[str, str]) -> User:
        """The user whose session a refresh token continues; using it does not revoke it. Raises ServiceError."""
        known = self._store.get(_REFRESH_TOKENS, _digest(form.get("refresh_token", "")))
        user = self._people.user(known["userId"]) if known else None
        if known is None or user is None or known["clientId"] != form["client_id"].lower():
            raise refusal("invalid_grant")
        issued = datetime.fromisoformat(known["issued"])
        if issued < user.sessions_valid_from:
            raise refusal("invalid_grant revoked", valid_from=errors.ticks(user.sessions_valid_from))
        if clock.now() > issued + _REFRESH_LIFETIME:
            raise refusal("invalid_grant idle", issued=errors.ticks(issued))
        return user


def page(user_code: str, message: str = "") -> str:
    """The page where a person enters the code."""
    return f"""<!doctype html>
<title>Sign in to the local cloud</title>
<h1>Enter code</h1>
<p>{html.escape(message)}</p>
<form method="post">
  <p><label>Code <input name="otc" value="{html.escape(user_code, quote=True)}"></label></p>
  <p><label>User <input name="login" placeholder="name@tenant"></label></p>
  <p><button name="action" value="approve">Sign in</button> <button name="action" value="decline">Decline</button></p>
</form>
"""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
