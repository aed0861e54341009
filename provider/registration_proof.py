"""`idstack:index:requireRegistrable`: whether a certificate may be registered at Entra ID.

A state keeps certificates that were revoked since, after a leak too. So one alone is no reason to register it:
this process has its key, or the vault shows that it was delivered (decision record 0076).
"""

from __future__ import annotations

from identity.credentials import rfc3339
from identity.credentials.secret_tags import THUMBPRINT
from identity.plugin_schema import RegistrableCertificate
from plugin import PluginError
from provider import keys
from provider.resource import explained
from provider.vault_secrets import VaultSecret


def require_registrable(args: RegistrableCertificate) -> None:
    """Raises `PluginError` for a certificate that nobody may register."""
    if keys.find(args["thumbprint"]) is not None:
        return
    secret = VaultSecret.of(args)
    with explained(f"whether {secret.id} has the certificate cannot be seen"):
        found = secret.metadata()
    begin = rfc3339.parse(args["notBefore"])
    if found is not None and found.tags.get(THUMBPRINT) == args["thumbprint"] and found.not_before == begin:
        return
    raise PluginError(
        f"the certificate {args['thumbprint']} is not registered again: somebody took it out of Entra ID, and "
        f"{secret.id} does not show it. `make recover` notes that, and the next run issues another one"
    )
