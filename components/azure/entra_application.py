"""Credential source `entra-application`: an Entra application whose certificates the stack issues and renews.

Two certificates are registered, slots `a` and `b`; a renewal schedule decides which is current. The order inside one
run is: issue, register, gate. A resource that uses `document` waits for the gate of the current slot, not for the other
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import pulumi
import pulumi_azuread as azuread

from components.azure.credential_secret import CredentialDates, CredentialDocument, CredentialSummary, summary_of
from components.azure.plugin_resources import Certificate, RenewalSchedule, SignInGate
from identity.credentials import rfc3339
from identity.credentials.document import encode
from identity.settings import Settings

SLOTS: Final = ("a", "b")

# RFC 5280 appendix A, ub-common-name.
_COMMON_NAME_LENGTH: Final = 64


@dataclass(frozen=True, kw_only=True)
class EntraApplicationArgs:
    """Inputs of `EntraApplication`. `owner` is the deployer's object id."""

    display_name: str
    settings: Settings
    owner: str


@dataclass(frozen=True, kw_only=True)
class _Slot:
    """One issued, registered and proven certificate."""

    document: CredentialDocument
    summary: pulumi.Output[CredentialSummary]


class EntraApplication(pulumi.ComponentResource):
    """Application, service principal, and the two certificate slots.

    Outputs: `client_id`, `principal_id` (Output[str]); of the current slot `document` (CredentialDocument) and
    `summary` (Output[CredentialSummary]), which is `shown` in the state.
    """

    def __init__(self, name: str, args: EntraApplicationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("idstack:azure:EntraApplication", name, None, opts)
        self._name, self._args = name, args
        self._registrations: dict[str, pulumi.Resource] = {}
        # The permission Application.ReadWrite.OwnedBy covers owned objects only. The identity of the first run stays
        # the owner: a preview by another identity must not show a change.
        ownership = pulumi.ResourceOptions(parent=self, ignore_changes=["owners"])
        self._application = azuread.Application(
            f"{name}-application",
            display_name=args.display_name,
            owners=[args.owner],
            # Entra ID accepts a second application of the same name; the tag identifies this one.
            tags=[f"{pulumi.get_project()}:{pulumi.get_stack()}:{name}"],
            opts=pulumi.ResourceOptions.merge(ownership, pulumi.ResourceOptions(protect=args.settings.protect)),
        )
        self._principal = azuread.ServicePrincipal(
            f"{name}-principal", client_id=self._application.client_id, owners=[args.owner], opts=ownership
        )
        schedule = RenewalSchedule(
            f"{name}-schedule",
            lifetime_days=args.settings.credentials.lifetime_days,
            renew_before_days=args.settings.credentials.renew_before_days,
            mode=args.settings.credentials.renewal,
            opts=pulumi.ResourceOptions(parent=self),
        )
        slots = {slot: self._slot(slot, getattr(schedule, slot), schedule.current) for slot in SLOTS}
        self.client_id: pulumi.Output[str] = self._application.client_id
        self.principal_id: pulumi.Output[str] = self._principal.object_id
        # Selected inside apply, so that the secret waits for the current slot only.
        self.document = CredentialDocument(
            text=schedule.current.apply(lambda current: slots[current].document.text),
            dates=schedule.current.apply(lambda current: slots[current].document.dates),
        )
        self.summary: pulumi.Output[CredentialSummary] = schedule.current.apply(lambda current: slots[current].summary)
        self.register_outputs({"client_id": self.client_id, "principal_id": self.principal_id, "shown": self.summary})

    def _slot(self, slot: str, issue: pulumi.Output[Any], current: pulumi.Output[str]) -> _Slot:
        args, child = self._args, pulumi.ResourceOptions(parent=self)
        credentials, cloud = args.settings.credentials, args.settings.cloud
        certificate = Certificate(
            f"{self._name}-certificate-{slot}",
            common_name=args.display_name[:_COMMON_NAME_LENGTH],
            key_size=credentials.key_size,
            lifetime_days=credentials.lifetime_days,
            generation=issue.apply(lambda known: known["generation"]),
            not_before=issue.apply(lambda known: known["notBefore"]),
            opts=child,
        )
        # An application's certificates are one list, and azuread writes it for one resource at a time: the current
        # slot comes first, so that the secret does not wait for the spare.
        before = current.apply(lambda first: [] if slot == first else [self._registrations[first]])
        registration = azuread.ApplicationCertificate(
            f"{self._name}-registration-{slot}",
            application_id=self._application.id,
            type="AsymmetricX509Cert",
            value=certificate.certificate_pem,
            start_date=certificate.not_before,
            end_date=certificate.not_after,
            # The slot that is replaced is never the current one, and an application holds few keys.
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True, depends_on=before),
        )
        self._registrations[slot] = registration
        gate = SignInGate(
            f"{self._name}-gate-{slot}",
            authority_host=cloud.authority_host,
            tenant_id=args.settings.tenant_id,
            client_id=self._application.client_id,
            certificate_pem=certificate.certificate_pem,
            private_key_pem=certificate.private_key_pem,
            registration=registration.key_id,
            scope=cloud.arm_scope,
            successes=credentials.propagation.successes,
            settle_seconds=credentials.propagation.settle_seconds,
            timeout_seconds=credentials.propagation.timeout_seconds,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self._principal]),
        )
        dates = pulumi.Output.all(start=certificate.not_before, end=certificate.not_after).apply(
            lambda known: self._dates(known["start"], known["end"])
        )
        text: pulumi.Output[str] = pulumi.Output.all(
            certificate_pem=certificate.certificate_pem,
            private_key_pem=certificate.private_key_pem,
            client_id=self._application.client_id,
            object_id=self._principal.object_id,
            # Not part of the document: it makes the document wait for the gate.
            proven_at=gate.proven_at,
        ).apply(lambda known: dates.apply(lambda validity: self._document(known, validity)))
        return _Slot(
            document=CredentialDocument(text=pulumi.Output.secret(text), dates=dates),
            summary=dates.apply(
                lambda validity: certificate.thumbprint.apply(lambda thumbprint: summary_of(validity, thumbprint))
            ),
        )

    def _dates(self, not_before: str, not_after: str) -> CredentialDates:
        start, end = rfc3339.parse(not_before), rfc3339.parse(not_after)
        # As in the schedule: counted back from the end of this certificate, whatever lifetime the settings have now.
        renewal = end - timedelta(days=self._args.settings.credentials.renew_before_days)
        return CredentialDates(
            not_before=start,
            not_after=end,
            renew_after=max(renewal, start + timedelta(days=1)),
            cannot_renew_after=end,
        )

    def _document(self, known: Mapping[str, str], dates: CredentialDates) -> str:
        return encode(
            authentication_endpoint=self._args.settings.cloud.authority_host,
            client_id=known["client_id"],
            tenant_id=self._args.settings.tenant_id,
            certificate_pem=known["certificate_pem"],
            private_key_pem=known["private_key_pem"],
            not_before=dates.not_before,
            not_after=dates.not_after,
            renew_after=dates.renew_after,
            cannot_renew_after=dates.cannot_renew_after,
            object_id=known["object_id"],
        )
