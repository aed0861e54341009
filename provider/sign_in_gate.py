"""`SignInGateResource`: proves by consecutive sign-ins that Entra ID knows a certificate, before a secret has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from identity.credentials import rfc3339
from identity.credentials.certificate import IssuedCertificate
from identity.credentials.certificate_rules import CLOCK_SKEW
from identity.credentials.sign_in import SignInFailedError, prove
from identity.plugin_schema import SignInGateInputs, SignInGateOutputs
from plugin import PluginError, pause
from provider import keys
from provider.resource import TypedResource, name_of


class SignInGateResource(TypedResource[SignInGateInputs[str], SignInGateOutputs[str]]):
    """The proof of a certificate that this process issued."""

    inputs = SignInGateInputs
    outputs = SignInGateOutputs

    def make(self, urn: str, inputs: SignInGateInputs[str]) -> tuple[str, SignInGateOutputs[str]]:
        """Prove the sign-in."""
        issued = keys.find(inputs["thumbprint"])
        if issued is None:
            raise PluginError(
                f"the key of the certificate {inputs['thumbprint']} is gone: the run that issued it ended before the "
                "vault had it. Run the command again, which issues another certificate"
            )
        _require_valid(issued)
        try:
            return name_of(urn), {"provenAt": _proof(inputs, issued)}
        except (SignInFailedError, ValueError) as error:
            raise PluginError(str(error)) from None

    def keeps_outputs(self, old: SignInGateInputs[str], new: SignInGateInputs[str]) -> bool:
        """Only another certificate, or another application, needs another proof.

        A certificate in the vault was proven before, and this process does not have its key. If it is registered once
        more, nothing is written that would have to wait for a proof.
        """
        return (old["clientId"], old["thumbprint"]) == (new["clientId"], new["thumbprint"])


def _require_valid(issued: IssuedCertificate) -> None:
    """Raises PluginError for a certificate that Entra ID would refuse as expired until the time-out."""
    now = datetime.now(UTC)
    if issued.not_before > now + CLOCK_SKEW:
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


def _proof(inputs: SignInGateInputs[str], issued: IssuedCertificate) -> str:
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
