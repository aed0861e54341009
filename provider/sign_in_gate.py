"""`SignInGateResource`: proves by sign-ins in a row that Entra ID knows a certificate, before a secret carries it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.sign_in import SignInFailedError, prove
from plugin import UNKNOWN, Checked, Created, Diff, PluginError, Props, diff_properties, pause
from provider import clock, keys, schema
from provider.inputs import Inputs
from provider.state_only import StateOnly

_STRINGS: Final = ("authorityHost", "tenantId", "clientId", "thumbprint", "registration", "scope")
# Another certificate, or another owner of it, needs another proof. The rest is where and how to prove.
_PROVEN: Final = ("clientId", "thumbprint")


class SignInGateResource(StateOnly):
    """Inputs: `authorityHost`, `tenantId`, `clientId`, `thumbprint` of a certificate that this process issued (SHA-1),
    `registration` (its id in Entra ID), `scope`, `successes`, `settleSeconds`, `timeoutSeconds`.

    Outputs also: `provenAt` (RFC 3339).
    """

    def check(self, urn: str, old: Props | None, new: Props) -> Checked:
        """Validate."""
        inputs = Inputs(new)
        for name in _STRINGS:
            inputs.string(name)
        for name, least in (("successes", 1), ("settleSeconds", 0), ("timeoutSeconds", 1)):
            inputs.integer(name, least=least)
        if old is not None:
            schema.require(old)
        return Checked(schema.marked(new), inputs.failures)

    def diff(self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props) -> Diff:
        """Every property may change in place."""
        return Diff(diff_properties(old_inputs, new_inputs))

    def create(self, urn: str, inputs: Props, *, preview: bool) -> Created:
        """Prove the sign-in; in a preview leave `provenAt` unknown."""
        if preview:
            return Created("", inputs | {"provenAt": UNKNOWN})
        return Created(urn.rsplit("::", 1)[-1], _proven(inputs))

    def update(
        self, urn: str, id: str, old_inputs: Props, old_state: Props, new_inputs: Props, *, preview: bool
    ) -> Props:
        """Prove another certificate. One that the vault has was proven before, and this process does not have its key:
        if it is registered once more, there is nothing to write that would have to wait for a proof.
        """
        changed = diff_properties(old_inputs, new_inputs)
        if not changed.keys() & set(_PROVEN):
            return new_inputs | {"provenAt": old_state["provenAt"]}
        return new_inputs | {"provenAt": UNKNOWN} if preview else _proven(new_inputs)


def _proven(inputs: Props) -> Props:
    issued = keys.find(inputs["thumbprint"])
    if issued is None:
        raise PluginError(
            f"the key of the certificate {inputs['thumbprint']} is gone: the run that issued it ended before the vault "
            "had it. Run the command again, which issues another certificate"
        )
    _require_valid(issued)
    try:
        return inputs | {"provenAt": _proof(inputs, issued)}
    except (SignInFailedError, ValueError) as error:
        raise PluginError(str(error)) from None


def _require_valid(issued: IssuedCertificate) -> None:
    """Raises PluginError for a certificate that Entra ID would call expired, again and again until the time-out."""
    now = datetime.now(UTC)
    if issued.not_before > now + clock.TOLERANCE:
        wrong = f"begins at {rfc3339.render(issued.not_before)}"
    elif issued.not_after <= now:
        wrong = f"ended at {rfc3339.render(issued.not_after)}"
    else:
        return
    raise PluginError(
        f"the certificate {issued.thumbprint} {wrong}, and it is {rfc3339.render(now)}: nobody can sign in with it, "
        "so it was not delivered. If this machine's clock is wrong, set it right, and correct the secret's `nbf` if "
        "somebody edited that; then run the command again"
    )


def _proof(inputs: Props, issued: IssuedCertificate) -> str:
    proven_at = prove(
        inputs["authorityHost"],
        inputs["tenantId"],
        inputs["clientId"],
        issued.certificate_pem,
        issued.private_key_pem,
        inputs["scope"],
        successes=inputs["successes"],
        settle=timedelta(seconds=inputs["settleSeconds"]),
        timeout=timedelta(seconds=inputs["timeoutSeconds"]),
        sleep=pause,
    )
    return rfc3339.render(proven_at)
