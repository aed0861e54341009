"""`CertificateResource`: an RSA key with its self-signed certificate in the stack's state, the key as a secret."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from identity.credentials import rfc3339
from identity.credentials.certificate import KEY_SIZES, issue
from plugin import (
    UNKNOWN,
    Checked,
    Created,
    Diff,
    PluginError,
    PropertyChange,
    Props,
    Secret,
    contains_unknown,
    diff_properties,
    unwrap,
)
from provider import clock
from provider.state_only import Inputs, StateOnly

# What a certificate was issued for; a change of the others waits for the next issue.
_ISSUE: Final = ("generation", "notBefore")
_AS_ISSUED: Final = ("commonName", "keySize", "lifetimeDays")
_LONGEST_COMMON_NAME: Final = 64


class CertificateResource(StateOnly):
    """Inputs: `commonName`, `keySize`, `lifetimeDays`, `generation`, `notBefore` (RFC 3339).

    Outputs also: `certificatePem`, `privateKeyPem` (secret), `thumbprint`, `notAfter`.
    """

    secrets = ("privateKeyPem",)

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate, and keep what the certificate was issued with.

        A changed key size or lifetime counts from the slot's next generation on. If it replaced the certificate at
        once, the registration of the one in use would go while pods still sign in with it.
        """
        inputs = Inputs(new)
        inputs.integer("generation", least=1)
        if new.get("keySize") not in KEY_SIZES:
            inputs.refuse("keySize", ", ".join(map(str, KEY_SIZES)))
        common_name = inputs.string("commonName")
        if common_name is not None and len(common_name) > _LONGEST_COMMON_NAME:
            inputs.refuse("commonName", f"at most {_LONGEST_COMMON_NAME} characters (RFC 5280)")
        not_before = inputs.string("notBefore")
        start = clock.now() if not_before is None else _timestamp(not_before)
        if start is None:
            inputs.refuse("notBefore", f"RFC 3339 such as {rfc3339.EXAMPLE}")
        else:
            inputs.days("lifetimeDays", least=1, since=start)
        if not inputs.failures and old is not None and all(unwrap(old.get(name)) == new[name] for name in _ISSUE):
            return Checked({**new, **{name: old[name] for name in _AS_ISSUED}})
        return Checked(new, inputs.failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Any change makes another certificate; the old one exists until the new one does."""
        changes = diff_properties(old_inputs, new_inputs)
        return Diff({path: PropertyChange(change.kind, replace=True) for path, change in changes.items()})

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Issue the certificate; its id is the thumbprint."""
        if preview:
            return Created("", _planned_outputs(inputs))
        try:
            issued = issue(
                inputs["commonName"],
                key_size=inputs["keySize"],
                not_before=rfc3339.parse(inputs["notBefore"]),
                lifetime=timedelta(days=inputs["lifetimeDays"]),
            )
        except ValueError as error:
            raise PluginError(f"no certificate was issued: {error}") from None
        state = {
            **inputs,
            "certificatePem": issued.certificate_pem,
            "privateKeyPem": Secret(issued.private_key_pem),
            "thumbprint": issued.thumbprint,
            "notAfter": rfc3339.render(issued.not_after),
        }
        return Created(issued.thumbprint, state)

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Not called by the engine: every difference replaces the certificate."""
        raise PluginError("a certificate is replaced, not updated")


def _planned_outputs(inputs: Props) -> Props:
    """The outputs as far as a preview knows them."""
    validity = (inputs["notBefore"], inputs["lifetimeDays"])
    return {
        **inputs,
        "certificatePem": UNKNOWN,
        "privateKeyPem": Secret(UNKNOWN),
        "thumbprint": UNKNOWN,
        "notAfter": UNKNOWN
        if contains_unknown(list(validity))
        else rfc3339.render(rfc3339.parse(validity[0]) + timedelta(days=validity[1])),
    }


def _timestamp(text: str) -> datetime | None:
    try:
        return rfc3339.parse(text)
    except ValueError:
        return None
