"""`CertificateResource`: a self-signed certificate whose key stays in this process until the vault has it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from identity.azure.registered_certificates import withdraw
from identity.credentials import rfc3339
from identity.credentials.certificate import issue, key_id
from identity.credentials.certificate_rules import KEY_SIZES, LONGEST_COMMON_NAME
from identity.plugin_schema import CertificateInputs, CertificateOutputs
from plugin import PluginError, Props, contains_unknown, pause
from provider import cloud, keys
from provider.resource import Inputs, TypedResource, plugin_errors

# What a certificate was issued for; a change of the others waits for the next issue.
_ISSUE: Final = frozenset({"generation", "notBefore"})
_AS_ISSUED: Final = frozenset({"commonName", "keySize", "lifetimeDays"})


class CertificateResource(TypedResource[CertificateInputs[str], CertificateOutputs[str]]):
    """A new issue replaces this certificate, which never reached the vault, or which no pod needs any more.

    The old one is deleted first, so that nothing of it is left in Entra ID when the next one is registered. A changed
    `applicationId` replaces nothing: another application has another schedule, and that another certificate.
    """

    inputs = CertificateInputs
    outputs = CertificateOutputs
    replacing = _ISSUE | _AS_ISSUED
    delete_before_replace = True

    def require(self, inputs: CertificateInputs[str], report: Inputs) -> None:
        """Key size, length of the common name, and dates."""
        if inputs.get("keySize") not in KEY_SIZES:
            report.refuse("keySize", ", ".join(map(str, KEY_SIZES)))
        common_name = inputs.get("commonName")
        if isinstance(common_name, str) and len(common_name) > LONGEST_COMMON_NAME:
            report.refuse("commonName", f"at most {LONGEST_COMMON_NAME} characters (RFC 5280)")
        not_before = inputs.get("notBefore")
        if isinstance(not_before, str) and not_before:
            try:
                report.require_days("lifetimeDays", since=rfc3339.parse(not_before))
            except ValueError:
                report.refuse("notBefore", f"RFC 3339 such as {rfc3339.EXAMPLE}")

    def decide(self, urn: str, old: Mapping[str, Any] | None, inputs: CertificateInputs[str]) -> Props:
        """Keep what the certificate was issued with.

        A changed key size or lifetime counts from the slot's next generation on. If it replaced the certificate at
        once, the registration of the one in use would go while pods still sign in with it.
        """
        known: Mapping[str, Any] = inputs
        is_issued = old is not None and all(old.get(name) == known[name] for name in _ISSUE)
        return {name: old[name] for name in _AS_ISSUED} if old is not None and is_issued else {}

    def planned(self, inputs: CertificateInputs[str]) -> Props:
        """Only the end of the validity is known."""
        begin, days = inputs["notBefore"], inputs["lifetimeDays"]
        if contains_unknown([begin, days]):
            return super().planned(inputs)
        return super().planned(inputs) | {"notAfter": rfc3339.render(rfc3339.parse(begin) + timedelta(days=days))}

    def make(self, urn: str, inputs: CertificateInputs[str]) -> tuple[str, CertificateOutputs[str]]:
        """Issue the certificate and remember its key; the id is the thumbprint."""
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
        return issued.thumbprint, {
            "certificatePem": issued.certificate_pem,
            "thumbprint": issued.thumbprint,
            "keyId": key_id(issued.thumbprint),
            "notAfter": rfc3339.render(issued.not_after),
        }

    def remove(self, urn: str, id: str, inputs: CertificateInputs[str], outputs: CertificateOutputs[str]) -> None:
        """Remove a registration that the engine does not know of: its creation failed after it had taken effect."""
        keys.forget(id)
        application = inputs.get("applicationId")
        if application is None:
            return
        with plugin_errors(f"whether the certificate {id} is still registered cannot be seen"):
            azure = cloud.client(inputs["cloud"], inputs["tenantId"])
            # The first certificate of an application is alone there.
            withdraw(azure, application, outputs["keyId"], pause, may_be_last=True)
