"""`SignInGateResource`: proves by sign-ins in a row that Entra ID knows a certificate, before a secret carries it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from cryptography import x509

from identity.credentials import rfc3339
from identity.credentials.certificate import thumbprint
from identity.credentials.sign_in import SignInFailed, prove
from plugin import (
    UNKNOWN,
    Checked,
    Created,
    Diff,
    PluginError,
    Props,
    diff_properties,
    unwrap,
)
from provider.state_only import Inputs, StateOnly

_STRINGS: Final = ("authorityHost", "tenantId", "clientId", "certificatePem", "privateKeyPem", "registration", "scope")
# A new proof is needed when one of these changes. The rest is how to prove, not what.
_PROVEN: Final = ("authorityHost", "tenantId", "clientId", "certificatePem", "registration")


class SignInGateResource(StateOnly):
    """Inputs: `authorityHost`, `tenantId`, `clientId`, `certificatePem`, `privateKeyPem` (secret), `registration` (its
    id in Entra ID), `scope`, `successes`, `settleSeconds`, `timeoutSeconds`.

    Outputs also: `provenAt` (RFC 3339) and the `thumbprint` of the proven certificate.
    """

    secrets = ("privateKeyPem",)

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate, and mark the private key."""
        inputs = Inputs(unwrap(new))
        for name in _STRINGS:
            inputs.string(name)
        for name, least in (("successes", 1), ("settleSeconds", 0), ("timeoutSeconds", 1)):
            inputs.integer(name, least=least)
        return Checked(self.marked(new), inputs.failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Every property may change in place."""
        return Diff(diff_properties(old_inputs, new_inputs))

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Prove the sign-in; in a preview leave `provenAt` unknown."""
        if preview:
            return Created("", self._planned_outputs(inputs))
        return Created(urn.rsplit("::", 1)[-1], self._proven(inputs))

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Prove again if the certificate, its registration or its owner changed."""
        changed = diff_properties(old_inputs, new_inputs)
        if not changed.keys() & set(_PROVEN):
            return self.marked(new_inputs | {name: old_state[name] for name in ("provenAt", "thumbprint")})
        return self._planned_outputs(new_inputs) if preview else self._proven(new_inputs)

    def _planned_outputs(self, inputs: Props) -> Props:
        return self.marked(inputs | {"provenAt": UNKNOWN, "thumbprint": _thumbprint(inputs["certificatePem"])})

    def _proven(self, inputs: Props) -> Props:
        known = unwrap(inputs)
        try:
            proof = prove(
                known["authorityHost"],
                known["tenantId"],
                known["clientId"],
                known["certificatePem"],
                known["privateKeyPem"],
                known["scope"],
                successes=known["successes"],
                settle=timedelta(seconds=known["settleSeconds"]),
                timeout=timedelta(seconds=known["timeoutSeconds"]),
            )
        except (SignInFailed, ValueError) as error:
            raise PluginError(str(error)) from None
        proven_at = rfc3339.render(proof.proven_at)
        return self.marked(inputs | {"provenAt": proven_at, "thumbprint": _thumbprint(known["certificatePem"])})


def _thumbprint(certificate_pem: object) -> object:
    """The certificate's thumbprint; UNKNOWN as long as the certificate is."""
    text = unwrap(certificate_pem)
    return UNKNOWN if text is UNKNOWN else thumbprint(x509.load_pem_x509_certificate(text.encode("ascii")))
