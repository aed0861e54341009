"""`CertificateResource`: a self-signed certificate whose key stays in this process until the vault has it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from identity.azure.errors import AccessError
from identity.azure.registered_certificates import withdraw
from identity.credentials import rfc3339
from identity.credentials.certificate import KEY_SIZES, issue, key_id
from plugin import (
    UNKNOWN,
    Checked,
    Created,
    Diff,
    PluginError,
    PropertyChange,
    Props,
    contains_unknown,
    diff_properties,
    pause,
)
from provider import clock, cloud, keys, schema
from provider.inputs import Inputs
from provider.state_only import StateOnly

# What a certificate was issued for; a change of the others waits for the next issue.
_ISSUE: Final = ("generation", "notBefore")
_AS_ISSUED: Final = ("commonName", "keySize", "lifetimeDays")
# Whose it is. Another application takes another certificate by another schedule.
_OWNER: Final = ("cloud", "tenantId", "applicationId")
_LONGEST_COMMON_NAME: Final = 64


class CertificateResource(StateOnly):
    """Inputs: `commonName`, `keySize`, `lifetimeDays`, `generation`, `notBefore` (RFC 3339); `cloud`, `tenantId` and
    `applicationId` (`/applications/<object id>`) for which it is issued.

    Outputs also: `certificatePem`, `thumbprint` (SHA-1, upper-case hexadecimal), `keyId` (under which to register it),
    `notAfter`.
    """

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
        for name in _OWNER:
            inputs.string(name)
        not_before = inputs.string("notBefore")
        start = clock.now(new.get("cloud", "")) if not_before is None else _timestamp(not_before)
        if start is None:
            inputs.refuse("notBefore", f"RFC 3339 such as {rfc3339.EXAMPLE}")
        else:
            inputs.days("lifetimeDays", least=1, since=start)
        if old is not None:
            schema.require(old)
        marked = schema.marked(new)
        if not inputs.failures and old is not None and all(old.get(name) == new[name] for name in _ISSUE):
            return Checked(marked | {name: old[name] for name in _AS_ISSUED})
        return Checked(marked, inputs.failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Another issue takes the place of this one: it never reached the vault, or no pod needs it any more.

        It goes first, so that whatever is left of it in Entra ID is gone before the next one is registered.
        """
        changes = diff_properties(old_inputs, new_inputs)
        renewed = {path: PropertyChange(each.kind, replace=path not in _OWNER) for path, each in changes.items()}
        return Diff(renewed, delete_before_replace=True)

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Issue the certificate and remember its key; the id is the thumbprint."""
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
        keys.remember(issued)
        state = {
            **inputs,
            "certificatePem": issued.certificate_pem,
            "thumbprint": issued.thumbprint,
            "keyId": key_id(issued.thumbprint),
            "notAfter": rfc3339.render(issued.not_after),
        }
        return Created(issued.thumbprint, state)

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Note another owner; the certificate stays."""
        return {**old_state, **new_inputs}

    def delete(self, urn: str, id: str, inputs: Props, state: Props) -> None:
        """Remove a registration that the engine does not know of: its creation failed after it had taken effect."""
        keys.forget(id)
        application = inputs.get("applicationId")
        if application is None:
            return
        try:
            azure = cloud.client(inputs["cloud"], inputs["tenantId"])
            # The first certificate of an application is alone there.
            withdraw(azure, application, state["keyId"], pause, may_be_last=True)
        except AccessError as error:
            raise PluginError(f"whether the certificate {id} is still registered cannot be seen: {error}") from None


def _planned_outputs(inputs: Props) -> Props:
    """The outputs as far as a preview knows them."""
    validity = (inputs["notBefore"], inputs["lifetimeDays"])
    return {
        **inputs,
        "certificatePem": UNKNOWN,
        "thumbprint": UNKNOWN,
        "keyId": UNKNOWN,
        "notAfter": UNKNOWN
        if contains_unknown(list(validity))
        else rfc3339.render(rfc3339.parse(validity[0]) + timedelta(days=validity[1])),
    }


def _timestamp(text: str) -> datetime | None:
    try:
        return rfc3339.parse(text)
    except ValueError:
        return None
