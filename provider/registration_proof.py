"""`idstack:index:requireRegistrable`: whether a certificate may be registered at Entra ID.

A state may still have certificates that were revoked after a leak, so the state alone is no reason to register one.
This process must have its key, or the vault must show that it was delivered (decision record 0076).
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
    """Raises `PluginError` for a certificate that must not be registered."""
    if keys.find(args["thumbprint"]) is not None:
        return
    secret = VaultSecret.of(args)
    with explained(f"whether {secret.id} has the certificate cannot be seen"):
        current = secret.metadata()
    begin = rfc3339.parse(args["notBefore"])
    if current is not None and current.tags.get(THUMBPRINT) == args["thumbprint"] and current.not_before == begin:
        return
    raise PluginError(
        f"the certificate {args['thumbprint']} is not registered again: somebody took it out of Entra ID, and "
        f"{secret.id} does not show it. `make recover` notes that, and the next run issues another one"
    )
